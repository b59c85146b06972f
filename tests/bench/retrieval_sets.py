"""Public retrieval sets in BEIR form: reading such a folder, and making them from the raw files of `shared/data`.

A folder holds `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and `qrels.tsv` (query,
document, score; a heading line is fine; `qrels/test.tsv` is found too).

    python tests/bench/retrieval_sets.py ../shared/data FOLDER      # FOLDER/cranfield, npl, xquad-en, xquad-de, ...
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LANGUAGES = ("en", "de", "es", "ru", "ar", "th", "hi", "zh")


@dataclass(slots=True)
class RetrievalSet:
    """Documents by id as title and text, questions by id, and for each question its documents with their grades."""

    documents: dict[str, tuple[str, str]] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    judgements: dict[str, dict[str, float]] = field(default_factory=dict)

    def judge(self, question: str, document: str, grade: float) -> None:
        """Note that a document answers a question."""
        self.judgements.setdefault(question, {})[document] = grade


def read_folder(folder: Path) -> RetrievalSet:
    """Read a folder in BEIR form."""
    result = RetrievalSet()
    for record in _records(folder / "corpus.jsonl"):
        result.documents[str(record["_id"])] = (str(record.get("title") or ""), str(record.get("text") or ""))
    for record in _records(folder / "queries.jsonl"):
        result.questions[str(record["_id"])] = str(record["text"])
    places = (folder / "qrels.tsv", folder / "qrels" / "test.tsv")
    qrels = next((place for place in places if place.is_file()), places[0])
    for number, line in enumerate(qrels.read_text(encoding="utf-8").splitlines()):
        parts = line.split("\t")
        if len(parts) < 3 or (number == 0 and not re.fullmatch(r"\s*-?[\d.]+\s*", parts[-1])):
            continue
        result.judge(parts[0], parts[-2], float(parts[-1]))
    return result


def write_folder(content: RetrievalSet, folder: Path) -> None:
    """Write a folder in BEIR form."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(
        folder / "corpus.jsonl",
        ({"_id": i, "title": title, "text": text} for i, (title, text) in content.documents.items()),
    )
    _write(folder / "queries.jsonl", ({"_id": i, "text": text} for i, text in content.questions.items()))
    lines = ["query-id\tcorpus-id\tscore"]
    for question, documents in content.judgements.items():
        lines += [f"{question}\t{document}\t{grade:g}" for document, grade in documents.items()]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def cranfield(folder: Path) -> RetrievalSet:
    """1,400 abstracts of aerodynamics. Grades run from 1 (best) to 4, with -1 for none: taken as yes or no."""
    result = RetrievalSet()
    for number, record in enumerate(_parts(folder / "cran.all.1400"), start=1):
        fields = dict(re.findall(r"^\.(\w)\s*\n(.*?)(?=^\.\w\s*$|\Z)", record, flags=re.M | re.S))
        result.documents[str(number)] = (" ".join(fields.get("T", "").split()), fields.get("W", ""))
    # Questions are judged by their order in the file, not by the number they carry.
    for number, record in enumerate(_parts(folder / "cran.qry"), start=1):
        result.questions[f"q{number}"] = " ".join(record.replace(".W", "", 1).split())
    for line in (folder / "cranqrel").read_text().splitlines():
        question, document, grade = [*line.split(), "1"][:3]
        if int(grade) > 0:
            result.judge(f"q{question}", document, 1)
    return result


def npl(folder: Path) -> RetrievalSet:
    """11,426 abstracts of electronics, without titles."""
    result = RetrievalSet(documents={i: ("", text) for i, text in _slashed(folder / "doc-text")})
    result.questions = {f"q{i}": text.lower() for i, text in _slashed(folder / "query-text")}
    for question, documents in _slashed(folder / "rlv-ass"):
        for document in documents.split():
            if document in result.documents:
                result.judge(f"q{question}", document, 1)
    return result


def xquad(folder: Path, language: str) -> RetrievalSet:
    """240 paragraphs of Wikipedia and 1,190 questions, the same in each language."""
    result = RetrievalSet()
    content = json.loads((folder / f"xquad.{language}.json").read_text(encoding="utf-8"))
    paragraphs = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
    for number, paragraph in enumerate(paragraphs):
        result.documents[f"p{number}"] = ("", paragraph["context"])
        for asked in paragraph["qas"]:
            result.questions[asked["id"]] = asked["question"]
            result.judge(asked["id"], f"p{number}", 1)
    return result


def shared_sets(data: Path) -> Iterator[tuple[str, RetrievalSet]]:
    """Yield every set of `shared/data` with its name."""
    yield "cranfield", cranfield(data / "cranfield")
    yield "npl", npl(data / "npl")
    for language in LANGUAGES:
        yield f"xquad-{language}", xquad(data / "xquad", language)


def main(arguments: list[str]) -> int:
    """Convert; returns the exit status."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for name, content in shared_sets(Path(arguments[0])):
        write_folder(content, Path(arguments[1]) / name)
        print(f"{name}: {len(content.documents):,} documents, {len(content.judgements):,} judged questions")
    return 0


def _parts(path: Path) -> list[str]:
    return re.split(r"^\.I \d+\s*$", path.read_text(), flags=re.M)[1:]


def _slashed(path: Path) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\s*/\s*$", path.read_text(), flags=re.M):
        number, _, text = part.strip().partition("\n")
        if number:
            yield number.strip(), text


def _records(path: Path) -> Iterator[dict[str, object]]:
    with open(path, encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _write(path: Path, records: Iterable[dict[str, object]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
