"""Whether passages say what a sentence of a reply says: the check that stands between a sentence and its citation.

Beside its numbers, names and quotations (claims.py) a sentence is read as the answer to its question. The words that
it adds to the question must stand in what is cited, all of them where there are few; the one that is missing is most
often the answer. What it denies must be denied there and what it affirms must not; what is cited must speak of what
was asked about; and a number or name may not be taken from a sentence about something else while the asked thing has
its own. Overlap of words, not understanding: a sentence that twists a passage with its own words is not caught. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inglenook.app.answers.claims import NUMBER_WORDS, Claims, Ground, claims_of, terms
from inglenook.app.answers.like_words import LIKE_WORDS
from inglenook.app.answers.units import UNITS, contradicts
from inglenook.storage.content_words import stem
from inglenook.storage.segmentation import is_single_of_pairs
from inglenook.storage.sentences import is_row

FEW_ADDED = 2
"""Of so many words that a sentence adds to its question, all must be held."""
MIN_ADDED = 0.65
MIN_ALL = 0.75
MIN_WITH_ADDED = 0.4
MIN_PAIRS = 0.5
FEW_WORDS = 4
"""With so many words or fewer that are not its question's, a reply is a bare answer, "34 metres"."""
MIN_SHARED = 0.3
MIN_ASKED = 0.5

_SOURCE = r"(?:passages?|documents?|texts?|contexts?|sources?|information|pages?|excerpts?)"
_LEAD_IN = re.compile(
    rf"^\W*(?:(?:based on|according to|as (?:stated|mentioned|described|noted|given|per)|from|in)\b[^,:.]{{0,60}}?\b{_SOURCE}\b[^,:.]{{0,40}}[,:]"
    rf"|(?:the|this|these|your)(?: \w+){{0,2}}? {_SOURCE}(?: \w+)? (?:states?|says?|mentions?|indicates?|notes?|tells?(?: us)?|describes?|explains?|shows?)"
    r"(?: that|:)?)\s*",
    re.I,
)
_YES_OR_NO = re.compile(
    r"^\W*(?:yes|no|sure|certainly|indeed|ja|nein|oui|non|sí|si|да|нет|是的|不是|نعم|لا)\s*[,.:!;，。،]\s*",
    re.I,
)
_NO_STATEMENT = re.compile(r"[?？؟:：]\W*$")
_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "not no never none neither nor without cannot nothing nobody nowhere unable "
        "nicht kein keine keinen keiner keines nie niemals ohne ne pas jamais aucun aucune sans nunca ningún ninguna jamás "
        "не нет ни никогда без لا لم لن ليس ليست non",
    )
)
_NEGATED_SIGNS = re.compile("不(?![仅僅但同断斷])|没|沒|无(?!论)|無(?!論)|非(?![常洲])|未(?![来來])")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_REACH = 3
# What a number counts, which a passage may call otherwise; units.py looks at those that cannot be.
_COUNTED = re.compile(r"\d[\d.,]*[\s-]+([^\W\d_]+(?: old)?)")
# They add nothing that a passage could say or not.
_EMPTY = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "approximately around roughly called known named name referred refers includes including included following follows "
        "provided provides mentioned mentions contains suggested suggests proposed proposes stated states claimed claims argued argues "
        "reported reports described describes noted notes said says believed believes however therefore additionally specifically particular term",
    )
)
_EXCEPT = frozenset(("only", "just", "merely", "until", "before"))
_ASKING = frozenset(
    stem(w)
    for w in re.findall(
        r"\w+", "year years date many much type kind sort name percentage number another give tell"
    )
)


@dataclass(frozen=True, slots=True)
class Cited:
    """What one citation offers: the quote, that with its neighbours and headings, and all sentences of its passage."""

    quote: str
    near: str
    parts: tuple[str, ...]


def is_said(sentence: str, question: str, cited: Sequence[Cited]) -> bool:
    """Return whether the citations together say what the sentence says as an answer to the question."""
    if not cited or is_no_statement(sentence):
        return False
    said = spoken(sentence)
    around = Ground("\n".join(each.near for each in cited))
    near = _words(around.text)
    near |= {word for word, digits in NUMBER_WORDS.items() if around.num_held(Claims(numbers=(digits,)))}
    parts = list(dict.fromkeys(part for each in cited for part in each.parts))
    return (
        _holds_words(said, question, near)
        and _is_about(said, question, near, around)
        and _agrees_on_no(said, "\n".join(each.quote for each in cited))
        and not contradicts(said, parts)
        and not _is_of_another(said, question, parts)
    )


def is_no_statement(sentence: str) -> bool:
    """Return whether a sentence only asks, or leads to a list."""
    return _NO_STATEMENT.search(sentence) is not None


def spoken(sentence: str) -> str:
    """Return a sentence without "According to the passage," or "Yes,"."""
    return _YES_OR_NO.sub("", _LEAD_IN.sub("", sentence, count=1), count=1)


def _holds_words(said: str, question: str, near: set[str]) -> bool:
    wanted = _words(said)
    if not wanted:
        # Numbers and names alone, which claims.py looks for.
        return claims_of(said).count > 0
    is_answer = Ground(question).missing(claims_of(said)).count > 0
    added = wanted - _words(question) - _words(" ".join(_COUNTED.findall(said)))
    if not all(is_held(word, near) for word in _begins_with(said) & added):
        # What the whole sentence is about.
        return False
    return _is_enough(added, near, MIN_ADDED) and _share(wanted, near) >= (
        MIN_WITH_ADDED if added or is_answer else MIN_ALL
    )


def _begins_with(said: str) -> set[str]:
    """Return the word that a sentence begins with, where that may be a name."""
    first = said.split(maxsplit=1)[0]
    return _words(first) if first[:1].isupper() else set()


def _is_enough(wanted: set[str], held: set[str], share: float) -> bool:
    pairs = {word for word in wanted if len(word) == 2 and is_single_of_pairs(word[0])}
    words = wanted - pairs
    if len(pairs & held) < MIN_PAIRS * len(pairs):
        return False
    missing = sum(not is_held(word, held) for word in words)
    return missing == 0 if len(words) <= FEW_ADDED else missing <= (1 - share) * len(words)


def _share(wanted: set[str], held: set[str]) -> float:
    return sum(is_held(word, held) for word in wanted) / len(wanted)


def is_held(word: str, held: set[str]) -> bool:
    """Return whether a word stands among others, perhaps with another ending."""
    if word in held:
        return True
    if len(word) < 5:
        return False
    return any(_common_prefix(word, other) >= max(4, 0.7 * max(len(word), len(other))) for other in held)


def _common_prefix(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _words(text: str) -> set[str]:
    found = {LIKE_WORDS.get(word, word) for word in terms(text)} - _NEGATIONS - _EMPTY
    return {word for word in found if not any(c.isdigit() for c in word)}


def _is_about(said: str, question: str, near: set[str], ground: Ground) -> bool:
    """Return whether what is cited speaks of what was asked, where a bare answer does not name it."""
    asked = _words(question) - _ASKING
    words = _words(said)
    if not asked or len(words - asked) > FEW_WORDS or len(words & asked) >= MIN_SHARED * len(asked):
        return True
    if sum(is_held(word, near) for word in asked) <= MIN_ASKED * len(asked):
        return False
    names = Claims(names=claims_of(question).names)
    return ground.num_held(names) * 2 >= names.count


def _agrees_on_no(said: str, quotes: str) -> bool:
    """Return whether a denial is one of the quotes, and what is affirmed is not denied there."""
    if _denies(said):
        return _denies(quotes)
    words = [word.lower() for word in _WORD.findall(quotes)]
    wanted = _words(said)
    near: set[str] = set()
    clear: set[str] = set()
    reach = 0
    for word in words:
        if _is_negation(word):
            reach = _REACH
            continue
        if word in _EXCEPT:
            reach = 0
        (near if reach else clear).add(stem(word))
        reach = max(0, reach - 1)
    return not (near - clear) & wanted


def _denies(text: str) -> bool:
    return _NEGATED_SIGNS.search(text) is not None or any(
        _is_negation(w.lower()) for w in _WORD.findall(text)
    )


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith(("n't", "n’t"))


def _is_of_another(said: str, question: str, parts: Sequence[str]) -> bool:
    """Return whether a number of the sentence stands only with something else, where what was asked for has its own.

    "The tower of Zorb is 57 metres high" takes the number of a like sentence about Mell; "Revenue was 57" that of the
    row below.
    """
    asked, claims = claims_of(question), claims_of(said)
    subject, named = asked.names or claims.names, {*asked.names, *claims.names}
    topic = _labels(f"{said} {question}")
    grounds = [Ground(part) for part in parts]
    for number in claims.numbers:
        wanted = Claims(numbers=(number,))
        beside = [ground for ground in grounds if ground.num_held(wanted)]
        others = [g for g in grounds if g not in beside and _numbers(g.text) - set(claims.numbers)]
        if not beside or Ground(question).num_held(wanted):
            continue
        if all(is_row(ground.text) for ground in beside):
            rows = [g for g in others if is_row(g.text)]
            if not any(_labels(g.text) & topic for g in beside) and any(
                _labels(g.text) & topic for g in rows
            ):
                return True
        elif subject and not any(_has_any(ground, subject) for ground in beside):
            own = [g for g in others if _has_any(g, subject)]
            if all(
                _names_in(ground.text, parts) - named and any(_is_alike(ground.text, o.text) for o in own)
                for ground in beside
            ):
                return True
    return False


def _labels(text: str) -> set[str]:
    """Return the words that can say what a row is about, as "V200", and no units."""
    return {word for word in terms(text) if not word.isdigit() and word not in UNITS}


def _is_alike(one: str, other: str) -> bool:
    return len(_words(one) & _words(other)) >= 2


def _has_any(ground: Ground, names: Sequence[str]) -> bool:
    return any(ground.num_held(Claims(names=(name,))) for name in names)


def _numbers(text: str) -> set[str]:
    return set(claims_of(text).numbers)


def _names_in(text: str, parts: Sequence[str]) -> set[str]:
    """Return the names of a text, also one that begins it where other parts have it as a name."""
    first = text.split(maxsplit=1)[:1]
    known = {name for part in parts for name in claims_of(part).names} if first else set()
    return {*claims_of(text).names, *(known & set(first))}
