"""`Handle`: one open request, load or unload, and what has come back for it.

The client delivers events on the engine's reading thread; any other thread reads them, waits for the result or
cancels. Text that nobody reads is joined into one event, so a handle never holds more than the reply itself.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from inglenook.engine.errors import error_from_kind
from inglenook.engine.homes.messages import Stats
from inglenook.engine.request import TERMINAL_EVENTS, Event, Failed, Finished, LoadProgress, TokenText

logger = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Reply:
    """A completed reply: its first choice, and the texts of all choices when there are several."""

    text: str
    token_ids: tuple[int, ...]
    finished: Finished
    texts: tuple[str, ...] = ()


class Handle(Generic[R]):
    """One open request (`Handle[Reply]`), load (`Handle[Loaded]`) or unload (`Handle[Unloaded]`)."""

    def __init__(
        self, id_: int, cancel: Callable[[int], None], on_event: Callable[[Event], None] | None = None
    ) -> None:
        self.id = id_
        self._cancel = cancel
        self._on_event = on_event
        self._changed = threading.Condition()
        self._pieces: list[TokenText] = []
        self._num_read = 0
        self._progress: LoadProgress | None = None
        self._end: Event | Stats | None = None
        self._end_read = False

    @property
    def done(self) -> bool:
        """Whether the last event has come; nothing changes after it."""
        return self._end is not None

    def cancel(self) -> None:
        """Ask the engine to end this early; returns at once. The last event still comes, and says how it ended."""
        if not self.done:
            self._cancel(self.id)

    def events(self, timeout_s: float | None = None) -> Iterator[Event]:
        """Yield each event once, in order, up to the last one, waiting at most `timeout_s` for each.

        Raises:
            TimeoutError: nothing came in that time; iterating again goes on where this stopped.
        """
        while (event := self._next(timeout_s)) is not None:
            yield event

    def text(self) -> str:
        """Return the reply's text so far; it stands whatever happens to the engine."""
        with self._changed:
            return _joined(self._pieces, 0).text

    def result(self, timeout_s: float | None = None) -> R:
        """Wait for the end and return a `Reply`, `Loaded` or `Unloaded`.

        Raises:
            EngineError: the typed error that the engine reported.
            TimeoutError: it has not ended within `timeout_s`; it goes on.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, timeout_s):
                raise TimeoutError(f"no result within {timeout_s} s")
            end = self._end
            if isinstance(end, Failed):
                raise error_from_kind(end.kind, end.message)
            if isinstance(end, Finished):
                choices = [_joined(self._pieces, c) for c in range(max(1, len(end.finish_reasons)))]
                end = Reply(choices[0].text, choices[0].token_ids, end, tuple(c.text for c in choices))  # type: ignore[assignment]
            return cast(R, end)

    def deliver(self, event: Event | Stats) -> None:
        """Take the next event; for the client only. Whatever comes after the last one is dropped."""
        with self._changed:
            if self.done:
                return
            if isinstance(event, TokenText):
                self._pieces.append(event)
            elif isinstance(event, LoadProgress):
                self._progress = event
            else:
                self._end = event
            self._changed.notify_all()
        if self._on_event is not None and not isinstance(event, Stats):
            try:
                self._on_event(event)
            except Exception as error:  # noqa: BLE001 - a listener's fault must not stop the thread that reads for all
                logger.error("the listener of handle %d raised %s", self.id, type(error).__name__)

    def _next(self, timeout_s: float | None) -> Event | None:
        with self._changed:
            if not self._changed.wait_for(self._has_news, timeout_s):
                raise TimeoutError(f"no event within {timeout_s} s")
            if self._num_read < len(self._pieces):
                choice = self._pieces[self._num_read].choice
                unread = list(
                    itertools.takewhile(lambda p: p.choice == choice, self._pieces[self._num_read :])
                )
                self._num_read += len(unread)
                return _joined(unread, choice)
            if self._progress is not None:
                progress, self._progress = self._progress, None
                return progress
            if self._end_read or not isinstance(self._end, TERMINAL_EVENTS):
                return None
            self._end_read = True
            return self._end

    def _has_news(self) -> bool:
        return self._num_read < len(self._pieces) or self._progress is not None or self.done


def _joined(pieces: list[TokenText], choice: int) -> TokenText:
    """Return the pieces of one choice as one."""
    mine = [piece for piece in pieces if piece.choice == choice]
    return TokenText(
        "".join(piece.text for piece in mine),
        tuple(token_id for piece in mine for token_id in piece.token_ids),
        choice,
        tuple(logprob for piece in mine for logprob in piece.logprobs),
        mine[0].made_s if mine else 0.0,
    )
