"""The personas for the window: read once, changed by the writer, and which chat is answered by which.

A chat keeps its persona in its options; a new chat takes the one of the settings until another is chosen. One that was
deleted counts as none. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from inglenook.app.settings import AppSettings
from inglenook.app.tasks import Tasks
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import NotFoundError
from inglenook.storage.personas import Persona, Personas

PERSONA_OPTION = "persona_id"


class PersonaShelf(QObject):
    """All personas, and the choice of each chat.

    Signals: `changed()` when there are others than before, or the chat on screen has another one.
    """

    changed = Signal()

    def __init__(self, tasks: Tasks, settings: AppSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks, self._settings = tasks, settings
        self._personas: tuple[Persona, ...] = ()
        self._chosen: dict[int, int] = {}  # persona of each chat that was on screen
        self._shown: int | None = None
        self._pending: int | None = None  # chosen for the new chat on screen
        settings.changed.connect(self._take_setting)

    @property
    def personas(self) -> tuple[Persona, ...]:
        """All, by name."""
        return self._personas

    @property
    def default_id(self) -> int:
        """The id of the one that new chats begin with; 0 for none."""
        wanted = self._settings.value("chat.persona")
        return wanted if self.get(wanted) is not None else 0

    @property
    def current(self) -> Persona | None:
        """The persona of the chat on screen."""
        return self.of(self._shown)

    def get(self, persona_id: int) -> Persona | None:
        """Return one by its id; None if there is none."""
        return next((persona for persona in self._personas if persona.id == persona_id), None)

    def of(self, conversation_id: int | None) -> Persona | None:
        """Return the persona that answers in a chat, None: the one on screen."""
        if conversation_id is None:
            conversation_id = self._shown
        if conversation_id is None:
            return self.get(self.default_id if self._pending is None else self._pending)
        return self.get(self._chosen.get(conversation_id, 0))

    def refresh(self) -> None:
        """Read all personas anew."""
        self._tasks.read(lambda db: tuple(Personas(db).all()), self._take)

    def show_chat(self, conversation_id: int | None) -> None:
        """Take note which chat is on screen, and read its choice where that is not known."""
        self._shown = conversation_id
        if conversation_id is None:
            self._pending = None
        elif conversation_id not in self._chosen:
            self._tasks.read(
                lambda db: _choice(db, conversation_id), lambda choice: self._note(conversation_id, choice)
            )
            return
        self.changed.emit()

    def adopt(self, conversation_id: int, *, is_shown: bool) -> None:
        """Give a chat that was just begun the persona that its first question was asked with."""
        persona = self.of(None) if self._shown is None else self.get(self.default_id)
        choice = 0 if persona is None else persona.id
        self._chosen[conversation_id] = choice
        if is_shown:
            self._shown, self._pending = conversation_id, None
        self._save(conversation_id, choice)
        self.changed.emit()

    def choose(self, persona_id: int) -> None:
        """Let a persona, or with 0 none, answer in the chat on screen from now on."""
        if self._shown is None:
            self._pending = persona_id
        else:
            self._chosen[self._shown] = persona_id
            self._save(self._shown, persona_id)
        self.changed.emit()

    def add(
        self,
        name: str,
        system: str,
        preset: str,
        sampling: Mapping[str, Any],
        done: Callable[[int], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Make a persona; `done` is given its id."""
        self._write(
            lambda db: Personas(db).add(name, system=system, preset=preset, sampling=sampling), done, failed
        )

    def change(
        self,
        persona: Persona,
        done: Callable[[int], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Replace all that the persona of this id is."""

        def work(db: Database) -> int:
            Personas(db).change(
                persona.id,
                persona.name,
                system=persona.system,
                preset=persona.preset,
                sampling=persona.sampling,
            )
            return persona.id

        self._write(work, done, failed)

    def delete(self, persona_id: int) -> None:
        """Delete a persona; chats that used it go on without."""

        def work(db: Database) -> int:
            Personas(db).delete(persona_id)
            return persona_id

        self._write(work, lambda _id: None, None)
        if self._settings.value("chat.persona") == persona_id:
            self._settings.set("chat.persona", 0)

    def _write(
        self,
        work: Callable[[Database], int],
        done: Callable[[int], object],
        failed: Callable[[Exception], object] | None,
    ) -> None:
        def written(result: tuple[int, tuple[Persona, ...]]) -> None:
            self._take(result[1])
            done(result[0])

        self._tasks.write(lambda db: (work(db), tuple(Personas(db).all())), written, failed)

    def _save(self, conversation_id: int, persona_id: int) -> None:
        self._tasks.write(lambda db: _keep_choice(db, conversation_id, persona_id))

    def _note(self, conversation_id: int, choice: int) -> None:
        self._chosen.setdefault(conversation_id, choice)
        self.changed.emit()

    def _take(self, personas: tuple[Persona, ...]) -> None:
        self._personas = personas
        self.changed.emit()

    def _take_setting(self, key: str, _value: object) -> None:
        if key == "chat.persona":
            self.changed.emit()


def _choice(db: Database, conversation_id: int) -> int:
    try:
        choice = Conversations(db).get(conversation_id).options.get(PERSONA_OPTION)
    except NotFoundError:
        return 0
    return choice if type(choice) is int else 0


def _keep_choice(db: Database, conversation_id: int, persona_id: int) -> None:
    conversations = Conversations(db)
    try:
        options = conversations.get(conversation_id).options
        conversations.set_options(conversation_id, {**options, PERSONA_OPTION: persona_id})
    except NotFoundError:
        return  # deleted meanwhile
