"""How many tokens a text will be, without the model's tokenizer: its bytes, by a ratio that each reply corrects.

The engine alone counts exactly, and refuses a prompt that is too long with the numbers; then the ratio is lowered and
the prompt built anew.
"""

from __future__ import annotations

FIRST_BYTES_PER_TOKEN = 3.0
TOKENS_PER_MESSAGE = 8

_MOST, _LEAST = 4.5, 0.8
_CAUTION = 0.93
_AFTER_REFUSAL = 0.7


class TokenEstimate:
    """The ratio of one model."""

    def __init__(self) -> None:
        self.bytes_per_token = FIRST_BYTES_PER_TOKEN

    def count(self, text: str) -> int:
        """Return about how many tokens a text is; rather too many."""
        return round(len(text.encode("utf-8", "replace")) / self.bytes_per_token) + 1

    def observe(self, num_bytes: int, num_tokens: int) -> None:
        """Learn from a prompt whose tokens the engine has counted."""
        # Short prompts are mostly what the chat template adds.
        if num_bytes >= 1000 and num_tokens > 0:
            self.bytes_per_token = min(_MOST, max(_LEAST, _CAUTION * num_bytes / num_tokens))

    def lower(self) -> None:
        """Take tokens to be shorter, after a prompt was refused as too long."""
        self.bytes_per_token *= _AFTER_REFUSAL
