"""`SlotMetrics`: what one slot has done so far, under vLLM's names, so that dashboards made for vLLM fit.

Values are flat names to numbers: counters and gauges as they are, a histogram as NAME_sum, NAME_count and
NAME_bucket.LIMIT (requests up to and including that limit). `exposition` writes a snapshot as Prometheus reads it, with
`inglenook:` in place of `vllm:`. Hits and queries of the prefix cache are in tokens.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

from inglenook.engine.homes.messages import Stats
from inglenook.engine.request import Finished, FinishReason, SamplingParams

PREFIX = "inglenook"
_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_HISTOGRAMS = {
    "time_to_first_token_seconds": _SECONDS,
    "time_per_output_token_seconds": _SECONDS,
    "e2e_request_latency_seconds": _SECONDS,
    "request_queue_time_seconds": _SECONDS,
    "request_inference_time_seconds": _SECONDS,
    "request_prefill_time_seconds": _SECONDS,
    "request_decode_time_seconds": _SECONDS,
    "time_per_prefill_token_request_seconds": _SECONDS,
    "request_prompt_tokens": _TOKENS,
    "request_generation_tokens": _TOKENS,
    "request_max_num_generation_tokens": _TOKENS,
    "request_params_n": (1, 2, 5, 10, 20),
    "request_params_max_tokens": _TOKENS,
    "iteration_tokens_total": _TOKENS,
}
_NEWEST = 0.1  # weight of the newest step in the moving average of the bandwidth
_COUNTERS = frozenset(
    (
        "prompt_tokens",
        "generation_tokens",
        "num_preemptions",
        "prefix_cache_queries",
        "prefix_cache_hits",
        "steps",
    )
)


class Histogram:
    """Counts of values by upper limits."""

    def __init__(self, limits: tuple[float, ...]) -> None:
        self._limits = limits
        self._counts = [0] * len(limits)
        self._sum = 0.0
        self._count = 0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._sum += value
        self._count += 1
        for index, limit in enumerate(self._limits):
            self._counts[index] += value <= limit

    def values(self, name: str) -> dict[str, float]:
        """Flat names to numbers."""
        buckets = {
            f"{name}_bucket.{limit:g}": count for limit, count in zip(self._limits, self._counts, strict=True)
        }
        return buckets | {f"{name}_sum": self._sum, f"{name}_count": self._count}


@dataclass(frozen=True, slots=True)
class Phases:
    """The times of one request that ended, in seconds; None for what it never came to.

    It waits from its arrival until it is first computed (queue), then until its first token (prefill), then until
    its last (decode); the latter two together are inference. `longest_reply` counts the tokens of its longest choice.
    """

    latency_s: float
    queue_s: float | None
    prefill_s: float | None
    decode_s: float | None
    longest_reply: int

    @property
    def inference_s(self) -> float | None:
        """From when it was first computed to its last token."""
        return None if self.prefill_s is None or self.decode_s is None else self.prefill_s + self.decode_s


@dataclass(slots=True)
class SlotMetrics:
    """Counters and histograms of one slot; the engine thread alone changes them."""

    num_steps: int = 0
    num_prompt_tokens: int = 0
    num_generation_tokens: int = 0
    num_drafts: int = 0
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0
    bandwidth_gb_s: float = 0.0
    _finished: Counter[str] = field(default_factory=Counter)
    _histograms: dict[str, Histogram] = field(
        default_factory=lambda: {name: Histogram(limits) for name, limits in _HISTOGRAMS.items()}
    )

    def observe_step(self, num_tokens: int) -> None:
        """Count a step that was computed."""
        self.num_steps += 1
        self._histograms["iteration_tokens_total"].observe(num_tokens)

    def observe_bandwidth(self, num_bytes: int, seconds: float) -> None:
        """Note what a step that only decoded read, weights and KV cache, in its time."""
        if seconds > 0:
            newest = num_bytes / seconds / 1e9
            known = self.bandwidth_gb_s
            self.bandwidth_gb_s = known + _NEWEST * (newest - known) if known else newest

    def observe_drafts(self, num_drafted: int, num_accepted: int) -> None:
        """Count the drafts of one sequence in one step."""
        self.num_drafts += 1
        self.num_drafted_tokens += num_drafted
        self.num_accepted_tokens += num_accepted

    def observe_end(self, finished: Finished, phases: Phases, params: SamplingParams) -> None:
        """Count a request that ended, whatever the reason; what it never came to is not counted."""
        self._finished[finished.finish_reason] += 1
        prefilled = finished.prompt_tokens - finished.cached_tokens
        per_token = None if phases.prefill_s is None else phases.prefill_s / max(1, prefilled)
        observed: dict[str, float | None] = {
            "time_to_first_token_seconds": finished.ttft_s,
            "time_per_output_token_seconds": finished.tpot_s,
            "e2e_request_latency_seconds": phases.latency_s,
            "request_queue_time_seconds": phases.queue_s,
            "request_inference_time_seconds": phases.inference_s,
            "request_prefill_time_seconds": phases.prefill_s,
            "request_decode_time_seconds": phases.decode_s,
            "time_per_prefill_token_request_seconds": per_token,
            "request_prompt_tokens": finished.prompt_tokens,
            "request_generation_tokens": finished.completion_tokens,
            "request_max_num_generation_tokens": phases.longest_reply,
            "request_params_n": params.n,
            "request_params_max_tokens": params.max_tokens,
        }
        for name, value in observed.items():
            if value is not None:
                self._histograms[name].observe(value)

    def values(self) -> dict[str, float]:
        """Flat names to numbers."""
        reasons: tuple[FinishReason, ...] = get_args(FinishReason)
        values: dict[str, float] = {
            "steps": self.num_steps,
            "prompt_tokens": self.num_prompt_tokens,
            "generation_tokens": self.num_generation_tokens,
            "spec_decode_num_drafts": self.num_drafts,
            "spec_decode_num_draft_tokens": self.num_drafted_tokens,
            "spec_decode_num_accepted_tokens": self.num_accepted_tokens,
            "achieved_bandwidth_gb_s": self.bandwidth_gb_s,
        } | {f"request_success.{reason}": self._finished[reason] for reason in reasons}
        for name, histogram in self._histograms.items():
            values |= histogram.values(name)
        return values


def exposition(stats: Stats) -> str:
    """Write a snapshot in Prometheus' text format, one line a number."""
    lines = []
    for key, value in stats.values.items():
        slot, dot, name = key.partition(".")
        if not dot or slot not in stats.slots:
            lines.append(f"{PREFIX}:{key} {_number(value)}")
            continue
        labels = {"slot": slot, "model_name": stats.slots[slot]}
        name, _, detail = name.partition(".")
        if detail:
            labels["le" if name.endswith("_bucket") else "finished_reason"] = detail
        if name in _COUNTERS or name == "request_success" or name.startswith("spec_decode_"):
            name += "_total"
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{PREFIX}:{name}{{{inside}}} {_number(value)}")
        if name.endswith("_count"):
            infinite = f'{inside},le="+Inf"'
            lines.append(f"{PREFIX}:{name.removesuffix('_count')}_bucket{{{infinite}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
