"""Colours, fonts and spacings of the window, all in one place: light and dark, each also with high contrast.

`Theme` follows the system's colour scheme and its wish for contrast live unless told otherwise, scales every font and
distance by one factor, and says `changed` when anything did. Widgets take colours from `theme.colours` or from the
palette, never from their own literals. Text has a contrast of at least 4.5 to 1 on every ground it is used on, 7 to 1
with high contrast, and what shows the keyboard's place at least 3 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

COLUMN_WIDTH = 720
"""Of a conversation and of every page: lines of some ninety letters, and eighty columns of code."""
SIDE_MARGIN = 36
"""What is free at least at both sides of a column in the centre, the scroll bar's room included."""
READING = 1.07
"""How much larger than the window's own the text is that is read or written at length."""
SCROLL_BAR_WIDTH = 12
MIN_SCALE, MAX_SCALE, SCALE_STEP = 0.7, 3.0, 0.1
_SMALLEST_BODY_POINTS = 10.5
_STYLE = "inglenook_style"
_GENERIC_FAMILIES = {"Sans Serif", "Sans", "sans-serif", ""}
Scheme = Literal["system", "light", "dark"]
Contrast = Literal["system", "usual", "high"]


@dataclass(frozen=True, slots=True)
class Colours:
    """One colour scheme; each is "#rrggbb"."""

    window: str
    panel: str
    text: str
    muted: str
    border: str
    accent: str
    on_accent: str
    bubble: str
    code: str
    code_border: str
    inline_code: str
    hover: str
    selection: str
    on_selection: str
    error: str
    error_ground: str
    caution: str
    tokens: dict[str, str] = field(hash=False)


LIGHT = Colours(
    window="#ffffff", panel="#f7f5f2", text="#1f1d1b", muted="#6a655f", border="#dcd7d0", accent="#a4471a",
    on_accent="#ffffff", bubble="#f3eee7", code="#f8f6f3", code_border="#e6e1da", inline_code="#f1ece5",
    hover="#ece7e0", selection="#f0cdb8", on_selection="#1f1d1b", error="#a3231b", error_ground="#fdf0ee",
    caution="#8a4700",
    tokens={
        "keyword": "#98286b", "string": "#2b6b2c", "comment": "#6a655f", "number": "#8a4700",
        "function": "#1d5aa6", "builtin": "#66459a",
    },
)  # fmt: skip
DARK = Colours(
    window="#1d1b1a", panel="#242120", text="#ebe7e2", muted="#a8a199", border="#3f3a36", accent="#f09a63",
    on_accent="#1d1b1a", bubble="#34302c", code="#262322", code_border="#3a3532", inline_code="#35302d",
    hover="#39342f", selection="#7a4526", on_selection="#ffffff", error="#ff9a8f", error_ground="#3a2422",
    caution="#f0b477",
    tokens={
        "keyword": "#f191b8", "string": "#9fd391", "comment": "#a8a199", "number": "#f0b477",
        "function": "#8fbcff", "builtin": "#c9adf6",
    },
)  # fmt: skip

LIGHT_CONTRAST = Colours(
    window="#ffffff", panel="#ffffff", text="#000000", muted="#2b2b2b", border="#000000", accent="#7a2600",
    on_accent="#ffffff", bubble="#ededed", code="#ffffff", code_border="#000000", inline_code="#ededed",
    hover="#e2e2e2", selection="#00319e", on_selection="#ffffff", error="#8a0000", error_ground="#ffffff",
    caution="#5c2f00",
    tokens={
        "keyword": "#6d0f48", "string": "#0b4d0d", "comment": "#3a3a3a", "number": "#5c2f00",
        "function": "#003a85", "builtin": "#42207a",
    },
)  # fmt: skip
DARK_CONTRAST = Colours(
    window="#000000", panel="#000000", text="#ffffff", muted="#e0e0e0", border="#ffffff", accent="#ffc14d",
    on_accent="#000000", bubble="#262626", code="#000000", code_border="#ffffff", inline_code="#262626",
    hover="#333333", selection="#ffe066", on_selection="#000000", error="#ffb3ab", error_ground="#000000",
    caution="#ffd75e",
    tokens={
        "keyword": "#ffb3d4", "string": "#b4f2a8", "comment": "#d0d0d0", "number": "#ffd08a",
        "function": "#b3d4ff", "builtin": "#dcc8ff",
    },
)  # fmt: skip


class Theme(QObject):
    """The look of the running program.

    Signals: `changed` after colours or scale changed; widgets then take fonts and colours anew. GUI thread only.
    """

    changed = Signal()

    def __init__(
        self,
        application: QApplication,
        *,
        scheme: Scheme = "system",
        scale: float = 1.0,
        contrast: Contrast = "system",
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._application = application
        self._scheme: Scheme = scheme
        self._contrast: Contrast = contrast
        self.has_motion = True
        self._scale = min(MAX_SCALE, max(MIN_SCALE, scale))
        system = application.font()
        self._points = max(_SMALLEST_BODY_POINTS, system.pointSizeF())
        # A generic alias often means the widest font of the machine.
        generic = system.family() in _GENERIC_FAMILIES
        self._families = ["Inter", "Noto Sans", "DejaVu Sans"] if generic else [system.family()]
        if application.property(_STYLE) != "Fusion":  # with a style sheet, Qt no longer says which one it is
            application.setStyle("Fusion")
            application.setProperty(_STYLE, "Fusion")
        # Kept, because what it hands out ends with it on the Python side.
        self._hints = application.styleHints()
        self._system_scheme = self._hints.colorScheme()
        self._hints.colorSchemeChanged.connect(self._follow_system)
        self._system_wants_contrast = False
        # Qt asks the system from 6.10 on.
        if hasattr(self._hints, "accessibility"):
            self._wishes = self._hints.accessibility()
            self._system_wants_contrast = _wants_contrast(self._wishes.contrastPreference())
            self._wishes.contrastPreferenceChanged.connect(self._follow_contrast)
        self._apply()

    @property
    def colours(self) -> Colours:
        """The colours in force."""
        if self.is_high_contrast:
            return DARK_CONTRAST if self.is_dark else LIGHT_CONTRAST
        return DARK if self.is_dark else LIGHT

    @property
    def is_high_contrast(self) -> bool:
        """Whether colours of high contrast are in force."""
        return self._system_wants_contrast if self._contrast == "system" else self._contrast == "high"

    @property
    def focus_width(self) -> int:
        """How wide the ring around what has the keyboard is, in pixels."""
        return max(2, self.px(3 if self.is_high_contrast else 2))

    @property
    def is_dark(self) -> bool:
        """Whether the dark scheme is in force."""
        if self._scheme == "system":
            return self._system_scheme == Qt.ColorScheme.Dark
        return self._scheme == "dark"

    @property
    def scheme(self) -> Scheme:
        """What the user chose: "system", "light" or "dark"."""
        return self._scheme

    @property
    def contrast(self) -> Contrast:
        """What the user chose: "system", "usual" or "high"."""
        return self._contrast

    @property
    def scale(self) -> float:
        """The factor of all fonts and distances; 1.0 is the usual size."""
        return self._scale

    def set_scheme(self, scheme: Scheme) -> None:
        """Use a scheme, or follow the system's."""
        if scheme != self._scheme:
            self._scheme = scheme
            self._apply()

    def set_contrast(self, contrast: Contrast) -> None:
        """Use high contrast or not, or follow the system."""
        if contrast != self._contrast:
            self._contrast = contrast
            self._apply()

    def set_motion(self, has_motion: bool) -> None:
        """Let things move that are going on, or have them stand still."""
        if has_motion != self.has_motion:
            self.has_motion = has_motion
            self.changed.emit()

    def set_scale(self, scale: float) -> None:
        """Scale fonts and distances, within 0.7 to 3."""
        scale = round(min(MAX_SCALE, max(MIN_SCALE, scale)), 2)
        if scale != self._scale:
            self._scale = scale
            self._apply()

    def zoom_in(self) -> None:
        """Make everything a step larger."""
        self.set_scale(self._scale + SCALE_STEP)

    def zoom_out(self) -> None:
        """Make everything a step smaller."""
        self.set_scale(self._scale - SCALE_STEP)

    def reset_zoom(self) -> None:
        """Go back to the usual size."""
        self.set_scale(1.0)

    def px(self, distance: float) -> int:
        """Scale a distance given for the usual size."""
        return round(distance * self._scale)

    def font(self, factor: float = 1.0, *, bold: bool = False) -> QFont:
        """The font of running text, `factor` times its size."""
        font = QFont(self._families)
        font.setPointSizeF(self._points * self._scale * factor)
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        return font

    def code_font(self) -> QFont:
        """The font of code."""
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
        font = QFont(["JetBrains Mono", "Cascadia Mono", "Menlo", "DejaVu Sans Mono", fixed])
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPointSizeF(self._points * self._scale * READING * 0.92)
        return font

    def palette(self) -> QPalette:
        """The colours as Qt's widgets take them."""
        c, palette, role = self.colours, QPalette(), QPalette.ColorRole
        for name, colour in {
            role.Window: c.panel, role.WindowText: c.text, role.Base: c.window, role.AlternateBase: c.panel,
            role.Text: c.text, role.Button: c.panel, role.ButtonText: c.text, role.BrightText: c.error,
            role.Highlight: c.selection, role.HighlightedText: c.on_selection, role.Link: c.accent,
            role.LinkVisited: c.accent, role.ToolTipBase: c.panel, role.ToolTipText: c.text,
            role.PlaceholderText: c.muted, role.Mid: c.border, role.Midlight: c.hover, role.Dark: c.border,
            role.Light: c.window, role.Shadow: c.border, role.Accent: c.accent,
        }.items():  # fmt: skip
            palette.setColor(name, QColor(colour))
        for name in (role.Text, role.WindowText, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, name, QColor(c.muted))
        return palette

    def ring(self, vertical: float, horizontal: float, colour: str = "") -> str:
        """Return the style of a control with the keyboard, whose padding is otherwise `vertical` and `horizontal`.

        The ring takes from the padding what it is wider than the usual border, so that nothing moves. Its colour is the
        accent, unless the control has that itself.
        """
        width, px = self.focus_width, self.px
        above, aside = max(0, px(vertical) - width + 1), max(0, px(horizontal) - width + 1)
        return f"border: {width}px solid {colour or self.colours.accent}; padding: {above}px {aside}px;"

    def style_sheet(self) -> str:
        """The shapes that a palette cannot say: buttons, chips, bars, by object name."""
        c, px, ring = self.colours, self.px, self.ring
        return f"""
        QToolTip {{ background: {c.panel}; color: {c.text}; border: 1px solid {c.border}; padding: {px(4)}px; }}
        QMenu {{ background: {c.window}; color: {c.text}; border: 1px solid {c.border}; padding: {px(4)}px; }}
        QMenu::item {{ padding: {px(5)}px {px(18)}px; border-radius: {px(5)}px; }}
        QMenu::item:selected {{ background: {c.hover}; color: {c.text}; }}
        QMenu::item:disabled {{ color: {c.muted}; }}
        QScrollBar:vertical {{ background: transparent; width: {px(SCROLL_BAR_WIDTH)}px; margin: 0; }}
        QScrollBar::handle:vertical {{
            background: {c.border}; min-height: {px(32)}px; border-radius: {px(4)}px; margin: {px(2)}px;
        }}
        QScrollBar::handle:vertical:hover {{ background: {c.muted}; }}
        QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
        QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
        #message_view, #composer {{ background: {c.window}; border: none; }}
        #quiet_button, #attach_button {{
            background: transparent; color: {c.muted}; border: 1px solid transparent;
            border-radius: {px(6)}px; padding: {px(3)}px {px(8)}px;
        }}
        #quiet_button {{ min-height: {px(17)}px; }}
        #quiet_button:hover, #attach_button:hover {{ background: {c.hover}; color: {c.text}; }}
        #quiet_button:focus, #attach_button:focus {{ {ring(3, 8)} }}
        #chip:focus {{ {ring(3, 10)} }}
        #message_status {{ color: {c.muted}; background: transparent; }}
        #message_status[failed="true"] {{ color: {c.error}; }}
        #chip {{
            background: {c.panel}; color: {c.text}; border: 1px solid {c.border};
            border-radius: {px(11)}px; padding: {px(3)}px {px(10)}px;
        }}
        #plain_button, #danger_button {{
            background: {c.window}; color: {c.text}; border: 1px solid {c.border};
            border-radius: {px(9)}px; padding: {px(5)}px {px(13)}px;
        }}
        #danger_button {{ color: {c.error}; }}
        #chip:hover, #plain_button:hover, #danger_button:hover {{ background: {c.hover}; }}
        #plain_button:focus, #danger_button:focus {{ {ring(5, 13)} }}
        #plain_button:disabled {{ color: {c.muted}; background: {c.hover}; border-color: {c.hover}; }}
        #chip[verified="false"] {{ border-style: dashed; color: {c.muted}; }}
        #primary_button {{
            background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
            border-radius: {px(9)}px; padding: {px(5)}px {px(15)}px; font-weight: 600;
        }}
        #primary_button:focus {{ {ring(5, 15, c.text)} }}
        #primary_button:disabled {{ background: {c.hover}; border-color: {c.hover}; color: {c.muted}; }}
        #send_button {{ background: {c.accent}; border: 2px solid {c.accent}; border-radius: {px(11)}px; }}
        #send_button:focus {{ border: 2px solid {c.text}; }}
        #send_button:disabled {{ background: {c.hover}; border-color: {c.hover}; }}
        #composer_frame {{ background: {c.window}; border: 1px solid {c.border}; border-radius: {px(16)}px; }}
        #composer_frame[focused="true"] {{ border: {self.focus_width}px solid {c.accent}; }}
        #composer_frame[dropping="true"] {{ border: 2px dashed {c.accent}; background: {c.panel}; }}
        #composer_edit {{ background: transparent; border: none; placeholder-text-color: {c.muted}; }}
        """

    def _follow_system(self, scheme: Qt.ColorScheme) -> None:
        self._system_scheme = scheme
        if self._scheme == "system":
            self._apply()

    def _follow_contrast(self, preference: object) -> None:
        self._system_wants_contrast = _wants_contrast(preference)
        if self._contrast == "system":
            self._apply()

    def _apply(self) -> None:
        # Setting what is set already polishes every widget again.
        if self._application.font() != self.font():
            self._application.setFont(self.font())
        if self._application.palette() != self.palette():
            self._application.setPalette(self.palette())
        if self._application.styleSheet() != self.style_sheet():
            self._application.setStyleSheet(self.style_sheet())
        self.changed.emit()


def _wants_contrast(preference: object) -> bool:
    return preference == Qt.ContrastPreference.HighContrast


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours after WCAG 2, from 1 to 21."""
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
