"""Make pictures of every page: the real window with real models, light, dark and in high contrast, at 100 % and 200 %.

    python tests/bench/screenshots.py [--models FOLDER] [--out packaging/screenshots] [--look contrast 2]

A small manual is written, dropped on the window and asked about; what the models answer is what is shown. Each look
is a process of its own, since Qt takes its scale factor at the start.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
LOOKS = (("light", 1), ("dark", 1), ("contrast", 1), ("light", 2), ("dark", 2), ("contrast", 2))
WAIT_S = 900
QUESTION = "How many kilograms of refrigerant does the outdoor unit hold?"
MANUAL = (
    ["1. Before you begin", "Read this manual before you install the heat pump.", "Keep it near the unit."],
    ["2. Siting", "Leave 60 centimetres of free space behind the unit.", "Do not place it below a bedroom window."],
    ["3. Electrical supply", "The unit needs a supply of its own with a 16 ampere breaker."],
    ["4. The refrigerant circuit", "The outdoor unit holds 1.2 kilograms of the refrigerant R290 (propane).",
     "The circuit is sealed at the factory and must never be topped up.",
     "Only a certified technician may open it."],
    ["5. Water side", "Fill the system to a pressure of 1.5 bar.", "Flush the filter after the first week."],
    ["6. Maintenance", "Clean the fins once a year with a soft brush.", "Have the unit inspected every two years."],
)  # fmt: skip


def main() -> int:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("INGLENOOK_TEST_MODELS", Path.home() / ".cache" / "inglenook-test-models")
    parser.add_argument("--models", type=Path, default=Path(default))
    parser.add_argument("--out", type=Path, default=REPOSITORY / "packaging" / "screenshots")
    parser.add_argument(
        "--look", nargs=2, metavar=("SCHEME", "FACTOR"), help="only light, dark or contrast, 1 or 2"
    )
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return shoot(options.models, options.out, options.child[0], options.child[1])
    options.out.mkdir(parents=True, exist_ok=True)
    looks = [tuple(options.look)] if options.look else LOOKS
    for scheme, factor in looks:
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "QT_SCALE_FACTOR": str(factor)}
        command = [sys.executable, __file__, "--models", str(options.models), "--out", str(options.out)]
        subprocess.run([*command, "--child", scheme, str(factor)], env=environment, check=True)
    return 0


def shoot(models: Path, out: Path, scheme: str, factor: str) -> int:
    """Make the pictures of one look."""
    from PySide6.QtCore import QCoreApplication, QEventLoop
    from PySide6.QtWidgets import QApplication
    from small_pdf import write_pdf

    from inglenook.app.application import Application
    from inglenook.app.paths import UserFolders
    from inglenook.app.window.main_window import MainWindow
    from inglenook.app.window.theme import Theme
    from inglenook.app.window.window_join import WindowJoin
    from inglenook.engine.model_library import ModelLibrary

    qt = QApplication([])

    def settle(condition: Callable[[], bool] = lambda: False, limit_s: float = 0.4) -> None:
        end_s = time.monotonic() + limit_s
        while not condition() and time.monotonic() < end_s:
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)

    def until(condition: Callable[[], bool]) -> None:
        settle(condition, WAIT_S)
        if not condition():
            sys.exit("something did not happen in time")
        settle()

    with tempfile.TemporaryDirectory(prefix="inglenook-shots-") as folder:
        places = [Path(folder, name) for name in ("data", "config", "state", "cache")]
        folders = UserFolders(*places)
        folders.data.mkdir()
        is_high = scheme == "contrast"
        theme = Theme(
            qt,
            scheme="light" if is_high else scheme,  # type: ignore[arg-type]
            contrast="high" if is_high else "usual",
        )

        def opened(*, has_models: bool) -> tuple[Any, Any]:
            window = MainWindow(theme)
            application = Application(folders)
            application.join = WindowJoin(window, application)  # type: ignore[attr-defined]
            if factor == "2":
                window.resize(1180, 720)
            window.show()
            application.start()
            state = application.bridge.model_state
            until(lambda: state().phase == "ready" if has_models else window.page is window.welcome)
            return window, application

        def grab(window: Any, name: str) -> None:
            settle()
            picture = few_colours(window.grab().toImage())
            picture.save(str(out / f"{name}-{scheme}-{factor}00.png"), "PNG", 0)

        window, application = opened(has_models=False)
        grab(window, "first-run")
        application.close()
        window.close()

        library = ModelLibrary(folders.models)
        library.add(models / "SmolLM2-135M-Instruct.Q4_1.gguf", name="smollm2-135m", copy=True)
        library.add(models / "all-MiniLM-L6-v2", name="minilm-l6", copy=True)
        window, application = opened(has_models=True)
        application.settings.set("chat.temperature", 0.0)
        application.settings.set("chat.max_tokens", 160)
        application.settings.set("chat.titles", False)  # the names of chats are the same each time
        chat = window.chat
        chat.composer.send_requested.emit(
            "Give me three names for a small bakery by the sea, with a reason each."
        )
        until(lambda: len(chat.model.messages) == 2 and len(chat.model.messages[1].text) > 120)
        grab(window, "streaming")
        until(lambda: chat.model.messages[1].state != "streaming")
        window.actions_by_name["new_chat"].trigger()
        manual = write_pdf(Path(folder, "Heat pump manual.pdf"), *MANUAL)
        notes = Path(folder, "Meeting notes.md")
        notes.write_text("# Meeting\n\nThe installer comes on 14 May at nine.\n", encoding="utf-8")
        window.files_dropped.emit([manual, notes])
        documents = application.indexing
        until(lambda: len(documents.documents) == 2 and all(d.status == "ready" for d in documents.documents))
        grab(window, "documents")
        second = next(d for d in documents.documents if d.name == "Meeting notes.md")
        window.sidebar.documents.ticked.emit(second.id, False)
        chat.composer.send_requested.emit(QUESTION)
        until(lambda: len(chat.model.messages) == 2 and chat.model.messages[1].state != "streaming")
        reply = chat.model.messages[1]
        if reply.citations:
            chat.view.citation_activated.emit(reply.id, reply.citations[0].number)
            until(lambda: not window.source.canvas.is_empty)
        grab(window, "cited-answer")
        window.close_source()
        window.show_models()
        grab(window, "models")
        pose_house(window, application, grab, until)
        pose_settings(window, application, grab, until)
        pose_comparison(window, application, models, grab, until)
        application.close()
        window.close()
    return 0


def pose_house(
    window: Any,
    application: Any,
    grab: Callable[[Any, str], None],
    until: Callable[[Callable[[], bool]], None],
) -> None:
    """A folder, a search in all messages, the privacy page, the palette and the keys."""
    from PySide6.QtWidgets import QApplication

    chats, folders = window.sidebar.chats, application.join.chats.list.folders
    window.show_chat()
    folders.move([application.join.chats.conversation_id], "Heating")
    until(lambda: chats.model.row_of_folder("Heating") >= 0)
    grab(window, "folders")
    chats.search.setText("refrigerant")
    until(lambda: any(entry.is_hit for entry in chats.model.entries))
    grab(window, "search")
    chats.search.clear()
    window.pages.show_page("privacy")
    grab(window, "privacy")
    window.show_chat()
    for action in ("palette", "shortcuts"):
        window.actions_by_name[action].trigger()
        dialog = QApplication.activeModalWidget()
        grab(dialog, action)
        dialog.reject()


def pose_settings(
    window: Any,
    application: Any,
    grab: Callable[[Any, str], None],
    until: Callable[[Callable[[], bool]], None],
) -> None:
    """The settings page with two personas and a value that is refused, and the panel of a chat's window."""
    personas, page = application.personas, application.join.settings.page
    for name, system in (
        ("Editor", "Cut every sentence that says nothing. Keep the writer's voice."),
        ("Spanish teacher", "Answer in simple Spanish, then say in English what was new."),
    ):
        personas.add(name, system, "precise", {}, lambda _id: None, print)
    until(lambda: len(personas.personas) == 2)
    application.settings.set("chat.persona", personas.personas[0].id)
    window.pages.show_page("settings")
    grab(window, "settings")
    page.expert_box.setChecked(True)
    page.rows["chat.temperature"].field.control.setText("5")
    page.rows["chat.temperature"].field.commit()
    page.reveal("chat.temperature")
    grab(window, "settings-refused")
    application.join.settings.show_personas()
    grab(window, "personas")
    page.expert_box.setChecked(False)
    window.show_chat()
    application.join.context.foot.meter.click()
    panel = application.join.context.panel
    until(lambda: panel.larger_button.isVisible() or panel.remark.isVisible())
    grab(window, "context")
    panel.end()


def pose_comparison(
    window: Any,
    application: Any,
    models: Path,
    grab: Callable[[Any, str], None],
    until: Callable[[Callable[[], bool]], None],
) -> None:
    """Two models on one question, where there is a second one; and the settings of a model."""
    from inglenook.app.models.model_settings_dialog import ModelSettingsDialog

    second = models / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    if second.exists():
        application.models.add(second, name="qwen2.5-coder-0.5b")
        until(lambda: application.models.state.get("qwen2.5-coder-0.5b") is not None)
        join = application.join.models.comparison
        window.pages.show_page("compare")
        join.page.question.setPlainText("Name three uses of a hedge in a garden, as a list.")
        join.page.ask_button.click()
        until(lambda: not join.comparison.is_running)
        grab(window, "two-models")
    window.show_models()
    window.models.settings_requested.emit("smollm2-135m")
    dialog = window.findChild(ModelSettingsDialog)
    until(lambda: bool(dialog.facts.text()))
    dialog.own_template_button.click()
    dialog.try_button.click()
    until(dialog.sample.isVisible)
    grab(dialog, "model-settings")
    dialog.reject()


def few_colours(picture: Any) -> Any:
    """Return a picture of its 256 most frequent colours: enough for an interface, and a third of the size."""
    import numpy as np
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QImage

    picture = picture.convertToFormat(QImage.Format.Format_RGB32)
    colours, counts = np.unique(np.frombuffer(picture.constBits(), np.uint32), return_counts=True)
    table = [int(colour) | 0xFF000000 for colour in colours[np.argsort(-counts)][:256]]
    # Colours that are not in the table take the nearest that is.
    return picture.convertToFormat(QImage.Format.Format_Indexed8, table, Qt.ImageConversionFlag.AvoidDither)


if __name__ == "__main__":
    sys.exit(main())
