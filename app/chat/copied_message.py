"""A message on its way to the clipboard, as text alone or with its formatting."""

from __future__ import annotations

from PySide6.QtCore import QMimeData

from inglenook.app.text.elements_html import elements_of, html_of, text_of


def copied_message(text: str, *, is_plain: bool, is_rich: bool) -> QMimeData:
    """Return a message's words without marks; `is_rich` adds HTML, which a word processor takes."""
    elements, data = elements_of(text, is_plain=is_plain), QMimeData()
    data.setText(text_of(elements))
    if is_rich:
        data.setHtml(html_of(elements))
    return data
