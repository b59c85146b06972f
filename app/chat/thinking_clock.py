"""`ThinkingClock`: measures for how long each reply is thought over, and keeps the time with the reply.

It listens to the texts as they arrive. Where the model's prompt has the first tag of a thought, the reply has only the
last one; that is noted at once, so that a reply cut off in the middle is still known as a thought. GUI thread only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from inglenook.app.answers.answering import Answer, Answering, Turn
from inglenook.app.bridge import CHAT, EngineBridge
from inglenook.app.chat.temporary_chat import MemoryTasks
from inglenook.app.tasks import Tasks
from inglenook.app.text.reasoning import part_reply
from inglenook.storage.messages import Messages

_LONGEST_TAG = 40


@dataclass(slots=True)
class _Thought:
    began_s: float
    end_tag: str
    text: str = ""
    seconds: float | None = None
    is_watched: bool = True


class ThinkingClock(QObject):
    """Watches the replies of what it is told to `watch`.

    Signals: `told(reply_id, seconds or None, end_tag)` when a thought begins, every second while it goes on, and when it
    ends.
    """

    told = Signal(int, object, str)

    def __init__(self, bridge: EngineBridge, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._thoughts: dict[int, _Thought] = {}
        self._second = QTimer(self, interval=1_000)
        self._second.timeout.connect(self._tick)

    def watch(self, answering: Answering, tasks: Tasks | MemoryTasks) -> None:
        """Measure the replies of `answering`, which are kept through `tasks`."""
        answering.turn_started.connect(self._take_turn)
        answering.reply_text.connect(lambda reply_id, text: self._take_text(reply_id, text, tasks))
        answering.reply_stopping.connect(lambda reply_id: self._stop(reply_id, tasks))
        answering.reply_ended.connect(lambda answer: self._take_end(answer, tasks))

    def seconds(self, reply_id: int) -> float | None:
        """How long a reply that is being written has been thought over; None not at all."""
        thought = self._thoughts.get(reply_id)
        return thought.seconds if thought else None

    def end_tag(self, reply_id: int) -> str:
        """What ends the thought that the prompt of a reply began; "" for none."""
        thought = self._thoughts.get(reply_id)
        return thought.end_tag if thought else ""

    def _take_turn(self, turn: Turn) -> None:
        """Go on counting where a reply that was cut off is gone on with."""
        reply = turn.reply
        if reply.text:
            began_s = time.monotonic() - (reply.reasoning_s or 0.0)
            parted = part_reply(reply.text, end_tag=reply.reasoning_end)
            is_watched = parted.is_open or not reply.text.strip()
            text = reply.text if is_watched else ""
            self._thoughts[reply.id] = _Thought(
                began_s, reply.reasoning_end, text, reply.reasoning_s, is_watched
            )
            if is_watched and reply.reasoning_s is not None:
                self._second.start()

    def _take_text(self, reply_id: int, text: str, tasks: Tasks | MemoryTasks) -> None:
        thought = self._thoughts.get(reply_id)
        if thought is None:
            facts = self._bridge.model_state(CHAT).facts
            tags = facts.reasoning if facts is not None else None
            end_tag = tags.end if tags is not None and tags.is_open else ""
            thought = self._thoughts[reply_id] = _Thought(time.monotonic(), end_tag)
            if end_tag:
                _save(reply_id, thought, tasks)
                self.told.emit(reply_id, None, end_tag)
        if not thought.is_watched:
            return
        thought.text += text
        parted = part_reply(thought.text, end_tag=thought.end_tag, is_streaming=True)
        if parted.is_open:
            if thought.seconds is None:
                thought.seconds = 0.0
                self._second.start()
        elif parted.has_thought:
            self._end(reply_id, thought, tasks)
        elif len(thought.text.lstrip()) > _LONGEST_TAG:
            # It began with its answer.
            thought.is_watched, thought.text = False, ""

    def _tick(self) -> None:
        going_on = [(id_, t) for id_, t in self._thoughts.items() if t.is_watched and t.seconds is not None]
        for reply_id, thought in going_on:
            thought.seconds = time.monotonic() - thought.began_s
            self.told.emit(reply_id, thought.seconds, thought.end_tag)
        if not going_on:
            self._second.stop()

    def _stop(self, reply_id: int, tasks: Tasks | MemoryTasks) -> None:
        thought = self._thoughts.get(reply_id)
        if thought is not None and thought.is_watched and thought.seconds is not None:
            self._end(reply_id, thought, tasks)

    def _end(self, reply_id: int, thought: _Thought, tasks: Tasks | MemoryTasks) -> None:
        thought.seconds = time.monotonic() - thought.began_s
        thought.is_watched, thought.text = False, ""
        _save(reply_id, thought, tasks)  # at once: the window may close before the reply has ended
        self.told.emit(reply_id, thought.seconds, thought.end_tag)

    def _take_end(self, answer: Answer, tasks: Tasks | MemoryTasks) -> None:
        self._stop(answer.reply.id, tasks)
        self._thoughts.pop(answer.reply.id, None)


def _save(reply_id: int, thought: _Thought, tasks: Tasks | MemoryTasks) -> None:
    seconds, end_tag = thought.seconds, thought.end_tag
    tasks.write(lambda db: Messages(db).set_reasoning(reply_id, seconds=seconds, end_tag=end_tag))
