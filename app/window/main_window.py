"""The window: side bar, the page in the centre, the source at the right, a line for what is wrong, and the keys.

It holds widgets and moves between them; what they show and what their signals cause is joined in
`window_controller.py`. Nothing heavy is imported here, so the first paint does not wait for storage or engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.chat_page import ChatPage
from inglenook.app.documents.drop_overlay import DropOverlay
from inglenook.app.documents.source_panel import SourcePanel
from inglenook.app.models.model_page import ModelPage
from inglenook.app.text.plain_label import ElidedLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.window.actions import ShortcutsDialog, make_actions, make_menu
from inglenook.app.window.banner import Banner
from inglenook.app.window.icons import icon
from inglenook.app.window.sidebar import Sidebar
from inglenook.app.window.theme import Theme
from inglenook.app.window.welcome_page import WelcomePage
from inglenook.app.window.window_style import window_style

_STATE_VERSION = 1


class MainWindow(QMainWindow):
    """All panes of the program. `is_restored` says whether it stands where it was left.

    Signals: `files_dropped(paths)` anywhere in the window; `closing()` before it closes; `painted()` once, after the first paint;
    `action_triggered(name)` for the actions that are not the window's own.
    """

    files_dropped = Signal(list)
    closing = Signal()
    painted = Signal()
    action_triggered = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self._is_painted = False
        self.is_restored = False
        self.setObjectName("main_window")
        self.setWindowTitle("Inglenook")
        self.setAcceptDrops(True)
        self.sidebar = Sidebar(theme)
        self.banner = Banner(theme)
        self.chat = ChatPage(theme)
        self.models = ModelPage(theme)
        self.welcome = WelcomePage(theme)
        self.source = SourcePanel(theme)
        self._pages = QStackedWidget()
        for page in (self.chat, self.models, self.welcome):
            self._pages.addWidget(page)
        self._panes = QSplitter(Qt.Orientation.Horizontal)
        self._panes.setChildrenCollapsible(False)
        self._panes.setHandleWidth(1)
        for pane in (self.sidebar, self._make_centre(), self.source):
            self._panes.addWidget(pane)
        self._panes.setStretchFactor(1, 1)
        self.setCentralWidget(self._panes)
        self._overlay = DropOverlay(theme, self)
        self.source.hide()
        self.source.close_requested.connect(self.close_source)
        self.actions_by_name = make_actions(self, self._handlers())
        self.menu = make_menu(self, self.actions_by_name)
        self.menu.aboutToShow.connect(self._mark_scheme)
        QShortcut(Qt.Key.Key_F10, self, self._show_menu)
        self.sidebar.menu_requested.connect(self._show_menu)
        self.sidebar.models_requested.connect(self.show_models)
        self.sidebar.new_chat_requested.connect(self.actions_by_name["new_chat"].trigger)
        self.models.close_requested.connect(self.show_chat)
        self.chat.find_bar.closed.connect(self._focus_page)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.chat.composer.setFocus()
        self.resize(theme.px(1180), theme.px(780))
        self._panes.setSizes([theme.px(264), theme.px(916), 0])

    # What it shows.

    def show_chat(self) -> None:
        """Bring the conversation to the front."""
        self._pages.setCurrentWidget(self.chat)
        self._show_title()
        self.chat.composer.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_models(self) -> None:
        """Bring the model page to the front."""
        self._pages.setCurrentWidget(self.models)
        self._show_title()
        self.models.import_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_welcome(self) -> None:
        """Show the page of the first run."""
        self._pages.setCurrentWidget(self.welcome)
        self._show_title()
        self.welcome.main_button.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def page(self) -> QWidget | None:
        """The page in the centre: `chat`, `models` or `welcome`."""
        return self._pages.currentWidget()

    def set_title(self, title: str) -> None:
        """Show a conversation's title."""
        self._chat_title = title
        self._show_title()

    def set_model(self, words: str, tip: str = "") -> None:
        """Say in header and side bar which model answers."""
        self.model_button.setText(plain_button_text(label(words, 40)))
        self.model_button.setAccessibleName(self.tr("Model: {0}").format(words))
        self.model_button.setToolTip(tip)
        self.sidebar.set_model(words)

    def open_source(self) -> None:
        """Show the source's pane."""
        if self.source.isHidden():
            sizes = self._panes.sizes()
            self.source.show()
            wanted = min(
                max(self.theme.px(360), sum(sizes) * 2 // 5), max(self.theme.px(260), sum(sizes) // 2)
            )
            self._panes.setSizes([sizes[0], sum(sizes) - sizes[0] - wanted, wanted])

    def close_source(self) -> None:
        """Hide the source's pane; the keyboard goes back to what is written."""
        focus = QApplication.focusWidget()
        had_focus = focus is not None and self.source.isAncestorOf(focus)
        self.source.hide()
        if had_focus:
            self._focus_page()

    def save_state(self) -> dict[str, str]:
        """Return geometry, panes, scale and scheme as text, for `restore_state`."""
        return {
            "geometry": bytes(self.saveGeometry().toBase64().data()).decode(),
            "panes": ",".join(map(str, self._panes.sizes())),
            "sidebar": str(int(not self.sidebar.isHidden())),
            "scale": str(self.theme.scale),
            "scheme": self.theme.scheme,
        }

    def restore_state(self, state: Mapping[str, str]) -> None:
        """Put the window back as it was; what is missing or damaged is left as it is."""
        geometry = state.get("geometry", "")
        if geometry:
            self.is_restored = self.restoreGeometry(QByteArray.fromBase64(geometry.encode()))
            self._come_on_screen()
        sizes = [int(size) for size in state.get("panes", "").split(",") if size.isdigit()]
        if len(sizes) == 3 and sizes[0] and sizes[1]:
            self._panes.setSizes([sizes[0], sizes[1] + sizes[2], 0])
        self.sidebar.setVisible(state.get("sidebar") != "0")

    def _come_on_screen(self) -> None:
        """Move to a screen that exists, where most of the window would be out of sight."""
        frame = self.frameGeometry()
        for screen in QApplication.screens():
            seen = frame.intersected(screen.availableGeometry())
            if 2 * seen.width() * seen.height() > frame.width() * frame.height():
                return
        place = QApplication.primaryScreen().availableGeometry()
        self.resize(self.size().boundedTo(place.size()))
        frame.setSize(self.size())
        frame.moveCenter(place.center())
        self.move(frame.topLeft())

    # Keys and events.

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._escape()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()
            self._overlay.begin()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._overlay.end()

    def dropEvent(self, event: QDropEvent) -> None:
        self._overlay.end()
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.files_dropped.emit(paths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._overlay.setGeometry(self.rect())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            QTimer.singleShot(0, self, self.painted.emit)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self._show_title()

    def _make_centre(self) -> QWidget:
        self._chat_title = ""
        centre = QWidget()
        centre.setObjectName("centre")
        self._header = QWidget()
        self._header.setObjectName("header")
        self._header.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sidebar_button = QToolButton()
        self.sidebar_button.setObjectName("icon_button")
        self.sidebar_button.setAccessibleName(self.tr("Show or hide the side bar"))
        self.sidebar_button.setToolTip(self.tr("Side bar (Ctrl+B)"))
        self.sidebar_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.sidebar_button.clicked.connect(self._toggle_sidebar)
        self._title = ElidedLabel(look="strong")
        self.model_button = button("", "quiet_button")
        self.model_button.clicked.connect(self._toggle_models)
        self._header_line = QHBoxLayout(self._header)
        self._header_line.addWidget(self.sidebar_button)
        self._header_line.addWidget(self._title, 1)
        self._header_line.addWidget(self.model_button)
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header)
        layout.addWidget(self.banner)
        layout.addWidget(self._pages, 1)
        return centre

    def _handlers(self) -> dict[str, Callable[[], object]]:
        theme = self.theme
        own: dict[str, Callable[[], object]] = {
            "models": self._toggle_models,
            "search_chats": self._focus_search,
            "find": self._find,
            "find_next": lambda: self.chat.find_bar.step(1),
            "find_previous": lambda: self.chat.find_bar.step(-1),
            "show_archive": lambda: self._show_shelf("archive"),
            "show_trash": lambda: self._show_shelf("trash"),
            "rename_chat": self.sidebar.chats.rename_current,
            "copy_reply": self.chat.view.copy_last_reply,
            "stop": self._escape,
            "focus_composer": self.show_chat,
            "focus_chats": lambda: self._focus_list(self.sidebar.chats.view),
            "focus_documents": lambda: self._focus_list(self.sidebar.documents.view),
            "next_pane": lambda: self._step_pane(1),
            "previous_pane": lambda: self._step_pane(-1),
            "sidebar": self._toggle_sidebar,
            "source": self._toggle_source,
            "zoom_in": theme.zoom_in,
            "zoom_out": theme.zoom_out,
            "zoom_reset": theme.reset_zoom,
            "scheme_system": lambda: theme.set_scheme("system"),
            "scheme_light": lambda: theme.set_scheme("light"),
            "scheme_dark": lambda: theme.set_scheme("dark"),
            "shortcuts": lambda: ShortcutsDialog(theme, self).open(),
            "quit": self.close,
        }
        others = ["new_chat", "delete_chat", "export_chat", "edit_question", "regenerate"]
        others += ["add_documents", "add_folder"]
        return own | {name: lambda name=name: self.action_triggered.emit(name) for name in others}

    def _escape(self) -> None:
        """Give Esc to what is open or going on: first a reply, then the source, the model page, a search."""
        search = self.sidebar.chats.search
        if self.chat.composer.is_streaming and self.page is self.chat:
            self.chat.composer.stop_requested.emit()
        elif self.chat.find_bar.isVisible():
            self.chat.find_bar.end()
        elif self.chat.edit_bar.isVisible():
            self.chat.edit_bar.cancel_requested.emit()
        elif search.hasFocus() and search.text():
            search.clear()
        elif not self.source.isHidden():
            self.close_source()
        elif self.page is self.models:
            self.models.close_requested.emit()
        else:
            self._focus_page()

    def _focus_page(self) -> None:
        first: dict[QWidget | None, QWidget] = {
            self.chat: self.chat.composer,
            self.models: self.models.import_button,
        }
        first.get(self.page, self.welcome.main_button).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _focus_list(self, view: QWidget) -> None:
        self.sidebar.show()
        view.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _focus_search(self) -> None:
        self.sidebar.show()
        search = self.sidebar.chats.search
        search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        search.selectAll()

    def _find(self) -> None:
        self.show_chat()
        self.chat.find_bar.begin()

    def _show_shelf(self, shelf: str) -> None:
        self.sidebar.show()
        self.sidebar.chats.choose_shelf(shelf)
        self._focus_list(self.sidebar.chats.view)

    def _step_pane(self, step: int) -> None:
        chat = self.chat
        others = self.models.import_button if self.page is self.models else self.welcome.main_button
        centre = [chat.view, chat.composer] if self.page is chat else [others]
        side, documents = self.sidebar, self.sidebar.documents
        chats = side.chats.view if side.chats.view.isVisible() else side.new_button
        shelf = documents.view if documents.view.isVisible() else documents.add_button
        panes = [pane for pane in (chats, shelf, *centre, self.source.focus_target) if pane.isVisible()]
        if not panes:
            return
        focus = QApplication.focusWidget()
        here = [
            i
            for i, pane in enumerate(panes)
            if focus is not None and (pane is focus or pane.isAncestorOf(focus))
        ]
        place = (here[-1] + step if here else 0) % len(panes)
        panes[place].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _toggle_sidebar(self) -> None:
        self.sidebar.setVisible(self.sidebar.isHidden())

    def _toggle_source(self) -> None:
        if not self.source.isHidden():
            self.close_source()
        elif self.source.source is not None:
            self.open_source()

    def _toggle_models(self) -> None:
        if self.page is self.models:
            self.models.close_requested.emit()
        else:
            self.show_models()

    def _show_menu(self) -> None:
        self.sidebar.show()
        place = self.sidebar.menu_button
        size = self.menu.sizeHint()
        self.menu.popup(place.mapToGlobal(QPoint(0, -size.height())))

    def _mark_scheme(self) -> None:
        self.actions_by_name[f"scheme_{self.theme.scheme}"].setChecked(True)

    def _show_title(self) -> None:
        titles: dict[QWidget | None, str] = {self.models: self.tr("Models"), self.welcome: ""}
        title = titles.get(self.page, self._chat_title)
        self._title.setText(title or ("" if self.page is self.welcome else self.tr("New chat")))
        shown = label(self._chat_title, 80)
        self.setWindowTitle(f"{shown} — Inglenook" if shown and self.page is self.chat else "Inglenook")

    def _restyle(self) -> None:
        px = self.theme.px
        self.setStyleSheet(window_style(self.theme))
        self._header_line.setContentsMargins(px(12), px(7), px(12), px(7))
        self._header_line.setSpacing(px(8))
        self.sidebar_button.setIcon(icon("sidebar", self.theme.colours.muted))
        self.sidebar_button.setIconSize(QSize(px(18), px(18)))
        self.source.setMinimumWidth(px(260))
        self.setMinimumSize(px(560), px(400))
        QTimer.singleShot(0, self, self._show_title)
