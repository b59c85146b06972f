"""How well answers are tied to their sources, in parts; the last line is one JSON object.

    python tests/bench/citations.py                        # every part that needs no chat model
    python tests/bench/citations.py --part pages           # a generated PDF with one invented fact a page: 200 of 200
    python tests/bench/citations.py --part places          # rectangles on rotated, cropped, two-column pages
    python tests/bench/citations.py --part finance         # pages of annual reports, hybrid against keyword search
    python tests/bench/citations.py --part refusals [--questions N] [--language de]
    python tests/bench/citations.py --part answers --model PATH [--questions 200] [--passages 2]
                                    [--replies FILE --seconds 150]     # in pieces: call it until "asked" is 200
    python tests/bench/citations.py --part pages --with-model 5 --model PATH

`finance`, `refusals` and `answers` read the public sets under `--data`. In `pages` the closest passage stands for the
answer, which measures parsing, keyword search and citing alone; `--with-model N` also has a real model answer N
questions through the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from small_pdf import pdf_file

from inglenook.app.cli import run
from inglenook.app.commands.ask_documents import Grounded, source_record
from inglenook.app.commands.asked_documents import AskedDocuments
from inglenook.app.commands.terminal import StatusLine

sys.path.insert(0, str(Path(__file__).parent))
from cited_answers import answer_figures
from cited_finance import finance_figures
from cited_places import place_figures
from cited_refusals import refusal_figures
from retrieval import Encoder, find_embedder, token_offsets_of

NUM_PAGES = 200
PARTS = ("pages", "places", "finance", "refusals", "answers")

_SYLLABLES = "ba be bo da de do fa fi go ka ki lo ma mi na no pa ri ro sa su ta te vo za zi".split()  # noqa: SIM905
_THINGS = ("tower", "bridge", "lighthouse", "granary", "clock", "ferry", "mill", "archive", "canal", "bell")
_FACTS = (
    ("The {thing} of {name} is {number} metres high.", "How high is the {thing} of {name}?"),
    (
        "In {name}, {number} people look after the {thing}.",
        "How many people look after the {thing} in {name}?",
    ),
    ("{person} built the {thing} of {name} in {year}.", "Who built the {thing} of {name}?"),
    (
        "The {thing} of {name} has been closed since {year}.",
        "Since when has the {thing} of {name} been closed?",
    ),
    (
        "Repairs to the {thing} of {name} cost {number} crowns.",
        "What did repairs to the {thing} of {name} cost?",
    ),
)
_FILLER = (
    "This survey was made over several summers, and its results are given page by page.",
    "Where two records disagree, the older one has been followed unless there is a reason not to.",
    "The measures were taken with the same instruments throughout, and checked by a second party.",
    "Readers who know the region will find that some spellings differ from those in common use.",
    "A note on the weather: most visits fell on dry days, which makes the figures comparable.",
    "Nothing on this page depends on what is said elsewhere, so it may be read on its own.",
)


@dataclass(frozen=True)
class Fact:
    """One page's sentence and the question that it answers."""

    sentence: str
    question: str


def invent_facts(count: int, seed: int = 0) -> list[Fact]:
    """Invent facts about places that do not exist; every name is used once."""
    rng = random.Random(seed)
    names: dict[str, None] = {}
    while len(names) < 2 * count:
        names.setdefault("".join(rng.choices(_SYLLABLES, k=rng.randint(3, 4))).capitalize())
    places, people = list(names)[:count], list(names)[count:]
    facts = []
    for index, (place, person) in enumerate(zip(places, people, strict=True)):
        sentence, question = _FACTS[index % len(_FACTS)]
        values = {
            "thing": rng.choice(_THINGS),
            "name": place,
            "person": person,
            "number": rng.randint(11, 9999),
            "year": rng.randint(1700, 1999),
        }
        facts.append(Fact(sentence.format(**values), question.format(**values)))
    return facts


def write_pdf(path: Path, facts: list[Fact], seed: int = 0) -> Path:
    """Write one page for each fact, the fact somewhere among sentences that all pages share."""
    rng = random.Random(seed)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(facts), b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(facts)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for i, fact in enumerate(facts):
        lines = [*rng.sample(_FILLER, k=len(_FILLER))]
        lines.insert(rng.randrange(len(lines) + 1), fact.sentence)
        text = b"".join(
            b"BT /F1 10 Tf 1 0 0 1 72 %d Tm (%s) Tj ET\n" % (720 - 16 * row, line.encode("ascii"))
            for row, line in enumerate(lines)
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * i)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text))
    path.write_bytes(pdf_file(objects))
    return path


def cited_without_model(path: Path, facts: list[Fact]) -> tuple[int, list[int], float]:
    """Ask every question, let the closest passage's fact answer; return right pages, wrong ones, seconds a question."""
    wrong = []
    with StatusLine() as status, AskedDocuments() as documents:
        documents.read([path], status)
        started = time.perf_counter()
        for page, fact in enumerate(facts, 1):
            evidence = documents.gather(fact.question, whole_bytes=0, client=None, status=status)
            reply = evidence.candidates[0].chunk.text if evidence.candidates else ""
            grounded = Grounded.of(reply, evidence, fact.question)
            records = [source_record(source, documents.paths) for source in grounded.sources]
            first = next((r for r in records if fact.sentence in " ".join(str(r["quote"]).split())), None)
            if first is None or first["page"] != page or not first["cited"] or not first["verified"]:
                wrong.append(page)
        seconds = time.perf_counter() - started
    return len(facts) - len(wrong), wrong, seconds / len(facts)


def cited_with_model(
    path: Path, facts: list[Fact], count: int, model: str, max_tokens: int
) -> list[dict[str, object]]:
    """Ask `count` questions through the command line; return for each the page and the pages of its sources."""
    results: list[dict[str, object]] = []
    for page in range(1, len(facts) + 1, max(1, len(facts) // count)):
        output = io.StringIO()
        arguments = ["ask", facts[page - 1].question, "--document", str(path), "--model", model, "--json"]
        with contextlib.redirect_stdout(output):
            status = run([*arguments, "--temperature", "0", "--max-tokens", str(max_tokens)])
        answer = json.loads(output.getvalue()) if status == 0 else {"text": "", "sources": []}
        pages = [source["page"] for source in answer["sources"]]
        results.append({"page": page, "pages": pages, "text": answer["text"], "is_right": page in pages})
        if len(results) == count:
            break
    return results


def page_figures(options: argparse.Namespace) -> dict[str, object]:
    """Cite the generated PDF; with a model, also answer some of its questions."""
    facts = invent_facts(options.pages)
    with tempfile.TemporaryDirectory() as folder:
        path = write_pdf(Path(folder) / "survey.pdf", facts)
        num_right, wrong, seconds = cited_without_model(path, facts)
        figures: dict[str, object] = {
            "pages": len(facts),
            "right": num_right,
            "wrong_pages": wrong,
            "ms_per_question": round(1000 * seconds, 2),
        }
        print(f"{num_right} of {len(facts)} right pages cited, {1000 * seconds:.1f} ms a question")
        if options.with_model:
            answers = cited_with_model(path, facts, options.with_model, options.model, options.max_tokens)
            for answer in answers:
                print(f"page {answer['page']}: sources on {answer['pages']}: {answer['text']!r}")
            figures["with_model"] = len(answers)
            figures["with_model_right"] = sum(bool(answer["is_right"]) for answer in answers)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; returns the exit status, 1 if a page was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="repeatable")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of public sets")
    parser.add_argument("--pages", type=int, default=NUM_PAGES)
    parser.add_argument("--with-model", type=int, default=0, metavar="N")
    parser.add_argument("--model", default="smollm2-135m", help="a name, or for the part answers a path")
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--questions", type=int, help="of refusals (default: all) and answers (default: 200)")
    parser.add_argument(
        "--first", type=int, default=0, help="the first question of answers, for another sample"
    )
    parser.add_argument("--passages", type=int, default=2, help="how many passages the model is given")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no question of answers after so many"
    )
    parser.add_argument(
        "--replies", type=Path, help="keep replies in this file; the next run goes on with the rest"
    )
    parser.add_argument("--language", default="en", help="of refusals")
    parser.add_argument("--words-only", action="store_true", help="refusals without an embedder")
    parser.add_argument("--embedder", type=Path, help="a sentence encoder's folder (default: the tests')")
    parser.add_argument("--vectors", type=Path, help="keep vectors in this folder for the next run")
    parser.add_argument(
        "--json", action="store_true", help="accepted for likeness; the last line is always JSON"
    )
    options = parser.parse_args(arguments)
    parts = options.part or PARTS[:-1]
    figures: dict[str, object] = {}
    if "pages" in parts:
        figures |= page_figures(options)
    if "places" in parts:
        figures |= place_figures()
    if {"finance", "refusals", "answers"} & set(parts):
        figures |= _with_encoder(options, parts)
    for name, value in figures.items():
        print(f"{name:<28} {value}")
    print(json.dumps(figures))
    return 0 if figures.get("right", 0) == figures.get("pages", 0) else 1


def _with_encoder(options: argparse.Namespace, parts: Sequence[str]) -> dict[str, object]:
    model = find_embedder(options.embedder)
    if model is None:
        raise SystemExit("There is no embedder; --embedder names its folder, or use --part pages or places.")
    encoder = Encoder(model, options.vectors)
    offsets = token_offsets_of(encoder)
    figures: dict[str, object] = {}
    try:
        if "finance" in parts:
            figures |= finance_figures(options.data / "financebench", encoder)
        if "refusals" in parts:
            file = options.data / "xquad" / f"xquad.{options.language}.json"
            used = None if options.words_only else encoder
            figures |= refusal_figures(file, used, offsets, options.questions)
        if "answers" in parts:
            figures |= answer_figures(
                options.data / "xquad" / "xquad.en.json",
                encoder,
                offsets,
                Path(options.model),
                num_questions=options.questions or 200,
                num_passages=options.passages,
                first=options.first,
                max_seconds=options.seconds,
                kept=options.replies,
            )
    finally:
        encoder.close()
    return figures


if __name__ == "__main__":
    sys.exit(main())
