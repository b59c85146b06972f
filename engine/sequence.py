"""`Sequence`: the token ids of one completion and how far their keys and values are computed. Pure Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inglenook.engine.kv_blocks import BlockTables

if TYPE_CHECKING:
    from inglenook.engine.models.lora import LoraAdapter


@dataclass(slots=True, eq=False)
class Sequence:
    """One completion as the scheduler sees it.

    `tables` cover at least `num_computed` tokens. `cached_tokens` counts prompt tokens whose keys were found, set when
    the sequence is first scheduled. `priority` 0 is a person's turn; larger numbers wait for smaller ones. `drafts`
    are guesses at the next tokens, computed along with the next step and then dropped or confirmed. `salt` separates
    cached prefixes that must not be shared; `owner` names whose text this is, so that it can be forgotten. `arrival` numbers sequences in the order they came;
    `adapter` is the LoRA adapter that they are computed with; `refused_at` is the scheduler's note of how many blocks
    were to spare when there was no room for this one.
    """

    id: int
    token_ids: list[int]
    num_prompt_tokens: int
    choice: int = 0
    priority: int = 0
    salt: str = ""
    owner: str = ""
    num_computed: int = 0
    cached_tokens: int | None = None
    tables: BlockTables = field(default_factory=BlockTables)
    drafts: list[int] = field(default_factory=list)
    preemptions: int = 0
    arrival: int = 0
    adapter: LoraAdapter | None = None
    refused_at: int | None = None

    @property
    def num_pending(self) -> int:
        """Tokens whose keys and values are not computed yet."""
        return len(self.token_ids) - self.num_computed


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens `start` .. `start + count` of a sequence, and after them its drafts.

    When it `is_last`, logits are wanted of its last token and of each draft.
    """

    sequence: Sequence
    start: int
    count: int
    drafts: tuple[int, ...] = ()

    @property
    def is_last(self) -> bool:
        """Whether this chunk computes the sequence's newest token."""
        return self.start + self.count == len(self.sequence.token_ids)

    @property
    def num_rows(self) -> int:
        """Tokens computed, drafts included."""
        return self.count + len(self.drafts)

    @property
    def num_logits(self) -> int:
        """Rows of logits wanted."""
        return 1 + len(self.drafts) if self.is_last else 0


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The chunks of one step, at most one for a sequence."""

    chunks: tuple[Chunk, ...]

    @property
    def num_tokens(self) -> int:
        """Tokens computed in this step, drafts included."""
        return sum(chunk.num_rows for chunk in self.chunks)
