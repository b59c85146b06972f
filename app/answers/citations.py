"""Which passage each sentence of a reply rests on, found by overlap and checked in code.

A small model is not asked for tags: after it has answered, each sentence gets the passages that share its words. Among
several the one wins that holds more of what the sentence claims and of what the question asked about, then the one
retrieved first. quoting.py chooses the stretches of it that hold the claims. A citation is verified when every number,
name and quotation of its sentence stands in the quotes or the headings above them; the check needs only the reply and
the stored sources, so it is made again whenever they are shown. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inglenook.app.answers.claims import Ground, claims_of, terms
from inglenook.app.answers.quoting import QuotedPassage
from inglenook.app.answers.spanning import spanning_parts
from inglenook.app.answers.support import Cited, is_said, spoken
from inglenook.storage.parsing.quotes import find_quote
from inglenook.storage.records import FORGOTTEN, Hit, NewSource, Source
from inglenook.storage.sentences import split_reply

MIN_COVERAGE = 0.5
"""The share of a sentence's weighted words that a passage must hold to be cited for it."""
MAX_PASSAGES_PER_SENTENCE = 3
MAX_SENTENCES = 500

# A claim counts 1; all that a passage can hold of the question counts 2.
_WEIGHT_OF_QUESTION = 2.0


@dataclass(frozen=True, slots=True)
class ShownCitation:
    """A citation for the transcript: `number` counts the places of a reply in the order in which they are cited."""

    number: int
    source: Source
    is_verified: bool


def attach(reply: str, passages: Sequence[Hit], question: str = "") -> list[NewSource]:
    """Return the sources of a reply: one for each sentence and passage it rests on, then the passages left over.

    "It weighs 34 kg." is read as an answer to its `question`: a page that has the number but speaks of something
    else comes after the page that was asked about. `passages` are what the model was given or could have read, best
    first. What no sentence rests on is kept as a source that is not cited.
    """
    return Citer(passages, question).attach(reply)


class Citer:
    """Cites the sentences of a reply; what is looked up in the passages is made once for all of them."""

    def __init__(self, passages: Sequence[Hit], question: str = "") -> None:
        self._passages, self._question = passages, question
        self._grounds = [Ground(hit.chunk.text) for hit in passages]
        self._words = [terms(f"{hit.chunk.text} {hit.chunk.context}") for hit in passages]
        asked = _coverages(terms(question), self._words)
        most = max(asked, default=0.0) or 1.0
        self._asked = [coverage / most for coverage in asked]
        self._made: dict[int, QuotedPassage] = {}

    def attach(self, reply: str) -> list[NewSource]:
        """Return the sources of a reply."""
        cited: list[NewSource] = []
        used: set[int | None] = set()
        for start, end in list(split_reply(reply, 0, len(reply)))[:MAX_SENTENCES]:
            found = self.cite(reply[start:end])
            used |= {source.chunk_id for source in found}
            cited += [replace(source, answer_range=(start, end)) for source in found]
        return cited + [as_source(hit) for hit in self._passages if hit.chunk.id not in used]

    def cite(self, sentence: str) -> list[NewSource]:
        """Return the citations of one sentence: the fewest passages that say it; none where they do not."""
        if spanning := self._spanning(sentence):
            return spanning
        chosen = self._supporting(sentence)
        for tried in (chosen, *([index] for index in self._alone(sentence) if [index] != chosen)):
            if not self._is_said(sentence, tried):
                continue
            for index in reversed(tried):
                fewer = [other for other in tried if other != index]
                if fewer and self._is_said(sentence, fewer):
                    tried = fewer
            return [
                replace(_source(self._quoted(index), quote), is_cited=True, answer_range=(0, len(sentence)))
                for index in tried
                for quote in self._quoted(index).quotes(sentence)
            ]
        return []

    def _spanning(self, sentence: str) -> list[NewSource]:
        """Return the two citations of a quotation that begins in one passage and ends in the next."""
        missing = [
            q for q in claims_of(sentence).quotations if not any(find_quote(g.text, q) for g in self._grounds)
        ]
        parts = spanning_parts(missing[0], self._passages) if missing else []
        if not parts:
            return []
        quoted = [(self._quoted(index), quote) for index, quote in parts]
        cited = [Cited(p.hit.chunk.text[slice(*quote)], p.near(quote), p.sentences()) for p, quote in quoted]
        held = "\n".join((*(each.quote for each in cited), *(p.heading(quote[0]) for p, quote in quoted)))
        if not is_supported(sentence, held) or not is_said(sentence, self._question, cited):
            return []
        whole = (0, len(sentence))
        return [replace(_source(p, quote), is_cited=True, answer_range=whole) for p, quote in quoted]

    def _is_said(self, sentence: str, chosen: Sequence[int]) -> bool:
        cited: list[Cited] = []
        headings: list[str] = []
        for passage in map(self._quoted, chosen):
            for quote in passage.quotes(sentence):
                text = passage.hit.chunk.text[slice(*quote)]
                cited.append(Cited(text, passage.near(quote), passage.sentences()))
                headings.append(passage.heading(quote[0]))
        held = "\n".join((*(each.quote for each in cited), *headings))
        return is_supported(sentence, held) and is_said(sentence, self._question, cited)

    def _quoted(self, index: int) -> QuotedPassage:
        if index not in self._made:
            self._made[index] = QuotedPassage(self._passages[index])
        return self._made[index]

    def _possible(self, sentence: str) -> dict[int, float]:
        """Return the passages that share enough words with a sentence, with how much of it they hold."""
        wanted = terms(spoken(sentence))
        if not wanted:
            return {}
        coverages = enumerate(zip(self._words, _coverages(wanted, self._words), strict=True))
        shares = {i: max(len(wanted & held) / len(wanted), weighted) for i, (held, weighted) in coverages}
        return {i: share for i, share in shares.items() if share >= MIN_COVERAGE}

    def _supporting(self, sentence: str) -> list[int]:
        """Return the passages that support a sentence best: the first, then those that hold what it lacks."""
        possible = self._possible(sentence)
        missing = claims_of(sentence)
        chosen: list[int] = []
        while possible and len(chosen) < MAX_PASSAGES_PER_SENTENCE:
            held = {i: self._grounds[i].num_held(missing) for i in possible}
            best = max(
                possible, key=lambda i: (held[i] + _WEIGHT_OF_QUESTION * self._asked[i], possible[i], -i)
            )
            if chosen and not held[best]:
                break
            chosen.append(best)
            del possible[best]
            missing = self._grounds[best].missing(missing)
            if missing.count == 0:
                break
        return chosen

    def _alone(self, sentence: str) -> list[int]:
        """Return passages that hold all that a sentence claims, the nearest to the question first."""
        claims, possible = claims_of(sentence), self._possible(sentence)
        whole = [i for i in possible if self._grounds[i].missing(claims).count == 0]
        return sorted(whole, key=lambda i: (-self._asked[i], -possible[i], i))[:MAX_PASSAGES_PER_SENTENCE]


def as_source(hit: Hit) -> NewSource:
    """Return a whole passage, less the headings it begins with, as a source that no sentence rests on."""
    passage = QuotedPassage(hit)
    return _source(passage, passage.whole())


def with_checked_only(reply: str, sources: Sequence[Source]) -> list[Source]:
    """Return stored sources, those that an older program cited for what they do not say as merely found."""
    verified = verified_ranges(reply, sources)
    return [
        replace(source, is_cited=False, answer_range=None)
        if source.is_cited
        and source.quote != FORGOTTEN
        and not (source.answer_range and verified.get(source.answer_range))
        else source
        for source in sources
    ]


def shown_citations(reply: str, sources: Sequence[Source]) -> list[ShownCitation]:
    """Return the citations of a reply as they are shown; the same place has one number, and is listed once."""
    verified = verified_ranges(reply, sources)
    numbers: dict[tuple[object, ...], int] = {}
    shown: dict[int, ShownCitation] = {}
    for source in sources:
        if not source.is_cited or source.answer_range is None:
            continue
        place = source.place
        key = (source.document_name, source.version_id, place.page_index, place.char_start, place.char_end)
        number = numbers.setdefault(key, len(numbers) + 1)
        is_verified = verified.get(source.answer_range, False)
        if number in shown:
            shown[number] = replace(shown[number], is_verified=shown[number].is_verified and is_verified)
        else:
            shown[number] = ShownCitation(number, source, is_verified)
    return list(shown.values())


def verified_ranges(
    reply: str, sources: Sequence[Source] | Sequence[NewSource]
) -> Mapping[tuple[int, int], bool]:
    """Return for each cited sentence's range whether all it claims stands in the quotes of its citations.

    What a quote speaks of may be said by the headings it stands under.
    """
    quotes: dict[tuple[int, int], list[str]] = {}
    headings: dict[tuple[int, int], list[str]] = {}
    for source in sources:
        if source.is_cited and source.answer_range is not None:
            quotes.setdefault(source.answer_range, []).append(source.quote)
            headings.setdefault(source.answer_range, []).append(source.heading)
    return {
        (start, end): FORGOTTEN not in texts
        and is_supported(reply[start:end], "\n".join((*texts, *headings[start, end])))
        for (start, end), texts in quotes.items()
    }


def is_supported(sentence: str, text: str) -> bool:
    """Return whether every number, name and quotation of a sentence stands in `text`."""
    return Ground(text).missing(claims_of(sentence)).count == 0


def _coverages(wanted: set[str], words: Sequence[set[str]]) -> list[float]:
    """Return how much of some words each passage holds; a word that many hold says little about which it is."""
    weights = {term: 1.0 / (1 + sum(term in w for w in words)) for term in wanted}
    total = sum(weights.values())
    return [sum(weights[term] for term in wanted & w) / total if total else 0.0 for w in words]


def _source(passage: QuotedPassage, quote: tuple[int, int]) -> NewSource:
    hit, chunk = passage.hit, passage.hit.chunk
    return NewSource(
        document_id=chunk.document_id,
        version_id=chunk.version_id,
        chunk_id=chunk.id,
        document_name=chunk.document_name,
        place=passage.place(quote),
        quote=chunk.text[slice(*quote)],
        score=hit.score,
        heading=passage.heading(quote[0]),
    )
