"""The bridge thread: takes the engine's events from a queue and passes on what is due.

The first piece of a reply is due at once, what follows every 33 ms, joined; everything else at once, after the text
that came before it. So a flood of tokens costs the window no more than 30 signals a second.
"""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QThread, Signal

from inglenook.engine.homes.messages import Notice
from inglenook.engine.request import Event, LoadProgress, TokenText

TEXT_INTERVAL_S = 0.033

_MAX_ITEMS = 10_000


@dataclass(frozen=True, slots=True)
class Death:
    """The news that the engine ended by itself."""

    reason: str


@dataclass(frozen=True, slots=True)
class Asleep:
    """The news that all models were unloaded, since nothing was asked for a while."""


Item = tuple[int, Event | Death | Asleep | Notice]


class EventReader(QThread):
    """The bridge thread. `arrived(list of Item)` is emitted on it, with all that is due; `put` and the like are for any."""

    arrived = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName("engine-bridge")
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()

    def put(self, id_: int, event: Event) -> None:
        """Take an event; any thread."""
        self._queue.put((id_, event))

    def tell_death(self, reason: str) -> None:
        """Take the news that the engine ended; any thread."""
        self._queue.put((0, Death(reason)))

    def tell_sleep(self) -> None:
        """Take the news that all models were unloaded; any thread."""
        self._queue.put((0, Asleep()))

    def tell_notice(self, notice: Notice) -> None:
        """Take the news that a slot changed by itself; any thread."""
        self._queue.put((0, notice))

    def end(self) -> None:
        """Ask the thread to end."""
        self._queue.put(None)

    def run(self) -> None:
        """Gather and pass on, until the end."""
        gathered: dict[int, _Gathered] = {}
        is_ending = False
        while not is_ending:
            items, is_ending = self._wait([g.due_s for g in gathered.values() if g.is_waiting])
            now_s = time.monotonic()
            arrivals: list[Item] = []
            for id_, event in items:
                if isinstance(event, TokenText | LoadProgress):
                    gathered.setdefault(id_, _Gathered()).add(event)
                    continue
                rest = gathered.pop(id_, None)
                if rest is not None and rest.is_waiting:
                    arrivals.append((id_, rest.take(now_s)))
                arrivals.append((id_, event))
            for id_, waiting in gathered.items():
                if waiting.is_waiting and waiting.due_s <= now_s:
                    arrivals.append((id_, waiting.take(now_s)))
            if arrivals:
                self.arrived.emit(arrivals)

    def _wait(self, due_s: list[float]) -> tuple[list[Item], bool]:
        """Wait until something comes or is due; return what came, and whether the end was asked for."""
        items: list[Item] = []
        try:
            timeout_s = max(0.0, min(due_s) - time.monotonic()) if due_s else None
            item = self._queue.get(timeout=timeout_s)
            while item is not None:
                items.append(item)
                if len(items) >= _MAX_ITEMS:
                    return items, False
                item = self._queue.get_nowait()
            return items, True
        except queue.Empty:
            return items, False


@dataclass(slots=True)
class _Gathered:
    """What has come for one request since the last signal, and when the next is due."""

    due_s: float = 0.0
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    progress: LoadProgress | None = None

    @property
    def is_waiting(self) -> bool:
        return bool(self.pieces or self.token_ids or self.progress)

    def add(self, event: TokenText | LoadProgress) -> None:
        if isinstance(event, TokenText):
            self.pieces.append(event.text)
            self.token_ids += event.token_ids
        else:
            self.progress = event

    def take(self, now_s: float) -> TokenText | LoadProgress:
        event = self.progress or TokenText("".join(self.pieces), tuple(self.token_ids))
        self.due_s, self.pieces, self.token_ids, self.progress = now_s + TEXT_INTERVAL_S, [], [], None
        return event
