"""How the engine serves several users at once, on one model, through `EngineClient` in this process.

    python tests/bench/serving.py --model MODEL [--users 1,4,8,16] [--rounds 2] [--parts users,prefix,...] [--json]

Parts, each on an engine of its own, all greedy with `ignore_eos` unless said otherwise:

- users        each user sends one request of `--prompt` tokens of their own and reads `--reply` tokens, all at the
               same moment; medians over the rounds. `decode_tok_s` counts tokens between the moment when the last
               user got a first token and the moment when the first user ended: while all decode. `kv_waste` is the
               mean share of block space held but not filled, sampled meanwhile.
- prefix       TTFT of a second question (32 new tokens) over a shared 2,000-token prefix, by the cold one's: median
               of 10 pairs.
- person       TTFT of a turn of priority 0 that arrives while 8 requests of priority 2 decode, by its TTFT alone:
               medians of 5.
- speculation  decode speed with guesses by the speed without: on replies that go on quoting a 1,500-token passage of
               words, on random text (temperature 1.5), and on random text of 24 words, which guesses cannot help
               but find repetitions in: medians of 8 pairs, turn and turn about.

The last line is one JSON object; its `bars` say what was wanted and whether it was met. Run it on an idle machine:
all parts take about two and a half minutes with SmolLM2-135M on 2 cores.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inglenook.engine.client import EngineClient
from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.request import Event, Finished, LoadOptions, Request, SamplingParams, TokenText

WAIT_S = 600.0
PARTS = ("users", "prefix", "person", "speculation")
Figures = dict[str, float]


@dataclass
class Timeline:
    """When a request's tokens came, in seconds of `time.perf_counter()`."""

    sent: float = field(default_factory=time.perf_counter)
    tokens: list[float] = field(default_factory=list)
    finished: Finished | None = None

    @property
    def ttft_s(self) -> float:
        """Seconds from sending to the first token."""
        return self.tokens[0] - self.sent

    @property
    def tpot_s(self) -> float:
        """Seconds a token after the first."""
        return (self.tokens[-1] - self.tokens[0]) / (len(self.tokens) - 1)

    def take(self, event: Event) -> None:
        """Note an event; called on the engine's thread."""
        now = time.perf_counter()
        if isinstance(event, TokenText):
            self.tokens += [now] * len(event.token_ids)
        elif isinstance(event, Finished):
            self.finished = event


class Bench:
    """One run: the model, the options, and prompts that no earlier request had."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.rng = random.Random(7)
        self.backend = ""

    def open(self, *, speculation: bool = False) -> EngineClient:
        """Make an engine with the model loaded."""
        client = EngineClient.in_process()
        options = LoadOptions(speculation=speculation, num_threads=self.args.threads)
        self.backend = client.load(self.args.model, options=options).result(WAIT_S).backend
        return client

    def prompt(self, length: int) -> tuple[int, ...]:
        """Random ordinary token ids."""
        return tuple(self.rng.randrange(1000, 40_000) for _ in range(length))


def request(token_ids: tuple[int, ...], reply: int, *, priority: int = 0) -> Request:
    """A greedy request of exactly `reply` tokens."""
    sampling = SamplingParams(temperature=0, max_tokens=reply, ignore_eos=True)
    return Request(prompt_token_ids=token_ids, sampling=sampling, priority=priority)


def together(client: EngineClient, requests: list[Request]) -> list[Timeline]:
    """Send all at once and wait for the last."""
    timelines = [Timeline() for _ in requests]
    handles = [client.submit(r, on_event=t.take) for r, t in zip(requests, timelines, strict=True)]
    for handle in handles:
        handle.result(WAIT_S)
    return timelines


def with_waste(client: EngineClient, requests: list[Request]) -> tuple[list[Timeline], float]:
    """As `together`; also the mean share of block space held but not filled, sampled 10 times a second."""
    waste, stop = [], threading.Event()

    def sample() -> None:
        while not stop.wait(0.1):
            values = client.stats(WAIT_S).values
            held = values["chat.kv_blocks_live"] * BLOCK_SIZE
            if held:
                waste.append(1 - values["chat.kv_tokens_live"] / held)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        timelines = together(client, requests)
    finally:
        stop.set()
        sampler.join()
    return timelines, statistics.mean(waste) if waste else 0.0


def measure_users(bench: Bench) -> dict[str, object]:
    """Serve each number of users; see the module's docstring."""
    args, result = bench.args, {}
    with bench.open() as client:
        together(client, [request(bench.prompt(64), 16)])
        for users in args.users:
            rounds = [_round(bench, client, users) for _ in range(args.rounds)]
            figures = {key: round(statistics.median(r[key] for r in rounds), 4) for key in rounds[0]}
            result[f"users_{users}"] = figures
        values = client.stats(WAIT_S).values
    return result | {"preemptions": values["chat.num_preemptions"]}


def _round(bench: Bench, client: EngineClient, users: int) -> Figures:
    prompts = [bench.prompt(bench.args.prompt) for _ in range(users)]
    timelines, waste = with_waste(client, [request(p, bench.args.reply) for p in prompts])
    begin, end = max(t.tokens[0] for t in timelines), min(t.tokens[-1] for t in timelines)
    between = sum(begin < moment <= end for t in timelines for moment in t.tokens)
    first, last = min(t.sent for t in timelines), max(t.tokens[-1] for t in timelines)
    return {
        "ttft_s": statistics.median(t.ttft_s for t in timelines),
        "tpot_s": statistics.median(t.tpot_s for t in timelines),
        "decode_tok_s": between / (end - begin) if end > begin else 0.0,
        "throughput_tok_s": users * bench.args.reply / (last - first),
        "kv_waste": waste,
    }


def measure_prefix(bench: Bench) -> dict[str, object]:
    """TTFT over a shared prefix, and how many of its tokens were found in the cache."""
    cold, warm = [], []
    with bench.open() as client:
        together(client, [request(bench.prompt(64), 1)])
        before = client.stats(WAIT_S).values
        for _ in range(10):
            shared = bench.prompt(2000)
            for times in (cold, warm):
                times.append(together(client, [request(shared + bench.prompt(32), 1)])[0].ttft_s)
        after = client.stats(WAIT_S).values
    hits, queries = (
        after[f"chat.prefix_cache_{n}"] - before[f"chat.prefix_cache_{n}"] for n in ("hits", "queries")
    )
    return {
        "prefix_cold_ttft_s": round(statistics.median(cold), 4),
        "prefix_warm_ttft_s": round(statistics.median(warm), 4),
        "prefix_ttft_ratio": round(statistics.median(w / c for w, c in zip(warm, cold, strict=True)), 4),
        "prefix_hit_rate": round(hits / queries, 4),
    }


def measure_person(bench: Bench) -> dict[str, object]:
    """TTFT of a person's turn alone and among 8 background requests."""
    crowded = []
    with bench.open() as client:
        together(client, [request(bench.prompt(64), 1)])
        alone = [together(client, [request(bench.prompt(256), 1)])[0].ttft_s for _ in range(5)]
        for _ in range(5):
            handles = [client.submit(request(bench.prompt(128), 400, priority=2)) for _ in range(8)]
            while any(not handle.text() for handle in handles):
                time.sleep(0.01)
            crowded.append(together(client, [request(bench.prompt(256), 1)])[0].ttft_s)
            for handle in handles:
                handle.cancel()
            for handle in handles:
                handle.result(WAIT_S)
    return {
        "person_alone_ttft_s": round(statistics.median(alone), 4),
        "person_crowded_ttft_s": round(statistics.median(crowded), 4),
        "person_ttft_ratio": round(statistics.median(crowded) / statistics.median(alone), 3),
    }


def measure_speculation(bench: Bench) -> dict[str, object]:
    """Decode speed with and without guesses, on a reply that quotes its prompt and on a random one."""
    words = random.Random(11)
    nouns = [
        "lamp",
        "harbour",
        "keeper",
        "ship",
        "log",
        "sea",
        "oil",
        "winter",
        "rope",
        "gull",
        "tide",
        "stone",
        "bell",
        "glass",
        "storm",
    ]
    passage = " ".join(
        f"The {words.choice(nouns)} of the {words.choice(nouns)} was {words.randrange(1000)}."
        for _ in range(130)
    )
    quoting = Request(
        prompt=f"{passage}\n\nThe same text again:\n\n{passage[:400]}",
        sampling=SamplingParams(temperature=0, max_tokens=192, ignore_eos=True),
    )
    wandering = Request(
        prompt_token_ids=bench.prompt(500),
        sampling=SamplingParams(temperature=1.5, seed=3, max_tokens=192, ignore_eos=True),
    )
    # Any of 24 tokens with equal chance: pairs recur all the time, and what followed then says nothing.
    misleading = Request(
        prompt_token_ids=bench.prompt(100),
        sampling=SamplingParams(
            temperature=100,
            top_k=24,
            logit_bias={5000 + n: 100.0 for n in range(24)},
            seed=3,
            max_tokens=192,
            ignore_eos=True,
        ),
    )
    result: dict[str, object] = {}
    with bench.open() as off, bench.open(speculation=True) as on:
        for what, asked in (("copying", quoting), ("random", wandering), ("misleading", misleading)):
            # Turn and turn about, either first in turn; what else the machine does hits both of a pair.
            pairs = []
            for number in range(8):
                order = (off, on) if number % 2 else (on, off)
                runs = {client: together(client, [asked])[0] for client in order}
                pairs.append((runs[off], runs[on]))
            for name, times in zip(("off", "on"), zip(*pairs, strict=True), strict=True):
                result[f"{what}_tok_s_{name}"] = round(1 / statistics.median(t.tpot_s for t in times), 1)
            ratios = [plain.tpot_s / guessed.tpot_s for plain, guessed in pairs]
            result[f"{what}_speedup"] = round(statistics.median(ratios), 3)
            last = pairs[-1][1].finished
            if last is not None and last.drafted_tokens:
                result[f"{what}_acceptance"] = round(last.accepted_tokens / last.drafted_tokens, 3)
    return result


def bars(result: dict[str, object]) -> dict[str, dict[str, object]]:
    """Compare what was measured with what is wanted; parts that did not run are left out."""
    found: dict[str, dict[str, object]] = {}

    def bar(name: str, value: object, wanted: float, is_met: Callable[[float], bool]) -> None:
        if isinstance(value, int | float):
            found[name] = {"value": value, "bar": wanted, "met": is_met(float(value))}

    one, eight = result.get("users_1"), result.get("users_8")
    if isinstance(one, dict) and isinstance(eight, dict) and one["decode_tok_s"]:
        ratio = round(eight["decode_tok_s"] / one["decode_tok_s"], 2)
        bar("decode of 8 users by 1 user, at least", ratio, 4.0, lambda v: v >= 4.0)
    wastes = [row["kv_waste"] for row in result.values() if isinstance(row, dict) and "kv_waste" in row]
    bar("KV waste, below", max(wastes, default=None), 0.04, lambda v: v < 0.04)
    bar(
        "TTFT over a cached prefix by cold, at most",
        result.get("prefix_ttft_ratio"),
        0.05,
        lambda v: v <= 0.05,
    )
    bar(
        "TTFT of a person among background by alone, at most",
        result.get("person_ttft_ratio"),
        2.0,
        lambda v: v <= 2.0,
    )
    bar("copying with guesses by without, at least", result.get("copying_speedup"), 1.5, lambda v: v >= 1.5)
    for what in ("random", "misleading"):
        bar(
            f"{what} text with guesses by without, at least",
            result.get(f"{what}_speedup"),
            0.97,
            lambda v: v >= 0.97,
        )
    return found


def main() -> None:
    """Run the command line above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--users", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 8, 16])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--reply", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"--parts knows {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    measures = (measure_users, measure_prefix, measure_person, measure_speculation)
    bench = Bench(args)
    result: dict[str, object] = {"model": args.model.name, "prompt": args.prompt, "reply": args.reply}
    for name, part in zip(PARTS, measures, strict=True):
        if name not in args.parts:
            continue
        begun = time.perf_counter()
        figures = part(bench)
        result |= figures
        if not args.json:
            for key, value in figures.items():
                print(f"{key:24} {value}", flush=True)
            print(f"# {name}: {time.perf_counter() - begun:.0f} s", flush=True)
    print(json.dumps(result | {"backend": bench.backend, "bars": bars(result)}))


if __name__ == "__main__":
    main()
