"""A model divided among several cards: who has what, what cannot be divided, and sums over threads instead of cards."""

import threading
from collections.abc import Callable

import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.batch import Batch
from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.shares import ShareSource, plan_shares, replication
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.models.spec import ModelSpec, RopeSpec

SPECS = {
    "llama": (small_spec(), 2),
    "uneven heads": (small_spec(num_heads=6, num_kv_heads=3, hidden_size=96), 2),
    "one KV head a card": (small_spec(num_heads=6, num_kv_heads=3, hidden_size=96), 3),
    "replicated KV heads": (small_spec(num_heads=8, num_kv_heads=2, hidden_size=128, intermediate_size=160), 4),
    "biases": (
        small_spec(qkv_bias=True, o_bias=True, mlp_bias=True, tied_head=False, rope=RopeSpec(theta=1e4, size=8)), 2,
    ),
    "gemma2": (
        small_spec(
            post_norms=True, activation="gelu_tanh", attention_softcap=5.0, logit_softcap=3.0, embedding_scale=8.0,
            sliding_windows=(20, 0, 20), local_rope=RopeSpec(theta=500.0, size=16), qk_norm="head",
        ), 2,
    ),
    "odd vocabulary": (
        small_spec(
            vocab_size=91, residual_scale=0.3, logit_scale=0.5, num_heads=8, num_kv_heads=4, intermediate_size=128
        ), 4,
    ),
}  # fmt: skip


class ThreadRanks:
    """Cards that are threads of this process."""

    def __init__(self, rank: int, count: int, barrier: threading.Barrier, desk: list[torch.Tensor | None]):
        self.rank, self.count, self._barrier, self._desk = rank, count, barrier, desk

    def _all(self, x: torch.Tensor) -> list[torch.Tensor]:
        self._desk[self.rank] = x.clone()
        self._barrier.wait(20)
        found = [part.clone() for part in self._desk if part is not None]
        self._barrier.wait(20)
        return found

    def add_up(self, x: torch.Tensor) -> None:
        x.copy_(torch.stack(self._all(x)).sum(0))

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(self._all(x), dim=1)


def together(works: list[Callable[[], object]]) -> list[object]:
    results: list[object] = [None] * len(works)

    def run(number: int) -> None:
        results[number] = works[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def divided(spec: ModelSpec, source: RandomModel, count: int, kv_dtype: str = "float32") -> list[CudaModel]:
    barrier, desk = threading.Barrier(count), [None] * count
    models = []
    for share in plan_shares(spec, source, count):
        ranks = ThreadRanks(share.rank, count, barrier, desk)
        backend = CudaBackend.on_cpu(ranks=ranks, step_tokens=64, kv_dtype=kv_dtype)
        models.append(
            backend.load(share.spec(spec), ShareSource(source, spec, share), lambda done, total: None)
        )
    return models


def run(models: list[CudaModel], batch: Batch) -> list[torch.Tensor]:
    return together([lambda model=model: model.forward(batch) for model in models])


@pytest.mark.parametrize(("name", "kv_dtype"), [*((name, "float32") for name in SPECS), ("biases", "int8")])
@pytest.mark.slow
def test_every_card_gets_the_logits_of_one_that_has_the_whole_model(name: str, kv_dtype: str) -> None:
    spec, count = SPECS[name]
    source = RandomModel(spec, lambda tensor: "Q8_0")
    models = divided(spec, source, count, kv_dtype)
    alone = CudaBackend.on_cpu(kv_dtype=kv_dtype).load(spec, source, lambda done, total: None)
    groups = len(set(spec.sliding_windows))
    steps = Steps(spec, groups, 3)
    for model in (*models, alone):
        model.allocate_kv((steps.num_blocks,) * groups)

    for counts in ({2: 33, 0: 5}, {2: 1, 0: 1, 1: 20}):
        batch = steps.batch(counts)
        whole = alone.forward(batch)
        for own in run(models, batch):
            # stored in 8 bits, a last bit of a key or value may round the other way
            assert (own - whole).abs().max() <= (1e-4 if kv_dtype == "float32" else 1e-2)


def test_shares_cover_everything_once() -> None:
    spec = small_spec(num_heads=6, num_kv_heads=3, intermediate_size=160, vocab_size=91)
    source = RandomModel(spec, lambda tensor: "Q8_0")

    shares = plan_shares(spec, source, 2)

    for part in ("heads", "kv_heads", "columns", "vocabulary"):
        numbers = [n for share in shares for n in getattr(share, part)]
        size = {"heads": 6, "kv_heads": 3, "columns": 160, "vocabulary": 91}[part]
        assert numbers == list(range(size)), part
    assert [len(share.columns) for share in shares] == [96, 64]
    assert [len(share.kv_heads) for share in shares] == [2, 1]


def test_columns_are_cut_between_the_blocks_of_their_format() -> None:
    spec = small_spec(hidden_size=256, intermediate_size=768, num_heads=16, num_kv_heads=16)

    shares = plan_shares(spec, RandomModel(spec, lambda name: "Q4_K" if name.endswith("down") else "Q8_0"), 2)

    assert [len(share.columns) for share in shares] == [512, 256]
    with pytest.raises(UnsupportedModelError, match=r"16 KV heads in runs of 16.*blocks of 256.*2 cards"):
        plan_shares(spec, RandomModel(spec, lambda name: "Q4_K"), 2)


@pytest.mark.parametrize(
    ("changes", "count", "words"),
    [
        ({"num_heads": 6, "num_kv_heads": 3, "hidden_size": 96}, 4, "6 heads over 3 KV heads, which 4 cards cannot share"),
        ({"num_heads": 4, "num_kv_heads": 2}, 8, "4 heads over 2 KV heads, which 8 cards cannot share"),
        ({"intermediate_size": 32, "num_heads": 8, "num_kv_heads": 8}, 2, "1 runs of 32 columns, which 2 cards"),
        ({"qk_norm": "whole"}, 2, "normalises queries over all heads"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_refused_with_the_numbers(changes, count: int, words: str) -> None:
    spec = small_spec(**changes)

    with pytest.raises(UnsupportedModelError, match=words):
        plan_shares(spec, RandomModel(spec, lambda name: "Q8_0"), count)


def test_kept_twice_is_said() -> None:
    spec = small_spec(num_heads=8, num_kv_heads=2, hidden_size=128)

    assert replication(spec, 2) == ""
    assert replication(spec, 4) == "each of the 2 KV heads is kept by 2 of 4 cards"


def test_sizes_are_those_of_the_parts() -> None:
    spec = small_spec(qkv_bias=True, tied_head=False)
    source = RandomModel(spec, lambda name: "Q8_0")

    for share in plan_shares(spec, source, 2):
        own = ShareSource(source, spec, share)
        assert own.size_bytes == sum(own.tensor(name).size_bytes for name in own.names)
