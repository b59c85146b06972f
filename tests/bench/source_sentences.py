"""Every sentence that engine, storage and app say in English, found in their sources; and what a catalogue lacks.

    python tests/bench/source_sentences.py de     prints what German lacks, as JSON to be filled in

A sentence is a literal or an f-string that ends as one, outside docstrings, logs, assertions and `tr`. What an f-string
puts in becomes {0}, {1} ... in order, so a renamed variable changes no catalogue. `PIECES` names the modules whose
shorter pieces are put into sentences ("a Word document (DOCX)", "is 7; it must be even") and are translated too.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from source_texts import source_texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "storage", "app")
UNSEEN = {
    "app/commands": "the command line speaks English",
    "app/cli.py": "the command line speaks English",
    "app/window/screen.py": "said in the terminal, where there is no window",
    "app/models/quantize_worker.py": "a child's report, of which the window shows its errors alone",
    "engine/benchmark.py": "inglenook bench, a command",
    "engine/doctor.py": "inglenook doctor, a command; the window names cards by their kind",
    "engine/library/perplexity.py": "measured by the command line alone",
    "engine/library/perplexity_text.py": "the text that is measured, not said",
}
"""Modules whose sentences never stand in the window, and why."""
PIECES = (
    "engine/weights", "engine/models", "engine/tokenizer", "engine/library/model_catalogue.py",
    "engine/cards/placement.py", "storage/parsing/file_type.py", "storage/parsing/opening.py", "storage/driver.py",
    "storage/opening.py", "app/answers/prompts.py", "storage/parsing/found_documents.py", "storage/forget_receipt.py",
)  # fmt: skip
NAMES = {
    "multilingual-e5-small, 4 bits", "Llama 3.2 Community License", "PowerPoint Document", "{0}, text_config",
    "language_model.lm_head.", "Could not decode to UTF-8", "has no column named", "malformed database schema",
    "no such column", "no such table", "unsupported file format",
}  # fmt: skip
"""Pieces that are names or parts of one, and what SQLite says, by which its errors are told apart."""
_TO_MODELS = (
    "The lighthouse", "At nightfall", "Interest rates", "Who keeps", "The keeper", "And by day", "What is a hedge",
    "A row of shrubs", "These are documents of the user", "These passages of the user", "Give this conversation",
    "Summarise our", "[page", "=== end", "[CLS]",
)  # fmt: skip
_SILENT = {"tr", "translate", "translated", "compile", "execute"}
_NOT_SAID = re.compile(
    r"= \?|\+ \?|Instruct|^_|^\(|\b(SELECT|PRAGMA|IS NULL|ORDER BY|INSERT|UPDATE|ALTER|DROP|FROM)\b|\\[pwdsb]|^[a-z]+( [a-z0-9]+){12,}$"
)


@cache
def sentences() -> dict[str, str]:
    """Return every template, with the place of the first that says it."""
    found: dict[str, str] = {}
    unsaid_here = source_texts() | NAMES
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if not place.startswith(tuple(UNSEEN)):
                for line, text in _texts(path):
                    is_said = is_sentence(text) or (place.startswith(PIECES) and _is_piece(text))
                    if is_said and text not in unsaid_here and not text.startswith(_TO_MODELS):
                        found.setdefault(text, f"{place}:{line}")
    return found


def is_sentence(text: str) -> bool:
    """Whether a text ends as a sentence, or with one that it puts in, and has words of its own."""
    ends = re.search(r"[.!?]['”)]?$|[.:] \{\d+\}$", text)
    return bool(ends) and len(_words(text)) >= 3 and not _NOT_SAID.search(text) and "\n" not in text


def _is_piece(text: str) -> bool:
    return len(_words(text)) >= 2 and " " in text and not _NOT_SAID.search(text) and "\n" not in text


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]{2,}", re.sub(r"\{\d+\}", "", text))


@cache
def _texts(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the texts of a module with their lines, less what is never shown."""
    return tuple(_shown_texts(ast.parse(path.read_text(encoding="utf-8"))))


def _shown_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Assert):
            skipped.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_logged = getattr(getattr(node.func, "value", None), "id", "") == "logger"
            if name in _SILENT or is_logged:
                skipped.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value.strip()
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, template(node).strip()


def template(node: ast.JoinedStr) -> str:
    """Return an f-string with what it puts in numbered."""
    parts, count = [], 0
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        else:
            parts.append(f"{{{count}}}")
            count += 1
    return "".join(parts)


def unsaid(known: Iterable[str]) -> list[str]:
    """Return the keys of a catalogue whose longest own stretch stands in no source, nor in the system's errors."""
    paths = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    texts = [text for p in paths for _, text in _texts(p)]
    everything = "\n".join([*texts, *(os.strerror(number) for number in errno.errorcode)])
    stretches = ((key, max(re.split(r"\{\d+\}", key.split(": ")[-1]), key=len).strip(" .")) for key in known)
    return sorted(key for key, stretch in stretches if stretch not in everything)


def main() -> int:
    """Print what a language lacks, and what it has for nothing."""
    from inglenook.app.translations.catalogue import sentence_texts

    found, known = sentences(), sentence_texts(sys.argv[1])
    print(json.dumps({t: "" for t in sorted(found) if t not in known}, ensure_ascii=False, indent=1))
    for text in unsaid(known):
        print(f"not said any more: {text!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
