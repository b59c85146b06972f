"""The whole window for tests of the chat page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot
    from window_desk import WindowDesk

    from inglenook.app.window.theme import Theme


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    """A window with a model, and an engine that the test plays."""
    from window_desk import WindowDesk, put_model

    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    desk.window.resize(1_000, 900)
    yield desk
    desk.close()
