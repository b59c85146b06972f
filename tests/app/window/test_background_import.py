"""What is imported behind the window, and that the window does not wait for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.window.background_import import BackgroundImport


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_modules_are_imported_in_order_while_the_event_loop_goes_on(qtbot: QtBot, folder: Path) -> None:
    (folder / "behind_one.py").write_text("import threading\nname = threading.current_thread().name\n")
    (folder / "behind_two.py").write_text("import sys\nsaw = 'behind_one' in sys.modules\n")
    importing = BackgroundImport(("behind_one", "behind_two"))

    with qtbot.waitSignal(importing.finished):
        importing.start()
    importing.check()
    importing.close()

    assert sys.modules["behind_two"].saw
    assert sys.modules["behind_one"].name != "MainThread"


def test_what_an_import_raised_is_raised_where_it_is_waited_for(qtbot: QtBot, folder: Path) -> None:
    (folder / "behind_bad.py").write_text("raise OSError('no such thing')\n")
    importing = BackgroundImport(("behind_bad",))

    with qtbot.waitSignal(importing.finished):
        importing.start()
    importing.close()

    with pytest.raises(OSError, match="no such thing"):
        importing.check()
