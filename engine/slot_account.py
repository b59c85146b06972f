"""`SlotAccount`: what a client remembers about the slots of its engine, so that a fresh engine can load them again.

It is told of every load and unload that is sent and of every answer. Not safe by itself: the client's lock guards it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from inglenook.engine.homes.messages import Command, EmbedTexts, LoadModel, Stats, Submit, UnloadModel
from inglenook.engine.request import Event, Failed, Loaded


class SlotAccount:
    """The load that each full slot was filled by, which of them sleep, and why others are empty."""

    def __init__(self) -> None:
        self._loads: dict[str, LoadModel] = {}
        self._latest: dict[str, int] = {}  # the last load or unload sent for each slot
        self._reasons: dict[str, str] = {}  # why the last load of a slot failed
        self._asleep: set[str] = set()  # full slots that were emptied because nothing happened

    def __bool__(self) -> bool:
        return bool(self._loads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._loads)

    def sleeps(self, slot: str) -> bool:
        """Whether a full slot was emptied because nothing happened."""
        return slot in self._asleep

    def note_sent(self, command: LoadModel | UnloadModel) -> None:
        """Note that a slot is about to be loaded or emptied."""
        self._latest[command.slot] = command.id
        self._loads.pop(command.slot, None)
        self._asleep.discard(command.slot)
        self._reasons.pop(command.slot, None)

    def load_again(self, slot: str, id_: int) -> LoadModel:
        """Return the load of a full slot under a new number, and note that it is sent."""
        again = replace(self._loads[slot], id=id_)
        self._loads[slot] = again
        self._latest[slot] = id_
        self._asleep.discard(slot)
        return again

    def put_to_sleep(self) -> set[str]:
        """Note that all full slots are emptied until they are wanted; returns those that were awake."""
        awake = self._loads.keys() - self._asleep
        self._asleep = set(self._loads)
        return awake

    def note_death(self, slot: str, reason: str) -> None:
        """Note that the engine ended while it loaded a slot, which may be the cause."""
        self._reasons[slot] = reason

    def settle(self, command: Command, answer: Event | Stats) -> Event | Stats:
        """Take a command's last answer in; return it, with the reason where more is known here."""
        if isinstance(command, LoadModel):
            if self._latest.get(command.slot) != command.id:
                return answer  # the slot was emptied or loaded anew since
            if isinstance(answer, Loaded):
                self._loads[command.slot] = command
            elif isinstance(answer, Failed):
                self._loads.pop(command.slot, None)
                self._reasons[command.slot] = answer.message
        elif isinstance(command, Submit | EmbedTexts) and isinstance(answer, Failed):
            is_missing = answer.kind == "NotLoadedError"
            return self.not_loaded(command.slot, answer.message) if is_missing else answer
        return answer

    def not_loaded(self, slot: str, message: str) -> Failed:
        """Return the failure of a command for an empty slot, with the reason of its last load if that failed."""
        why = self._reasons.get(slot)
        return Failed("NotLoadedError", message if why is None else f"{message} The last load failed: {why}")
