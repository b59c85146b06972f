"""The model doctor's knowledge of chat formats: is a template the one that its model was trained with?

A model's control tokens say which format it knows, because each family has its own. A template that writes a turn
otherwise, or writes another family's tokens, which are then ordinary text to the model, was put there by mistake:
the model still answers, and worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inglenook.engine.model_doctor.report import Finding

# the token that a format is known by -> how it may write a question, and how a reply begins after it
_FORMATS: dict[str, tuple[tuple[str, ...], str]] = {
    "<|im_sep|>": (("<|im_start|>user<|im_sep|>{}<|im_end|>",), "<|im_start|>assistant<|im_sep|>"),
    "<|im_start|>": (("<|im_start|>user\n{}<|im_end|>\n",), "<|im_start|>assistant\n"),
    "<|start_header_id|>": (
        ("<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>",),
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "<start_of_turn>": (("<start_of_turn>user\n{}<end_of_turn>\n",), "<start_of_turn>model\n"),
    "<|start_of_role|>": (
        ("<|start_of_role|>user<|end_of_role|>{}<|end_of_text|>\n",),
        "<|start_of_role|>assistant",
    ),
    "<｜User｜>": (("<｜User｜>{}",), "<｜Assistant｜>"),
    "<|end|>": (("<|user|>\n{}<|end|>\n", "<|user|>{}<|end|>"), "<|assistant|>"),
    "[INST]": (("[INST] {} [/INST]", "[INST] {}[/INST]", "[INST]{}[/INST]"), ""),
}
# what only a template writes that means these as tokens; <|user|> is ordinary text in some families
_MARKERS = (
    "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "<|start_of_role|>", "<|end_of_role|>", "<｜User｜>", "<｜Assistant｜>",
    "<|endoftext|>", "<|end_of_text|>", "<|end|>",
)  # fmt: skip


def format_findings(prompt: str, question: str, tokens: Collection[str]) -> Iterator[Finding]:
    """Findings on a rendered chat that ends with `question`; `tokens` are the model's that are matched whole."""
    foreign = [marker for marker in _MARKERS if marker in prompt and marker not in tokens]
    if foreign:
        yield Finding(
            "format",
            "amber",
            f"The chat template writes {', '.join(foreign)}, which this model has no token for: it looks like another "
            "model's template.",
        )
        return
    known = [token for token in _FORMATS if token in tokens]
    if not known:
        yield Finding("format", "green", "The model's tokens are of no chat format that is known here.")
    elif any(_follows(prompt, question, token) for token in known):
        yield Finding(
            "format", "green", "The chat template writes turns as models with these tokens know them."
        )
    else:
        turn = _FORMATS[known[0]][0][0].format("...")
        yield Finding(
            "format",
            "amber",
            f"The chat template does not write a question as {turn!r}, which models with these tokens were trained on.",
        )


def _follows(prompt: str, question: str, token: str) -> bool:
    turns, reply = _FORMATS[token]
    ends = (prompt.rpartition(turn.format(question)) for turn in turns)
    return any(found and rest.startswith(reply) for _, found, rest in ends)
