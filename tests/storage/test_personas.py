"""Personas: named, kept, and refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.storage import database, migrations, opening
from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.personas import Persona, Personas
from inglenook.storage.settings import Settings


def test_a_persona_comes_back_as_it_was_and_all_are_sorted_by_name(db: Database) -> None:
    personas = Personas(db)
    second = personas.add("Écrivain", system="Write \ud83d\ude00 well.", preset="creative")
    first = personas.add("  Bookkeeper \n of   ours ", preset="own", sampling={"temperature": 0.3})

    assert [persona.name for persona in personas.all()] == ["Bookkeeper of ours", "Écrivain"]
    assert personas.get(first) == Persona(first, "Bookkeeper of ours", "", "own", {"temperature": 0.3})
    assert personas.get(second).system == "Write 😀 well."


def test_a_changed_persona_keeps_its_id_and_its_own_name_is_not_taken(db: Database) -> None:
    personas = Personas(db)
    persona_id = personas.add("Editor")

    personas.change(persona_id, "EDITOR", system="Cut.", preset="precise")

    assert personas.all() == [Persona(persona_id, "EDITOR", "Cut.", "precise", {})]


@pytest.mark.parametrize(
    ("name", "system", "sentence"),
    [
        (" \n", "", "A persona needs a name. Write one, for instance what it is for."),
        ("x" * 61, "", "A persona's name has at most 60 characters, got 61. Shorten it."),
        ("ÉDITEUR", "", "There is a persona named ÉDITEUR already. Choose another name."),
        (
            "Long",
            "x" * 100_001,
            "A persona's instructions have at most 100,000 characters, got 100,001. Put long texts into a document "
            "instead.",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_changes(
    db: Database, name: str, system: str, sentence: str
) -> None:
    personas = Personas(db)
    personas.add("Éditeur")

    with pytest.raises(InvalidValueError) as caught:
        personas.add(name, system=system)

    assert str(caught.value) == sentence
    assert len(personas.all()) == 1


def test_a_deleted_persona_is_gone_and_its_number_is_not_used_again(db: Database) -> None:
    personas = Personas(db)
    gone = personas.add("Gone")

    personas.delete(gone)
    personas.delete(gone)

    with pytest.raises(NotFoundError, match=f"no persona {gone}"):
        personas.get(gone)
    with pytest.raises(NotFoundError):
        personas.change(gone, "Back")
    assert personas.add("Next") > gone


@pytest.mark.parametrize(("kept", "preset"), [({"chat.temperature": 0.1}, "own"), ({"model.name": "x"}, "")])
def test_numbers_chosen_before_there_were_styles_count_as_a_style_of_ones_own(
    path: Path, kept: dict[str, object], preset: str
) -> None:
    with pytest.MonkeyPatch.context() as older:
        older.setattr(migrations, "_STEPS", migrations._STEPS[:2])
        for module in (database, opening):
            older.setattr(module, "SCHEMA_VERSION", 2)
        with Database.open(path) as db:
            Settings(db).update(kept)

    with Database.open(path) as db:
        assert Settings(db).get("chat.preset", "") == preset
        assert Personas(db).all() == []
