"""`Handle`: one open request, load or unload, and what has come back for it.

The client delivers events on the engine's reading thread; any other thread reads them, waits for the result or
cancels. Text that nobody reads is joined into one event, so a handle never holds more than the reply itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from inglenook.engine.errors import error_from_kind
from inglenook.engine.messages import Stats
from inglenook.engine.request import TERMINAL_EVENTS, Event, Failed, Finished, LoadProgress, TokenText

logger = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Reply:
    """A completed reply."""

    text: str
    token_ids: tuple[int, ...]
    finished: Finished


class Handle(Generic[R]):
    """One open request (`Handle[Reply]`), load (`Handle[Loaded]`) or unload (`Handle[Unloaded]`)."""

    def __init__(
        self, id_: int, cancel: Callable[[int], None], on_event: Callable[[Event], None] | None = None
    ) -> None:
        self.id = id_
        self._cancel = cancel
        self._on_event = on_event
        self._changed = threading.Condition()
        self._pieces: list[str] = []
        self._token_ids: list[int] = []
        self._pieces_read = 0
        self._token_ids_read = 0
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
            return "".join(self._pieces)

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
                end = Reply("".join(self._pieces), tuple(self._token_ids), end)  # type: ignore[assignment]
            return cast(R, end)

    def deliver(self, event: Event | Stats) -> None:
        """Take the next event; for the client only. Whatever comes after the last one is dropped."""
        with self._changed:
            if self.done:
                return
            if isinstance(event, TokenText):
                self._pieces.append(event.text)
                self._token_ids.extend(event.token_ids)
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
            if self._pieces_read < len(self._pieces):
                event = TokenText(
                    "".join(self._pieces[self._pieces_read :]), tuple(self._token_ids[self._token_ids_read :])
                )
                self._pieces_read, self._token_ids_read = len(self._pieces), len(self._token_ids)
                return event
            if self._progress is not None:
                progress, self._progress = self._progress, None
                return progress
            if self._end_read or not isinstance(self._end, TERMINAL_EVENTS):
                return None
            self._end_read = True
            return self._end

    def _has_news(self) -> bool:
        return self._pieces_read < len(self._pieces) or self._progress is not None or self.done
