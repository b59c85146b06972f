"""The style sheet of the main window: what its panes, lists, cards and labels look like, by name and by `look`.

Colours and sizes come from the theme alone. The sheet is made anew when the theme changes.
"""

from __future__ import annotations

from inglenook.app.window.theme import SCROLL_BAR_WIDTH, Theme


def window_style(theme: Theme) -> str:
    """Return the style sheet for the theme's present colours and scale."""
    c, px, ring = theme.colours, theme.px, theme.ring

    def points(factor: float) -> str:
        return f"font-size: {theme.font(factor).pointSizeF():.2f}pt;"

    return f"""
    #main_window, #centre, #page {{ background: {c.window}; }}
    #sidebar, #source_panel {{ background: {c.panel}; }}
    #sidebar {{ border-right: 1px solid {c.border}; }}
    #source_panel {{ border-left: 1px solid {c.border}; }}
    QSplitter::handle {{ background: transparent; }}
    #sidebar QSplitter::handle:vertical {{ background: {c.border}; margin: 0 {px(10)}px; }}
    QScrollArea#page_scroll {{ background: {c.window}; border: none; }}
    #source_panel QScrollArea, #source_panel QScrollArea > QWidget {{ background: {c.panel}; }}
    #source_panel QPlainTextEdit {{ background: {c.window}; border-radius: {px(8)}px; padding: {px(8)}px; }}
    PlainLabel, ElidedLabel {{ background: transparent; color: {c.text}; }}
    *[look="muted"] {{ color: {c.muted}; {points(0.94)} }}
    *[look="small"] {{ color: {c.muted}; {points(0.86)} }}
    *[look="strong"] {{ font-weight: 600; }}
    *[look="title"] {{ font-weight: 600; {points(1.75)} }}
    *[look="heading"] {{ font-weight: 600; {points(1.12)} }}
    *[look="error"] {{ color: {c.error}; {points(0.94)} }}
    *[look="caution"] {{ color: {c.caution}; {points(0.94)} }}
    *[look="pill"] {{
        color: {c.text}; background: {c.hover}; border-radius: {px(9)}px; padding: {px(2)}px {px(9)}px; {points(0.82)}
    }}
    *[look="pill"][fit="maybe"], *[look="pill"][fit="no"] {{
        background: transparent; border: 1px solid {c.border}; color: {c.muted};
    }}
    *[look="pill"][fit="no"] {{ color: {c.error}; }}
    #section {{ color: {c.muted}; font-weight: 600; {points(0.82)} }}
    #header {{ background: {c.window}; border-bottom: 1px solid {c.border}; }}
    #banner {{ background: {c.bubble}; border-radius: {px(10)}px; }}
    #find_bar {{
        background: {c.bubble}; border-bottom-left-radius: {px(10)}px; border-bottom-right-radius: {px(10)}px;
    }}
    #banner[tone="error"] {{ background: {c.error_ground}; }}
    #card {{ background: {c.panel}; border: 1px solid {c.border}; border-radius: {px(12)}px; }}
    #card[is_loaded="true"] {{ border: 1px solid {c.accent}; }}
    #quote {{ background: {c.bubble}; border: none; border-radius: {px(8)}px; }}
    QListView#list {{ background: transparent; border: none; outline: none; }}
    QLineEdit {{
        background: {c.window}; color: {c.text}; border: 1px solid {c.border}; border-radius: {px(8)}px;
        padding: {px(5)}px {px(9)}px; placeholder-text-color: {c.muted}; selection-background-color: {c.selection}; selection-color: {c.on_selection};
    }}
    QLineEdit:focus {{ {ring(5, 9)} }}
    #side_button {{
        background: {c.window}; color: {c.text}; border: 1px solid {c.border}; border-radius: {px(9)}px;
        padding: {px(7)}px {px(12)}px; text-align: left;
    }}
    #side_button:hover {{ background: {c.hover}; }}
    #side_button:focus {{ {ring(7, 12)} }}
    #example {{
        background: {c.panel}; color: {c.text}; border: 1px solid {c.border}; border-radius: {px(10)}px;
        padding: {px(10)}px {px(14)}px; text-align: left;
    }}
    #example:hover {{ background: {c.hover}; }}
    #example:focus {{ {ring(10, 14)} }}
    #quiet_button:disabled {{ color: {c.border}; }}
    #icon_button {{
        background: transparent; color: {c.muted}; border: 1px solid transparent; border-radius: {px(7)}px;
        padding: {px(4)}px;
    }}
    #icon_button::menu-indicator {{ image: none; width: 0; }}
    #icon_button:hover {{ background: {c.hover}; color: {c.text}; }}
    #icon_button:focus {{ {ring(4, 4)} }}
    #icon_button:disabled {{ color: {c.border}; }}
    QProgressBar {{
        background: {c.hover}; border: none; border-radius: {px(3)}px; min-height: {px(6)}px; max-height: {px(6)}px;
    }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: {px(3)}px; }}
    QScrollBar:horizontal {{ background: transparent; height: {px(SCROLL_BAR_WIDTH)}px; margin: 0; }}
    QScrollBar::handle:horizontal {{
        background: {c.border}; min-width: {px(32)}px; border-radius: {px(4)}px; margin: {px(2)}px;
    }}
    QMenuBar {{ background: {c.panel}; color: {c.text}; }}
    QMenuBar::item {{ padding: {px(4)}px {px(9)}px; border-radius: {px(5)}px; background: transparent; }}
    QMenuBar::item:selected {{ background: {c.hover}; }}
    QDialog {{ background: {c.window}; }}
    QMessageBox QLabel {{ min-width: {px(340)}px; color: {c.text}; }}
    QMessageBox QLabel#qt_msgbox_label {{ font-weight: 600; }}
    QMessageBox QLabel#qt_msgbox_informativelabel {{ color: {c.muted}; }}
    #palette {{ border: 1px solid {c.border}; }}
    """
