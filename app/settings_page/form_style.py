"""The style sheet of forms: fields and lists to choose from, on pages and in dialogs.

Colours and sizes come from the theme alone; the sheet is made anew when the theme changes.
"""

from __future__ import annotations

from inglenook.app.window.theme import Theme


def form_style(theme: Theme) -> str:
    """Return the style sheet for the theme's present colours and scale."""
    c, px, ring = theme.colours, theme.px, theme.ring
    wider = theme.focus_width - 1
    small = theme.font(0.86).pointSizeF()
    return f"""
    QLineEdit, QComboBox, QPlainTextEdit#long_field {{
        background: {c.window}; color: {c.text}; border: 1px solid {c.border}; border-radius: {px(8)}px;
        selection-background-color: {c.selection}; selection-color: {c.on_selection};
    }}
    QLineEdit, QComboBox {{ padding: {px(5)}px {px(9)}px; min-height: {px(20)}px; }}
    QComboBox {{ padding-left: {px(11)}px; padding-right: {px(24)}px; }}
    QPlainTextEdit#long_field {{ padding: {px(5)}px {px(5)}px; }}
    QLineEdit:focus {{ {ring(5, 9)} }}
    QComboBox:focus {{ {ring(5, 9)} padding-left: {px(11) - wider}px; padding-right: {px(24) - wider}px; }}
    QPlainTextEdit#long_field:focus {{ {ring(5, 5)} }}
    QLineEdit[is_faulty="true"], QPlainTextEdit#long_field[is_faulty="true"] {{ border-color: {c.error}; }}
    QComboBox::drop-down {{ border: none; width: 0px; }}
    QComboBox QAbstractItemView {{
        background: {c.window}; color: {c.text}; border: 1px solid {c.border}; outline: none;
        selection-background-color: {c.hover}; selection-color: {c.text}; padding: {px(3)}px;
    }}
    #unit {{ color: {c.muted}; font-size: {small:.2f}pt; background: transparent; }}
    #setting_line {{ background: {c.border}; border: none; max-height: 1px; min-height: 1px; }}
    """
