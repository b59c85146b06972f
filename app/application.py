"""The composition root: makes all the objects of the window's program, joins them, and closes them in order.

`run` is the program: one profile, one running window. A second start raises the first window and ends with 0.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from inglenook.app.answering import Answering
from inglenook.app.bridge import EngineBridge
from inglenook.app.indexing import Indexing
from inglenook.app.paths import UserFolders
from inglenook.app.tasks import Tasks


class Application(QObject):
    """All objects behind the window: `tasks`, `bridge`, `settings`, `models`, `answering`, `indexing`.

    Signals:
        opened(str): the history stands; a notice or "". Lists can be read from now on.
        refused(Exception): the history cannot be used (damaged, newer, read-only ...); its text says what to do.
        raised(): a second start asks for the window to come to the front.
    """

    opened = Signal(str)
    refused = Signal(object)
    raised = Signal()

    tasks: Tasks
    bridge: EngineBridge
    answering: Answering
    indexing: Indexing

    def __init__(self, folders: UserFolders) -> None:
        super().__init__()
        raise NotImplementedError

    def start(self) -> None:
        """Open the history, go on with unfinished documents, and load the model last used."""
        raise NotImplementedError

    def close(self) -> None:
        """Save, end all threads and processes; some seconds at most."""
        raise NotImplementedError
