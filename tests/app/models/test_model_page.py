"""The model page, as a person uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.models.model_card import ModelCard, gigabytes
from inglenook.app.models.model_page import ModelPage, model_files
from inglenook.app.window.theme import Theme

STARTER = ModelCard(
    "starter",
    "Starter <b>1</b> & co",
    "for trying out",
    "MIT",
    "",
    98_000_000,
    700_000_000,
    9_000_000_000,
    is_starter=True,
)
BIG = ModelCard(
    "big", "Big", "the best", "X", "asks for attribution", 4_000_000_000, 8_500_000_000, 9_000_000_000
)


@pytest.fixture
def page(qtbot: QtBot, theme: Theme) -> ModelPage:
    page = ModelPage(theme)
    qtbot.addWidget(page)
    page.set_cards([STARTER, BIG])
    page.resize(800, 600)
    page.show()
    return page


@pytest.mark.parametrize(("need", "fit"), [(700, "yes"), (8_000, "maybe"), (9_001, "no")])
def test_what_fits_is_judged_by_the_memory_that_is_free(need: int, fit: str) -> None:
    card = ModelCard("x", "x", memory_bytes=need * 10**6, free_bytes=9_000 * 10**6)

    assert card.fit == fit


def test_a_card_says_size_need_licence_and_fit_with_the_numbers(page: ModelPage) -> None:
    card = page.card("big")

    assert card.title.text() == "Big"
    assert (
        card.facts.text()
        == "4.0 GB download  ·  needs 8.5 GB of memory; 9.0 GB are free  ·  X\nAsks for attribution."
    )
    assert (card.fit.text(), card.fit.toolTip()) == ("May be slow", "Needs 8.5 GB of memory; 9.0 GB are free")
    assert page.card("starter").title.text() == "Starter <b>1</b> & co"


def test_one_click_asks_for_the_starter_and_progress_offers_to_cancel(qtbot: QtBot, page: ModelPage) -> None:
    with qtbot.waitSignal(page.get_requested) as got:
        page.card("starter").main_button.click()
    page.set_cards([replace(STARTER, state="fetching", done=30_000_000, total=98_000_000), BIG])
    card = page.card("starter")

    assert got.args == ["starter"]
    assert card.facts.text() == "Downloading: 30 MB of 98 MB"
    with qtbot.waitSignal(page.cancel_requested) as cancelled:
        card.main_button.click()
    assert cancelled.args == ["starter"]


def test_a_model_that_is_here_can_be_used_or_removed_and_the_loaded_one_unloaded(
    qtbot: QtBot, page: ModelPage
) -> None:
    page.set_cards([replace(STARTER, state="here"), BIG])
    card = page.card("starter")
    with qtbot.waitSignal(page.load_requested), qtbot.waitSignal(page.remove_requested):
        card.main_button.click()
        card.remove_button.click()

    page.set_cards([replace(STARTER, state="loaded"), BIG])
    with qtbot.waitSignal(page.unload_requested):
        card.main_button.click()
    assert card.remove_button.isHidden()


def test_every_button_of_the_page_has_a_name_of_its_own(page: ModelPage) -> None:
    page.set_cards([replace(STARTER, state="here"), BIG])

    names = [page.card(name).main_button.accessibleName() for name in ("starter", "big")]

    assert names == ["Use Starter <b>1</b> & co", "Download Big"]


def test_a_problem_stands_on_the_card_it_belongs_to(page: ModelPage) -> None:
    page.set_cards([replace(STARTER, problem="The disk is full."), BIG])

    assert page.card("starter").problem.text() == "The disk is full."
    assert page.card("big").problem.isHidden()


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 MB"), (1, "1 MB"), (98_362_432, "98 MB"), (1_120_000_000, "1.1 GB")]
)
def test_sizes_are_written_as_people_know_them(size: int, words: str) -> None:
    assert gigabytes(size) == words


def test_model_files_are_told_from_documents_by_name() -> None:
    paths = [Path("a.GGUF"), Path("b.pdf"), Path("model.safetensors")]

    assert model_files(paths) == [paths[0], paths[2]]
