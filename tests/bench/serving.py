"""How the engine serves several users at once, on one model, through `EngineClient` in this process.

    python tests/bench/serving.py --model MODEL [--users 1,4,8,16] [--prompt 512] [--reply 128] [--rounds 3] [--json]

Each user sends one request of `--prompt` tokens of their own and reads `--reply` tokens, greedy, all at the same
moment; a round is repeated and the median reported. `decode_tok_s` counts tokens between the moment when the last
user got a first token and the moment when the first user ended: while all decode. `kv_waste` is the share of block
space held but not filled, sampled during the run. Then, with one user: `prefix_ttft_ratio`, the TTFT of a second
question over a shared 2,000-token prefix divided by the cold one's (median of 10); `person_ttft_ratio`, the TTFT of a
turn of priority 0 among 8 requests of priority 2, divided by its TTFT alone; `copying_speedup`, the decode speed with
guesses divided by the speed without on a reply that quotes a 1,500-token passage, and `random_speedup` on text that
repeats nothing. The last line is one JSON object. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from inglenook.engine.client import EngineClient
from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.request import Event, Finished, LoadOptions, Request, SamplingParams, TokenText

WAIT_S = 600.0


@dataclass
class Timeline:
    """When a request's tokens came, in seconds of `time.perf_counter()`."""

    sent: float = field(default_factory=time.perf_counter)
    tokens: list[float] = field(default_factory=list)
    finished: Finished | None = None

    def take(self, event: Event) -> None:
        """Note an event; called on the engine's thread."""
        now = time.perf_counter()
        if isinstance(event, TokenText):
            self.tokens += [now] * len(event.token_ids)
        elif isinstance(event, Finished):
            self.finished = event


def prompt(rng: random.Random, length: int, vocabulary: int) -> tuple[int, ...]:
    """Random ordinary token ids."""
    return tuple(rng.randrange(1000, vocabulary) for _ in range(length))


def request(token_ids: tuple[int, ...], reply: int, *, priority: int = 0) -> Request:
    """A greedy request of exactly `reply` tokens."""
    sampling = SamplingParams(temperature=0, max_tokens=reply, ignore_eos=True)
    return Request(prompt_token_ids=token_ids, sampling=sampling, priority=priority)


def round_of(client: EngineClient, requests: list[Request]) -> tuple[list[Timeline], float]:
    """Send all at once and wait; returns their timelines and the mean share of block space held but not filled."""
    timelines = [Timeline() for _ in requests]
    handles = [client.submit(r, on_event=t.take) for r, t in zip(requests, timelines, strict=True)]
    waste, stop = [], threading.Event()

    def sample() -> None:
        while not stop.wait(0.05):
            values = client.stats(WAIT_S).values
            held = values["chat.kv_blocks_live"] * BLOCK_SIZE
            if held:
                waste.append(1 - values["chat.kv_tokens_live"] / held)

    sampler = threading.Thread(target=sample)
    sampler.start()
    for handle in handles:
        handle.result(WAIT_S)
    stop.set()
    sampler.join()
    return timelines, statistics.mean(waste) if waste else 0.0


def serve(client: EngineClient, users: int, args: argparse.Namespace, rng: random.Random) -> dict[str, float]:
    """Medians over the rounds for a number of users."""
    rows = []
    for _ in range(args.rounds):
        timelines, waste = round_of(
            client, [request(prompt(rng, args.prompt, args.vocabulary), args.reply) for _ in range(users)]
        )
        begin, end = max(t.tokens[0] for t in timelines), min(t.tokens[-1] for t in timelines)
        together = sum(begin <= moment <= end for t in timelines for moment in t.tokens)
        first, last = min(t.sent for t in timelines), max(t.tokens[-1] for t in timelines)
        rows.append(
            {
                "ttft_s": statistics.median(t.tokens[0] - t.sent for t in timelines),
                "tpot_s": statistics.median(
                    (t.tokens[-1] - t.tokens[0]) / (len(t.tokens) - 1) for t in timelines
                ),
                "decode_tok_s": together / (end - begin) if end > begin else 0.0,
                "throughput_tok_s": users * args.reply / (last - first),
                "kv_waste": waste,
            }
        )
    return {key: round(statistics.median(row[key] for row in rows), 4) for key in rows[0]}


def ttft(client: EngineClient, asked: Request) -> float:
    """Seconds to the first token of a request alone."""
    timelines, _ = round_of(client, [asked])
    return timelines[0].tokens[0] - timelines[0].sent


def prefix_ratio(client: EngineClient, rng: random.Random, vocabulary: int) -> float:
    """TTFT over a shared 2,000-token prefix with 32 new tokens, by the cold one's: median of 10."""
    ratios = []
    for _ in range(10):
        shared = prompt(rng, 2000, vocabulary)
        cold = ttft(client, request(shared + prompt(rng, 32, vocabulary), 1))
        warm = ttft(client, request(shared + prompt(rng, 32, vocabulary), 1))
        ratios.append(warm / cold)
    return statistics.median(ratios)


def person_ratio(client: EngineClient, rng: random.Random, vocabulary: int) -> float:
    """TTFT of a person's turn while 8 background requests decode, by its TTFT alone: median of 5."""
    alone = statistics.median(ttft(client, request(prompt(rng, 256, vocabulary), 1)) for _ in range(5))
    crowded = []
    for _ in range(5):
        handles = [client.submit(request(prompt(rng, 128, vocabulary), 400, priority=2)) for _ in range(8)]
        while any(not handle.text() for handle in handles):
            time.sleep(0.01)
        crowded.append(ttft(client, request(prompt(rng, 256, vocabulary), 1)))
        for handle in handles:
            handle.cancel()
        for handle in handles:
            handle.result(WAIT_S)
    return statistics.median(crowded) / alone


def decode_speed(client: EngineClient, asked: Request) -> float:
    """Tokens a second after the first, best of 3."""
    speeds = []
    for _ in range(3):
        timelines, _ = round_of(client, [asked])
        tokens = timelines[0].tokens
        speeds.append((len(tokens) - 1) / (tokens[-1] - tokens[0]))
    return max(speeds)


def speculation_speedups(path: Path, vocabulary: int, options: dict[str, int | None]) -> dict[str, float]:
    """Decode speed with guesses by the speed without: on a reply that copies its prompt, and on a random one."""
    rng = random.Random(11)
    passage = prompt(rng, 1500, vocabulary)
    quoting = Request(
        prompt_token_ids=passage * 2 + passage[:20],
        sampling=SamplingParams(temperature=0, max_tokens=256, ignore_eos=True),
    )
    other = Request(
        prompt_token_ids=prompt(rng, 500, vocabulary),
        sampling=SamplingParams(temperature=1.5, seed=3, max_tokens=256, ignore_eos=True),
    )
    speeds: dict[bool, tuple[float, float]] = {}
    accepted = 0.0
    for speculation in (False, True):
        with EngineClient.in_process() as client:
            client.load(path, options=LoadOptions(speculation=speculation, **options)).result(WAIT_S)
            copying = decode_speed(client, quoting)
            speeds[speculation] = (copying, decode_speed(client, other))
            if speculation:
                values = client.stats(WAIT_S).values
                drafted = values["chat.spec_decode_num_draft_tokens"]
                accepted = values["chat.spec_decode_num_accepted_tokens"] / drafted if drafted else 0.0
    return {
        "copying_speedup": round(speeds[True][0] / speeds[False][0], 3),
        "random_speedup": round(speeds[True][1] / speeds[False][1], 3),
        "acceptance": round(accepted, 3),
    }


def main() -> None:
    """Run the command line above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--users", default="1,4,8,16")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--reply", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    args = parser.parse_args()
    rng = random.Random(7)
    result: dict[str, object] = {"model": args.model.name, "prompt": args.prompt, "reply": args.reply}
    load = {"num_threads": args.threads}
    with EngineClient.in_process() as client:
        facts = client.load(args.model, options=LoadOptions(speculation=False, **load)).result(WAIT_S)
        args.vocabulary = 40_000
        result["backend"] = facts.backend
        for users in map(int, args.users.split(",")):
            figures = serve(client, users, args, rng)
            result[f"users_{users}"] = figures
            if not args.json:
                print(f"{users:3} users  {figures}", flush=True)
        result["prefix_ttft_ratio"] = round(prefix_ratio(client, rng, args.vocabulary), 4)
        result["person_ttft_ratio"] = round(person_ratio(client, rng, args.vocabulary), 3)
        values = client.stats(WAIT_S).values
        result["hit_rate"] = round(values["chat.prefix_cache_hits"] / values["chat.prefix_cache_queries"], 3)
        result["preemptions"] = values["chat.num_preemptions"]
    result |= speculation_speedups(args.model, args.vocabulary, load)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
