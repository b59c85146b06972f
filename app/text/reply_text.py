"""`ReplyText`: the text of one message as it is shown, growing or whole: its thought, folded or not, and its answer.

Both are cut into blocks by `markdown_blocks.py` and gathered into parts, each of which one row shows; those of an
unfolded thought stand first, behind a bar. A user's words have no thought. Without Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inglenook.app.text.markdown_blocks import StreamingMarkdown
from inglenook.app.text.reasoning import PartedReply, may_have_tags, part_reply
from inglenook.app.text.rich_text import Element


@dataclass
class ReplyText:
    """What has been read of a message. `end_tag` ends a thought that the prompt began."""

    is_plain: bool = False
    end_tag: str = ""
    is_unfolded: bool = False
    text: str = ""
    thought: StreamingMarkdown = field(default_factory=StreamingMarkdown)
    answer: StreamingMarkdown = field(init=False)
    has_thought: bool = False
    is_open: bool = False
    _has_tags: bool = False
    _num_checked: int = 0

    def __post_init__(self) -> None:
        self.answer = StreamingMarkdown(is_plain=self.is_plain)

    def take(self, text: str, limit: int, *, is_streaming: bool) -> bool:
        """Read up to `limit` more characters of `text`, which begins with what was read; say whether more is left."""
        self._look_for_tags(text)
        if not self._has_tags:
            begin = len(self.answer.text)
            self.answer.feed(text[begin : begin + limit])
            self.text = self.answer.text
            return len(self.text) < len(text)
        parted = part_reply(text, end_tag=self.end_tag, is_streaming=is_streaming)
        self.has_thought, self.is_open = parted.has_thought, parted.is_open
        is_more = self._grow("thought", parted.thought, limit) | self._grow("answer", parted.answer, limit)
        # Not before all of it is cut does this stand for the text.
        self.text = "" if is_more else text
        return is_more

    def _look_for_tags(self, text: str) -> None:
        if self.is_plain or self._has_tags:
            return
        is_short = len(text) < 40
        self._has_tags = bool(self.end_tag) or is_short or may_have_tags(text, self._num_checked)
        self._num_checked = len(text)
        if is_short and not self.end_tag:
            # The beginning of a tag may stand there; looked at again until it is long enough.
            self._has_tags = False
            parted = part_reply(text, is_streaming=True)
            self._has_tags = parted.has_thought or not parted.pieces

    def _grow(self, name: str, text: str, limit: int) -> bool:
        blocks: StreamingMarkdown = getattr(self, name)
        if not text.startswith(blocks.text):
            blocks = StreamingMarkdown()
            setattr(self, name, blocks)
        begin = len(blocks.text)
        blocks.feed(text[begin : begin + limit])
        return len(blocks.text) < len(text)

    @property
    def num_thought_parts(self) -> int:
        """How many rows show the thought now."""
        return self.thought.num_parts if self.is_unfolded and self.thought.blocks else 0

    @property
    def num_parts(self) -> int:
        """How many rows show the message; at least one."""
        has_answer = bool(self.answer.blocks) or not self.num_thought_parts
        return self.num_thought_parts + (self.answer.num_parts if has_answer else 0)

    def elements(self, part: int) -> list[Element]:
        """Everything that one row shows."""
        before = self.num_thought_parts
        if part >= before:
            return self.answer.elements(part - before)
        return [element._replace(quote=element.quote + 1) for element in self.thought.elements(part)]

    def code_of(self, part: int, index: int) -> str:
        """The exact text of the code box that begins as the `index`-th of a row."""
        before = self.num_thought_parts
        if part >= before:
            return self.answer.code_of(part - before, index)
        return self.thought.code_of(part, index)


def answer_of(text: str, end_tag: str = "") -> str:
    """Return what a reply answers, without what was thought; all of it where nothing was answered and nothing thought."""
    return parted(text, end_tag).answer


def parted(text: str, end_tag: str = "") -> PartedReply:
    """Part a whole reply."""
    return part_reply(text, end_tag=end_tag)
