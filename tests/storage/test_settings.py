"""Settings: typed, tolerant of what they do not know."""

from __future__ import annotations

import pytest

from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.settings import Settings


@pytest.mark.parametrize("value", [True, 3, 2.5, "texte élégant", ["a", 1], {"a": {"b": None}}, "", 0, False])
def test_value_comes_back_with_its_type(db: Database, value: object) -> None:
    Settings(db).set("key", value)

    read = Settings(db).get("key", type(value)())  # type: ignore[type-var]

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("stored", "default"), [(1, True), (True, 1), ("3", 3), (None, "x"), ([1], {}), (1.5, 1)]
)
def test_value_of_another_type_reads_as_the_default(db: Database, stored: object, default: object) -> None:
    Settings(db).set("key", stored)

    assert Settings(db).get("key", default) is default  # type: ignore[type-var]


def test_whole_number_is_a_fine_float(db: Database) -> None:
    Settings(db).set("key", 3)

    assert Settings(db).get("key", 0.5) == 3.0


def test_broken_value_reads_as_the_default_and_keeps_the_others(db: Database) -> None:
    Settings(db).set("good", 1)
    db.execute("INSERT INTO settings VALUES ('bad', '{not json')")

    assert Settings(db).get("bad", 7) == 7
    assert Settings(db).all() == {"good": 1}


def test_unknown_keys_stay(db: Database) -> None:
    Settings(db).set("of.a.newer.program", {"x": 1})
    Settings(db).update({"theme": "dark"})
    Settings(db).remove("theme")

    assert Settings(db).all() == {"of.a.newer.program": {"x": 1}}


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_value_that_json_cannot_hold_saves_nothing(db: Database, value: object) -> None:
    with pytest.raises(InvalidValueError, match="The setting b cannot be saved"):
        Settings(db).update({"a": 1, "b": value})

    assert Settings(db).all() == {}
