"""Every text of the program that is translated, found in its sources and tables; and what a catalogue lacks.

    python tests/bench/source_texts.py de     prints the texts that German lacks, as JSON to be filled in

Texts are the literals given to `tr` and `translate`, and those of the tables that menus, settings and dialogs are made
from. A call with anything but a literal is reported, unless it stands in a function that translates a table's text.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

APP = Path(__file__).resolve().parents[2] / "app"
_TRANSLATING = {"tr": 0, "translate": 1, "translated": 0, "numbered": 0}


def source_texts() -> set[str]:
    """Return all texts in English."""
    return {text for text in (*_literals(), *_of_tables()) if any(c.isalpha() for c in text)}


def calls() -> Iterator[tuple[Path, ast.Call, int]]:
    """Yield every call that translates, with the place of its text."""
    for path in sorted(APP.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in _TRANSLATING and len(node.args) > _TRANSLATING[name]:
                    yield path, node, _TRANSLATING[name]


def _literals() -> Iterator[str]:
    for _path, call, place in calls():
        argument = call.args[place]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _of_tables() -> Iterator[str]:
    from inglenook.app import settings_table
    from inglenook.app.chat.export import FORMATS
    from inglenook.app.window.actions import ACTIONS
    from inglenook.app.window.sample_document import QUESTIONS
    from inglenook.app.window.shortcuts_dialog import _WRITING

    for spec in ACTIONS:
        yield from (spec.text, spec.text.rstrip("…"), spec.menu)
    for setting in (*settings_table.SETTINGS, *settings_table.MODEL_SETTINGS):
        if setting.label:
            yield from (setting.label, setting.hint, *setting.words, setting.unit, setting.zero)
    yield from settings_table.GROUPS
    yield from (text for text, _keys in _WRITING)
    yield from (*FORMATS.values(), *QUESTIONS, "Writing", " or ")


def main() -> int:
    """Print what a language lacks, and what it has for nothing."""
    from inglenook.app.translations.catalogue import catalogue_texts

    texts, known = source_texts(), catalogue_texts(sys.argv[1])
    print(json.dumps(dict.fromkeys(sorted(texts - known.keys()), ""), ensure_ascii=False, indent=1))
    for text in sorted(known.keys() - texts):
        print(f"not used any more: {text!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
