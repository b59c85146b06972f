"""Whether the passages found can hold the answer, decided without the model, which would rather invent one.

A passage speaks for a question by two figures: how near its meaning is (the cosine of its embedding) and how much of
the question its best sentence says, each word weighted by how rare it is among all passages. The words that name its
document count as said; what is worked out of figures ("compared", "highest") counts less. The sum, of the best passage,
is compared with one bar. The bar was set on XQuAD with all-MiniLM-L6-v2 (tests/bench/citations.py refusals);
a long question says more than any one sentence of an answer, so it is given something for its length. Without an
embedder whose cosines are known the passage's own words stand in for the cosine. Other languages, whose endings hide
words, are judged by trigrams or pairs of letters, with a bar for each kind of writing, set on some questions of XQuAD in
five languages and held to others and to two more languages. What a multilingual embedder finds in another language than
the question's shares no word with it, and is not refused.

Requests that are no questions ("write a letter about it") are never refused. Pure but for the counts asked of search.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inglenook.app.answers.prompts import place_text
from inglenook.storage.content_words import content_words, stem, stems_of
from inglenook.storage.languages import is_english, is_multilingual
from inglenook.storage.question_words import QUESTION_PIECES, QUESTION_WORDS
from inglenook.storage.records import Hit
from inglenook.storage.rescoring import best_sentence
from inglenook.storage.segmentation import tokens, trigrams
from inglenook.storage.sentences import split_sentences

MAX_LOOKED_AT = 12
BAR = 0.835
WORDS_ONLY_BAR = 0.74
# Of alphabets; of scripts whose words take prefixes or leave vowels out; of those written without spaces; of pairs of
# characters, which are often others even where a passage says the same.
FOREIGN_BAR = 0.88
SHORT_WORDS_BAR = 0.77
NO_SPACES_BAR = 0.70
PAIRS_BAR = 0.375

_MAY_BE_FOREIGN = 3
_FEW_PASSAGES = 100
_FOR_FEW_PASSAGES = 0.8
_PAIRS = re.compile("[\u1100-\u11ff\u3005-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff]")
_NO_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# Hebrew, Arabic, and the scripts of India.
_SHORT_WORDS = re.compile("[\u0590-\u08ff\u0900-\u0dff]")
_FOR_EACH_WORD = 0.03
_USUAL_WORDS = 6
_MOST_WORDS = 20
_QUESTION_MARK = re.compile(r"[?？؟;]\s*\W*$")
_QUESTION_WORD = re.compile(
    r"^\W*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could)\b",
    re.I,
)
# Cosines of these are spread as the bar expects; others may lie all between .7 and .9.
_KNOWN_COSINES = re.compile(r"minilm", re.I)

_FISCAL = re.compile(r"\b(?:FY|CY)\s?'?(\d{2,4})\b", re.I)
_NAME_PARTS = re.compile(r"[\W_]+")
# What is asked of figures by these is worked out from them, and need not stand beside them.
_COMPUTED = 0.3
_COMPUTING = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "ratio margin percent percentage average mean total sum change changed difference growth increase increased decrease "
        "decreased improving improved improve decline compare compared comparison higher highest lower lowest most least best "
        "worst largest smallest biggest major consistent consistently historically trend performed performance contribution "
        "calculate compute rate conversion drop rise fluctuating",
    )
)

CountWith = Callable[[str], int]
"""From a word to how many passages have it."""


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """The figure of the best passage and the bar it was held to."""

    figure: float
    bar: float

    @property
    def is_enough(self) -> bool:
        """Whether the passages may hold the answer."""
        return self.figure >= self.bar


def is_question(text: str) -> bool:
    """Return whether a request asks for something that a passage either says or does not."""
    return bool(_QUESTION_MARK.search(text) or _QUESTION_WORD.match(text))


def sufficiency(
    question: str,
    hits: Sequence[Hit],
    *,
    num_passages: int,
    count_with: CountWith,
    count_with_piece: CountWith,
    embedder: str = "",
) -> Sufficiency:
    """Judge the best hits for a question; `num_passages` are all that there are, `embedder` made the cosines if any."""
    is_foreign = not is_english(question)
    if is_multilingual(embedder) and any(
        is_english(hit.chunk.text) == is_foreign for hit in hits[:_MAY_BE_FOREIGN]
    ):
        # What it found is in another language than the question, and shares no word with it.
        return Sufficiency(1.0, 0.0)
    if is_foreign:
        # Few passages do not show which words only ask.
        words = _asked(question) if num_passages < _FEW_PASSAGES else _pieces(question)
    else:
        words = _asked_for(question)
    if not words:
        return Sufficiency(1.0, 0.0)
    count = count_with_piece if is_foreign else count_with
    weights = {
        word: math.log(1 + num_passages / (1 + count(example))) * (_COMPUTED if word in _COMPUTING else 1.0)
        for word, example in words.items()
    }
    has_cosines = _KNOWN_COSINES.search(embedder) is not None and not is_foreign
    figure = max(
        (_figure(hit, weights, has_cosines, is_foreign) for hit in hits[:MAX_LOOKED_AT]), default=0.0
    )
    if is_foreign:
        lower = _FOR_FEW_PASSAGES if num_passages < _FEW_PASSAGES else 1.0
        return Sufficiency(figure, lower * _foreign_bar(question))
    figure += _FOR_EACH_WORD * (min(len(words), _MOST_WORDS) - _USUAL_WORDS)
    return Sufficiency(figure, BAR if has_cosines else WORDS_ONLY_BAR)


def refusal(hits: Sequence[Hit], names: Sequence[str]) -> str:
    """Say that the answer was not found: what was searched, and where the nearest passages stand.

    It does not say that the documents lack the answer, which a search cannot know.
    """
    searched = f"“{names[0]}”" if len(names) == 1 else f"{len(names)} documents"
    places = list(
        dict.fromkeys(
            f"{hit.chunk.document_name}, {place_text(hit.chunk.place, hit.chunk.num_pages)}"
            for hit in hits[:3]
        )
    )
    nearest = f" The nearest passages are on {'; '.join(places)}." if places else ""
    return (
        f"I did not find the answer in the passages that a search of {searched} gave, so I will not guess.{nearest} "
        "Ask in the words of the document, or have this answered anew to see what the model makes of these passages."
    )


def _figure(hit: Hit, weights: dict[str, float], has_cosines: bool, is_foreign: bool) -> float:
    if is_foreign:
        text = hit.chunk.text
        sentences = (_share(text[start:end], weights) for start, end in split_sentences(text, 0, len(text)))
        return _share(text, weights) + max(sentences, default=0.0)
    total = sum(weights.values())
    named = content_words(_NAME_PARTS.sub(" ", f"{hit.chunk.document_name} {hit.chunk.context}"))
    by_name = sum(weights[word] for word in weights.keys() & named) / total
    rest = {word: weight for word, weight in weights.items() if word not in named}
    sentence = by_name + (1 - by_name) * best_sentence(hit.chunk.text, rest)
    if has_cosines and hit.cosine is not None:
        return hit.cosine + sentence
    words = named | content_words(hit.chunk.text)
    return sum(weights[word] for word in weights.keys() & words) / total + sentence


def _asked_for(question: str) -> dict[str, str]:
    """Return the words of what is asked, less what is said after it on how to answer; "FY2022" is the year."""
    question = _FISCAL.sub(r" \1 ", question)
    ends = [
        end
        for start, end in split_sentences(question, 0, len(question))
        if _QUESTION_MARK.search(question[start:end])
    ]
    return stems_of(question[: ends[-1]] if ends else question) or stems_of(question)


def _share(text: str, weights: dict[str, float]) -> float:
    held = weights.keys() & _pieces(text).keys()
    return sum(weights[piece] for piece in held) / sum(weights.values())


def _foreign_bar(question: str) -> float:
    for pattern, bar in ((_PAIRS, PAIRS_BAR), (_NO_SPACES, NO_SPACES_BAR), (_SHORT_WORDS, SHORT_WORDS_BAR)):
        if len(pattern.findall(question)) > len(question) / 4:
            return bar
    return FOREIGN_BAR


def _asked(question: str) -> dict[str, str]:
    """Return the pieces of a question less those of words that only ask, each with itself; all where no others are."""
    words = [token for token in tokens(question) if token not in QUESTION_WORDS]
    pieces = _pieces(" ".join(words)).keys() - QUESTION_PIECES
    return {piece: piece for piece in sorted(pieces)} or _pieces(question)


def _pieces(text: str) -> dict[str, str]:
    """Return trigrams of words, and words too short for one, each with itself."""
    return {piece: piece for piece in (*trigrams(text), *(token for token in tokens(text) if len(token) < 3))}
