"""A model in two parts, its last layers on a card (here by the formulas on the CPU) and the first in the native kernels."""

from pathlib import Path

import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.batch import Batch
from inglenook.engine.cards import card_choice
from inglenook.engine.cards.card_choice import CardChooser
from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.offload import LayersSource, OffloadBackend, OffloadModel, part_spec
from inglenook.engine.cards.placement import CardNeed, CardOptions, card_need, place
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.memory import estimate_need, format_bytes
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.kernels.native import NativeUnavailableError, load_native

try:
    load_native()
except NativeUnavailableError as error:
    pytest.skip(str(error), allow_module_level=True)

SPECS = {
    "llama": small_spec(hidden_size=64, intermediate_size=96),
    "untied, biases": small_spec(qkv_bias=True, tied_head=False, o_bias=True),
    "gemma2": small_spec(
        post_norms=True, activation="gelu_tanh", attention_softcap=5.0, logit_softcap=3.0, embedding_scale=8.0,
        sliding_windows=(20, 0, 20), local_rope=RopeSpec(theta=500.0, size=16), qk_norm="head", num_layers=3,
    ),
    "scaled, some unrotated": small_spec(unrotated_layers=(0, 2), residual_scale=0.3, logit_scale=0.5),
}  # fmt: skip


def load(tmp_path, spec: ModelSpec, card_layers: int) -> OffloadModel:
    source = RandomModel(spec, lambda name: "Q8_0")
    backend = choose_backend(
        "cuda:reference",
        spec,
        source,
        num_threads=2,
        packed_folder=tmp_path,
        cards=CardOptions(card_layers=card_layers),
    )
    model = backend.load(spec, source, lambda done, total: None)
    assert isinstance(model, OffloadModel)
    return model


def deviation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.square().mean().sqrt())


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("card_layers", [1, 2])
@pytest.mark.slow
def test_both_parts_together_give_the_logits_of_the_whole_model(
    tmp_path, name: str, card_layers: int
) -> None:
    spec = SPECS[name]
    ours = load(tmp_path, spec, card_layers)
    reference = TORCH_BACKENDS["reference"]().load(
        spec, RandomModel(spec, lambda n: "Q8_0"), lambda done, total: None
    )
    groups = len(set(spec.sliding_windows))
    steps = Steps(spec, groups, 3)
    for model in (ours, reference):
        model.allocate_kv((steps.num_blocks,) * groups)

    for counts in ({2: 33, 0: 5}, {2: 1, 0: 1}, {0: 1, 1: 20}):
        batch = steps.batch(counts)
        # what the native kernels' activations of 16 bits and keys of 16 bits cost
        assert deviation(ours.forward(batch), reference.forward(batch)) < 5e-3
    ours.close()
    ours.close()


def test_blocks_are_copied_and_blanked_in_both_parts(tmp_path) -> None:
    spec = SPECS["llama"]
    ours = load(tmp_path, spec, 2)
    steps = Steps(spec, 1, 2)
    ours.allocate_kv((steps.num_blocks,))
    ours.forward(steps.batch({0: 10}))
    first, other = int(steps.tables[0, 0]), int(steps.tables[1, 0])

    def blocks(number: int) -> list[torch.Tensor]:
        return [kv.k[:, number].clone() for part in (ours._host, ours._card) for kv in part.kv]

    ours.kv[0].copy_blocks([(first, other)])
    copied = all(
        torch.equal(a, b) and a.abs().sum() > 0 for a, b in zip(blocks(first), blocks(other), strict=True)
    )
    ours.kv[0].blank([first])

    assert copied
    assert all(block.abs().sum() == 0 for block in blocks(first))
    assert ours.kv[0].num_blocks == steps.num_blocks
    ours.close()


def test_each_part_reads_its_own_layers_and_nothing_twice() -> None:
    spec = small_spec(tied_head=False)
    source = RandomModel(spec, lambda name: "Q8_0")
    host, card = (LayersSource(source, spec, *part) for part in ((0, 2), (2, 3)))

    assert "head" not in host.names
    assert "embedding" not in card.names
    assert torch.equal(
        *(torch.from_numpy(x.data) for x in (card.tensor("layers.0.q"), source.tensor("layers.2.q")))
    )
    # both have the last norm, which the first part does not use
    assert host.size_bytes + card.size_bytes == source.size_bytes + source.tensor("output_norm").size_bytes
    assert part_spec(small_spec(unrotated_layers=(0, 2)), 1, 3).unrotated_layers == (1,)


def test_cancelling_ends_a_step_between_layers(tmp_path) -> None:
    from inglenook.engine.backend import StepCancelledError

    spec = SPECS["llama"]
    ours = load(tmp_path, spec, 1)
    steps = Steps(spec, 1, 1)
    ours.allocate_kv((steps.num_blocks,))
    batch: Batch = steps.batch({0: 30})

    ours.cancel()

    with pytest.raises(StepCancelledError):
        ours.forward(batch)
    assert ours.forward(batch).shape == (1, spec.vocab_size)
    ours.close()


def test_what_the_processor_does_not_run_is_refused_with_the_reason() -> None:
    spec = small_spec(hidden_size=64)
    options = CardOptions(card_layers=1)

    with pytest.raises(
        UnsupportedModelError, match=r"1 of 3 layers were asked for.*processor's kernels do not run"
    ):
        choose_backend("cuda:reference", spec, RandomModel(spec, lambda name: "F32"), cards=options)
    with pytest.raises(
        InvalidRequestError, match="card_layers must be at most 3, the layers of this model; got 4"
    ):
        choose_backend(
            "cuda:reference", spec, RandomModel(spec, lambda name: "Q8_0"), cards=CardOptions(card_layers=4)
        )


@pytest.mark.slow
@pytest.mark.parametrize("card_layers", [5, 29])
def test_a_real_model_answers_alike_however_its_layers_are_divided(smollm2: Path, card_layers: int) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=12)
    question = Request(
        messages=({"role": "user", "content": "What is the capital of France?"},), sampling=sampling
    )
    with EngineClient.in_process() as client:
        client.load(smollm2, options=LoadOptions(backend="native-cpu", context_length=2048)).result(60)
        whole = client.submit(question).result(60)
        options = LoadOptions(backend="cuda:reference", card_layers=card_layers, context_length=2048)
        facts = client.load(smollm2, options=options).result(60)
        divided = client.submit(question).result(300)

    assert divided.token_ids == whole.token_ids
    words = f"{card_layers} of 30 layers were asked for on the card, the rest are on the processor"
    assert f"{words}." in facts.notices
    assert words in facts.backend_reason


def test_a_card_with_too_little_memory_gets_the_last_layers_that_fit_it(monkeypatch) -> None:
    spec = small_spec()
    source = RandomModel(spec, lambda name: "Q8_0")
    alone = estimate_need(
        CudaBackend.on_cpu().estimate_weight_bytes(spec, source.size_bytes), 0, spec.vocab_size
    )
    need = card_need(spec, source, "float16", 64, alone_bytes=alone)
    options = CardOptions(context_length=64)

    def choose(free: int):
        monkeypatch.setattr(CardChooser, "_free_bytes", lambda self: [free])
        return choose_backend("cuda:reference", spec, source, cards=options)

    two, whole = choose(need.part(2)), choose(need.whole)

    assert isinstance(two, OffloadBackend)
    words = f"t needs {format_bytes(need.whole)}, and {format_bytes(need.part(2))} of the card are free: 2 of 3 layers are"
    assert two.notice == f"I{words} on the card, the rest on the processor."
    assert f"i{words}" in two.reason
    assert isinstance(whole, CudaBackend)
    with pytest.raises(UnsupportedModelError, match="too few for one layer"):
        choose(1000)


def test_cards_that_cannot_share_a_model_do_not_keep_it_from_one_card(monkeypatch) -> None:
    spec = small_spec(intermediate_size=32)  # one block of columns
    source = RandomModel(spec, lambda name: "Q8_0")
    need = CardNeed((10**9,) * 3, 10**8, 0)
    monkeypatch.setattr(CardChooser, "_free_bytes", lambda self: [5 * 10**9 // 2] * 2)
    monkeypatch.setattr(card_choice, "card_need", lambda *arguments, **options: need)
    assert place(need, [5 * 10**9 // 2] * 2, CardOptions()).num_cards == 2

    chosen = choose_backend("cuda:reference", spec, source, cards=CardOptions(context_length=64))

    assert isinstance(chosen, OffloadBackend)
