"""Which stretches of a passage a sentence rests on: whole sentences, rows and items, and never the heading above them.

A heading is no part of what stands below it, so it is kept beside a quote and not in it. What a sentence claims may
stand under two headings; then there are two quotes. Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace

from inglenook.app.answers.claims import Claims, Ground, claims_of, terms
from inglenook.storage.records import Hit, Place
from inglenook.storage.sentences import is_heading, is_row, split_sentences

MAX_QUOTES = 3

_WEIGHT_OF_CLAIM = 2
# The line below the head of a table in Markdown.
_RULE = re.compile(r"[\s|:+-]+")

Range = tuple[int, int]


class QuotedPassage:
    """A passage cut into its sentences; made once for many sentences of a reply."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self._text = text = hit.chunk.text
        titles = {_title(title) for title in hit.chunk.heading_path}
        self._parts: list[Range] = []
        self._is_heading: list[bool] = []
        for start, end in split_sentences(text, 0, len(text)):
            # Of a text with headings they are known, and may stand in one part with what is below them.
            while (line_end := text.find("\n", start, end)) >= 0 and _title(text[start:line_end]) in titles:
                self._add(start, line_end, is_title=True)
                start = line_end + 1
            is_title = _title(text[start:end]) in titles or (not titles and is_heading(text, start, end))
            self._add(start, end, is_title=is_title)
        if all(self._is_heading):
            self._is_heading = [False] * len(self._parts)

    def _add(self, start: int, end: int, *, is_title: bool) -> None:
        self._parts.append((start, end))
        self._is_heading.append(is_title)

    def whole(self) -> Range:
        """Return the passage without the headings that it begins with."""
        first = next((i for i, is_title in enumerate(self._is_heading) if not is_title), None)
        return (0, len(self._text)) if first is None else (self._parts[first][0], len(self._text))

    def quotes(self, sentence: str) -> list[Range]:
        """Return the shortest runs of parts that hold all that the passage can hold of a sentence's claims, best first."""
        if len(self._parts) < 2:
            return list(self._parts) or [(0, len(self._text))]
        wanted, missing = terms(sentence), claims_of(sentence)
        found: list[Range] = []
        while len(found) < MAX_QUOTES:
            best = max(
                (i for i in range(len(self._parts)) if not self._is_heading[i]),
                key=lambda i: (
                    bool(found) and self._held(i, i, missing),
                    self._score(i, missing, wanted),
                    -i,
                ),
            )
            start, end = self._run_around(best, missing, wanted)
            if found and not Ground(self._text[start:end]).num_held(missing):
                break
            found.append((start, end))
            missing = Ground(self._text[start:end]).missing(missing)
            if not missing.count:
                break
        return found

    def sentences(self) -> tuple[str, ...]:
        """Return the parts that are no headings."""
        return tuple(
            self._text[start:end]
            for (start, end), is_title in zip(self._parts, self._is_heading, strict=True)
            if not is_title
        )

    def near(self, quote: Range) -> str:
        """Return a quote with what it leans on: the headings above, two parts before it, one after, and its document."""
        inside = [i for i, (start, end) in enumerate(self._parts) if start < quote[1] and end > quote[0]]
        if not inside:
            return self._text
        first, last = max(0, inside[0] - 2), min(len(self._parts) - 1, inside[-1] + 1)
        chunk = self.hit.chunk
        around = self._text[self._parts[first][0] : self._parts[last][1]]
        head = self._text[slice(*self._parts[self._head_of(inside[0])])]
        return f"{chunk.document_name}\n{chunk.context}\n{self.heading(quote[0])}\n{head}\n{around}"

    def _head_of(self, part: int) -> int:
        """Return the first row of the table that a part is a row of, which says what its cells are; else the part."""
        head = part
        while part >= 0 and (is_row(row := self._text[slice(*self._parts[part])]) or _RULE.fullmatch(row)):
            head, part = part, part - 1
        return head

    def heading(self, start: int) -> str:
        """Return the headings above a position, from the outermost, line by line."""
        above: list[str] = []
        was_title = False
        for (part_start, part_end), is_title in zip(self._parts, self._is_heading, strict=True):
            if part_start >= start:
                break
            if is_title:
                above = [*(above if was_title else ()), _title(self._text[part_start:part_end])]
            was_title = is_title
        return "\n".join(dict.fromkeys([*self.hit.chunk.heading_path, *above]))

    def place(self, quote: Range) -> Place:
        """Return where a quote stands on its page."""
        return narrowed(self.hit.chunk.place, self._text, *quote)

    def _run_around(self, best: int, claims: Claims, wanted: set[str]) -> Range:
        """Widen the best part, between the headings around it, until it holds all of the claims that stand there."""
        low = high = best
        while low and not self._is_heading[low - 1]:
            low -= 1
        while high + 1 < len(self._parts) and not self._is_heading[high + 1]:
            high += 1
        goal = self._held(low, high, claims)
        first = last = best
        while self._held(first, last, claims) < goal:
            before = self._score(first - 1, claims, wanted) if first > low else None
            after = self._score(last + 1, claims, wanted) if last < high else None
            if after is None or (before is not None and before > after):
                first -= 1
            else:
                last += 1
        return self._parts[first][0], self._parts[last][1]

    def _held(self, first: int, last: int, claims: Claims) -> int:
        return Ground(self._text[self._parts[first][0] : self._parts[last][1]]).num_held(claims)

    def _score(self, part: int, claims: Claims, wanted: set[str]) -> int:
        """Weigh a part: a name may stand in every sentence, so that words count beside claims."""
        text = self._text[slice(*self._parts[part])]
        return _WEIGHT_OF_CLAIM * Ground(text).num_held(claims) + len(wanted & terms(text))


def _title(line: str) -> str:
    """Return a heading's words without the marks of Markdown."""
    return " ".join(line.strip().strip("#").split())


def narrowed(place: Place, text: str, start: int, end: int) -> Place:
    """Return the place of `text[start:end]` inside the passage `text` that stands at `place`.

    Rectangles are kept line by line where there is one for each line of the passage, else all of them.
    """
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    rectangles = place.rectangles
    if len(rectangles) == text.count("\n") + 1:
        rectangles = rectangles[first : last + 1]
    return replace(
        place,
        char_start=place.char_start + start,
        char_end=place.char_start + end,
        first_line=None if place.first_line is None else place.first_line + first,
        last_line=None if place.first_line is None else place.first_line + last,
        rectangles=rectangles,
    )
