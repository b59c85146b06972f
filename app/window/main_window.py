"""The window: side bar, the page in the centre, the source at the right, a line for what is wrong, and the keys.

It holds widgets and moves between them; what they show and what their signals cause is joined in `window_join.py`.
A page or an action that another part brings is registered with `add_page` and `on_action`. Nothing heavy is imported
here, so the first paint does not wait for storage or engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QSplitter, QVBoxLayout, QWidget

from inglenook.app.chat.chat_page import ChatPage
from inglenook.app.chat.copied_code import last_code
from inglenook.app.documents.drop_overlay import DropOverlay
from inglenook.app.documents.source_panel import SourcePanel
from inglenook.app.models.model_page import ModelPage
from inglenook.app.text.rich_text import label
from inglenook.app.window.actions import ACTIONS, make_actions, make_menu
from inglenook.app.window.banner import Banner
from inglenook.app.window.header import Header
from inglenook.app.window.pages import CHAT, Pages
from inglenook.app.window.shortcuts import Shortcuts
from inglenook.app.window.shortcuts_dialog import ShortcutsDialog
from inglenook.app.window.sidebar import Sidebar
from inglenook.app.window.theme import Theme
from inglenook.app.window.welcome_page import WelcomePage
from inglenook.app.window.window_place import put_back, saved_place
from inglenook.app.window.window_style import window_style


class MainWindow(QMainWindow):
    """All panes of the program. `is_restored` says whether it stands where it was left, `language` is the one chosen.

    Signals: `files_dropped(paths)` anywhere in the window; `closing()` before it closes; `painted()` once, after the
    first paint; `action_triggered(name)` for the actions that neither the window nor `on_action` has a handler for.
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
        self.language, self._chat_title = "system", ""
        self._added_handlers: dict[str, Callable[[], object]] = {}
        self.setObjectName("main_window")
        self.setWindowTitle("Inglenook")
        self.setAcceptDrops(True)
        self.sidebar = Sidebar(theme)
        self.header = Header(theme)
        self.banner = Banner(theme)
        self.chat = ChatPage(theme)
        self.models = ModelPage(theme)
        self.welcome = WelcomePage(theme)
        self.source = SourcePanel(theme)
        self.pages = Pages()
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
        self.shortcuts = Shortcuts(self.actions_by_name, parent=self)
        self.shortcuts.changed.connect(self._show_keys)
        self.menu = make_menu(self, self.actions_by_name)
        self.menu.aboutToShow.connect(self._mark_scheme)
        self.pages.shown.connect(self._show_title)
        self.add_page(CHAT, self.chat, "", lambda: self.chat.composer)
        self.add_page("models", self.models, self.tr("Models"), lambda: self.models.import_button)
        self.add_page("welcome", self.welcome, "", lambda: self.welcome.main_button)
        self.header.sidebar_requested.connect(self._toggle_sidebar)
        self.header.back_requested.connect(lambda: self.pages.toggle(self.pages.name))
        self.header.models_requested.connect(self.actions_by_name["models"].trigger)
        self.sidebar.menu_requested.connect(self._show_menu)
        self.sidebar.models_requested.connect(self.show_models)
        self.sidebar.new_chat_requested.connect(self.actions_by_name["new_chat"].trigger)
        self.chat.find_bar.closed.connect(self._focus_page)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show_keys()
        self.chat.composer.setFocus()
        self.resize(theme.px(1180), theme.px(780))
        self._panes.setSizes([theme.px(264), theme.px(916), 0])

    # What other parts bring.

    def add_page(
        self, name: str, page: QWidget, title: str, first: Callable[[], QWidget] | None = None
    ) -> None:
        """Register a page of the centre; the action of the table whose `page` is `name` is offered from now on.

        `first` says which widget the keyboard goes to. The page's signal `close_requested`, if it has one, closes it.
        """
        self.pages.add(name, page, title, first)
        for spec in ACTIONS:
            if spec.page == name:
                self.actions_by_name[spec.name].setVisible(True)
                self.actions_by_name[spec.name].setEnabled(True)

    def on_action(self, name: str, handler: Callable[[], object]) -> None:
        """Have an action of the table done by `handler`.

        Raises:
            KeyError: there is no action of that name.
        """
        self.actions_by_name[name].setEnabled(True)
        self._added_handlers[name] = handler

    # What it shows.

    def show_chat(self) -> None:
        """Bring the conversation to the front."""
        self.pages.show_page(CHAT)

    def show_models(self) -> None:
        """Bring the model page to the front."""
        self.pages.show_page("models")

    def show_welcome(self) -> None:
        """Show the page of the first run."""
        self.pages.show_page("welcome")

    @property
    def page(self) -> QWidget | None:
        """The page in the centre: `chat`, `models`, `welcome` or one that was added."""
        return self.pages.currentWidget()

    def set_title(self, title: str) -> None:
        """Show a conversation's title."""
        self._chat_title = title
        self._show_title()

    def set_model(self, words: str, tip: str = "") -> None:
        """Say in header and side bar which model answers."""
        self.header.set_model(words, tip)
        self.sidebar.set_model(words)

    @property
    def model_button(self) -> QWidget:
        """The header's button that names the model."""
        return self.header.model_button

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
        place = saved_place(self, self._panes, self.sidebar)
        return place | {
            "scale": str(self.theme.scale),
            "scheme": self.theme.scheme,
            "contrast": self.theme.contrast,
            "language": self.language,
        }

    def restore_state(self, state: Mapping[str, str]) -> None:
        """Put the window back as it was; what is missing or damaged is left as it is."""
        self.is_restored = put_back(self, self._panes, self.sidebar, state)

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
        centre = QWidget()
        centre.setObjectName("centre")
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self.banner)
        layout.addWidget(self.pages, 1)
        return centre

    def _handlers(self) -> dict[str, Callable[[], object]]:
        theme = self.theme
        own: dict[str, Callable[[], object]] = {
            "search_chats": self._focus_search,
            "find": self._find,
            "find_next": lambda: self.chat.find_bar.step(1),
            "find_previous": lambda: self.chat.find_bar.step(-1),
            "show_archive": lambda: self._show_shelf("archive"),
            "show_trash": lambda: self._show_shelf("trash"),
            "rename_chat": self.sidebar.chats.rename_current,
            "copy_reply": self.chat.view.copy_last_reply,
            "copy_code": self._copy_code,
            "stop": self._escape,
            "focus_composer": self.show_chat,
            "focus_chats": lambda: self._focus_list(self.sidebar.chats.view),
            "focus_documents": lambda: self._focus_list(self.sidebar.documents.view),
            "focus_source": self._focus_source,
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
            "contrast": lambda: theme.set_contrast("usual" if theme.is_high_contrast else "high"),
            "shortcuts": lambda: ShortcutsDialog(theme, self.shortcuts, self).open(),
            "menu": self._show_menu,
            "quit": self.close,
        }
        own |= {spec.name: partial(self.pages.toggle, spec.page) for spec in ACTIONS if spec.page}
        others = [spec.name for spec in ACTIONS if spec.name not in own]
        return own | {name: partial(self._do_added, name) for name in others}

    def _do_added(self, name: str) -> None:
        handler = self._added_handlers.get(name)
        if handler is not None:
            handler()
        else:
            self.action_triggered.emit(name)

    def _escape(self) -> None:
        """Give Esc to what is open or going on: first a reply, then the source, the page, a search."""
        search = self.sidebar.chats.search
        if self.chat.composer.is_streaming and self.page is self.chat:
            self.chat.composer.stop_requested.emit()
        elif self.chat.find_bar.isVisible():
            self.chat.find_bar.end()
        elif self.chat.edit_bar.isVisible():
            self.chat.edit_bar.cancel_requested.emit()
        elif search.hasFocus() and search.text():
            search.clear()
        elif self.page is self.chat and self.chat.take_escape():
            pass
        elif not self.source.isHidden():
            self.close_source()
        elif self.page not in (self.chat, self.welcome):
            self.pages.toggle(self.pages.name)
        else:
            self._focus_page()

    def _focus_page(self) -> None:
        self.pages.first.setFocus(Qt.FocusReason.ShortcutFocusReason)

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
        """Move the keyboard to the next pane that is in sight, round and round."""
        chat, side, documents = self.chat, self.sidebar, self.sidebar.documents
        centre = [chat.view, chat.composer] if self.page is chat else [self.pages.first]
        chats = side.chats.view if side.chats.view.isVisible() else side.new_button
        shelf = documents.view if documents.view.isVisible() else documents.add_button
        panes = [pane for pane in (chats, shelf, *centre, self.source.focus_target) if pane.isVisible()]
        if not panes:
            return
        focus = QApplication.focusWidget()
        here = (
            [i for i, pane in enumerate(panes) if focus is pane or pane.isAncestorOf(focus)] if focus else []
        )
        place = (here[-1] + step if here else 0) % len(panes)
        panes[place].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _toggle_sidebar(self) -> None:
        self.sidebar.setVisible(self.sidebar.isHidden())

    def _toggle_source(self) -> None:
        if not self.source.isHidden():
            self.close_source()
        elif self.source.source is not None:
            self.open_source()

    def _focus_source(self) -> None:
        if self.source.source is not None:
            self.open_source()
            self.source.focus_target.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _copy_code(self) -> None:
        replies = [message.text for message in self.chat.model.messages if message.role == "assistant"]
        if code := last_code(replies):
            QApplication.clipboard().setText(code)

    def _show_keys(self) -> None:
        """Name the keys of now where a button says them."""
        self.header.set_keys(self.shortcuts.shown("sidebar"))
        self.sidebar.set_keys({name: self.shortcuts.shown(name) for name in ("new_chat", "menu", "models")})

    def _show_menu(self) -> None:
        self.sidebar.show()
        place = self.sidebar.menu_button
        size = self.menu.sizeHint()
        self.menu.popup(place.mapToGlobal(QPoint(0, -size.height())))

    def _mark_scheme(self) -> None:
        self.actions_by_name[f"scheme_{self.theme.scheme}"].setChecked(True)
        self.actions_by_name["contrast"].setChecked(self.theme.is_high_contrast)

    def _show_title(self) -> None:
        is_chat = self.page is self.chat
        title = (self._chat_title or self.tr("New chat")) if is_chat else self.pages.title
        self.header.show_title(title, is_page=bool(title) and not is_chat)
        shown = label(self._chat_title if is_chat else title, 80)
        self.setWindowTitle(f"{shown} — Inglenook" if shown else "Inglenook")

    def _restyle(self) -> None:
        px = self.theme.px
        self.setStyleSheet(window_style(self.theme))
        self.source.setMinimumWidth(px(260))
        # On a screen of 1280 by 720 at twice the size, 640 by 360 are left; pages scroll what does not fit.
        self.pages.setMinimumSize(px(400), px(240))
        self.setMinimumSize(px(540), px(340))
        QTimer.singleShot(0, self, self._show_title)
