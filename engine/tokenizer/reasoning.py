"""`ReasoningTags`: the words between which a model writes its reasoning before it answers.

Models write it into their reply, between tags of their own. Whoever shows the reply wants to fold that part, so the
pair is looked for in the model's vocabulary and chat template. Some templates write the first tag themselves at the
end of every prompt: the reply then begins inside the reasoning, and only the second tag is in it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

_PAIRS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<reasoning>", "</reasoning>"),
)


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """A pair of tags; `is_open` says that a reply begins inside, after a first tag that stands in its prompt."""

    begin: str
    end: str
    is_open: bool = False


def find_reasoning(template: str, control_tokens: Collection[str]) -> ReasoningTags | None:
    """The tags of a model with this chat template and these tokens that are matched whole; None if it has none."""
    for begin, end in _PAIRS:
        # A template may name only the end tag, to take the reasoning out of earlier replies.
        if end in template or {begin, end} <= set(control_tokens):
            return ReasoningTags(begin, end)
    return None


def opens_reasoning(tags: ReasoningTags, prompt: str) -> bool:
    """Whether a prompt's text ends inside the reasoning."""
    begun, ended = prompt.rfind(tags.begin), prompt.rfind(tags.end)
    return begun >= 0 and begun > ended and not prompt[begun + len(tags.begin) :].strip()
