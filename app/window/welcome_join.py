"""Joins the welcome page with this computer: its cores, memory and card in words, and the way to the privacy page.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from inglenook.app.models.model_card import gigabytes
from inglenook.app.translations import figures
from inglenook.app.translations.figures import numbered
from inglenook.app.window.computer_words import Computer, this_computer
from inglenook.app.window.main_window import MainWindow
from inglenook.engine.memory import memory_state


class WelcomeJoin(QObject):
    """Fills in what the page says of the computer whenever it is shown."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        window.welcome.privacy_requested.connect(window.actions_by_name["privacy"].trigger)
        window.pages.shown.connect(lambda name: self.show() if name == "welcome" else None)
        self.show()

    def show(self) -> None:
        """Say what this computer is, as it is now."""
        memory = memory_state()
        computer = this_computer(memory.total_bytes, memory.free_bytes)
        self._window.welcome.set_computer(self.words(computer))

    def words(self, computer: Computer) -> str:
        """Say in two sentences what a computer is and what runs well on it."""
        parts = [
            self.tr("one processor core")
            if computer.num_cores == 1
            else numbered("{0} processor cores", computer.num_cores),
            self.tr("{0} of memory, of which {1} are free").format(
                gigabytes(computer.total_bytes), gigabytes(computer.free_bytes)
            ),
            computer.graphics or self.tr("no NVIDIA card"),
        ]
        first = self.tr("This computer: {0}.").format(figures.listed(parts))
        size = computer.largest_model
        if not size:
            return f"{first} " + self.tr(
                "There is room for the smallest models only; close other programs first."
            )
        if size < 1:
            return f"{first} " + self.tr("Models of up to half a billion parameters fit.")
        fits, quick = (_number(one) for one in (size, computer.largest_quick_model))
        if computer.graphics or fits == quick:
            second = self.tr("Models of up to {0} billion parameters fit, at 4 bits each.").format(fits)
        else:
            words = self.tr(
                "Models of up to {0} billion parameters fit; up to {1} billion answer as fast as one reads."
            )
            second = words.format(fits, quick)
        return f"{first} {second}"


def _number(size: float) -> str:
    return figures.significant(size)
