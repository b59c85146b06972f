"""Every architecture against `transformers` in float32, from a folder and, where the format has it, from a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tiny_checkpoints import CHECKPOINTS, CONTEXT, VOCAB, WINDOW, Runner, make_checkpoint, write_gguf

from inglenook.engine.models.rope import rope_frequencies
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.loader import open_model

pytestmark = pytest.mark.slow

# A GGUF keeps no window of mistral's and qwen2's.
IN_GGUF = [name for name in CHECKPOINTS if name != "qwen2-windows"]
NUM_TOKENS = 100  # beyond the window of 24 and beyond several blocks of 16

Made = tuple[Path, Any, torch.Tensor, list[int]]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """`checkpoint(name)` -> folder, transformers' model, its logits [NUM_TOKENS, V] and the token ids."""
    made: dict[str, Made] = {}

    def make(name: str) -> Made:
        if name not in made:
            torch.set_num_threads(1)
            folder = tmp_path_factory.mktemp(name)
            model = make_checkpoint(folder, name)
            ids = torch.randint(3, VOCAB, (NUM_TOKENS,), generator=torch.Generator().manual_seed(1))
            with torch.inference_mode():
                logits = model(ids[None]).logits[0]
            made[name] = folder, model, logits, ids.tolist()
        return made[name]

    return make


def assert_close(got: torch.Tensor, want: torch.Tensor) -> None:
    assert want.std() > 0.1, "the logits are too flat to tell anything"
    torch.testing.assert_close(got, want, atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_prefill_chunks_and_decode_give_the_logits_of_transformers(
    checkpoint: Callable[[str], Made], name: str
) -> None:
    folder, _, want, ids = checkpoint(name)

    whole = Runner(folder).step(ids)
    parts = Runner(folder)
    chunked = [parts.step(ids[start:end]) for start, end in ((0, 7), (7, 40), (40, 41), (41, 90))]
    decoded = [parts.step([token]) for token in ids[90:]]

    assert_close(whole, want)
    assert_close(torch.cat([*chunked, *decoded]), want)


@pytest.mark.parametrize("shift", [0, 8_192, 100_000])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_far_positions_give_the_logits_of_transformers(
    checkpoint: Callable[[str], Made], monkeypatch: pytest.MonkeyPatch, name: str, shift: int
) -> None:
    folder, model, _, ids = checkpoint(name)
    with torch.inference_mode():
        want = model(torch.tensor([ids]), position_ids=torch.arange(shift, shift + NUM_TOKENS)[None]).logits[
            0
        ]
    rotary = model.model.rotary_emb
    frequencies = [b for n, b in rotary.named_buffers() if n.endswith("inv_freq") and "original" not in n]

    def tables(rope: RopeSpec, spec: ModelSpec) -> tuple[torch.Tensor, torch.Tensor]:
        """Tables as transformers rounds them: at 100,000 its float32 angles are off by thousandths."""
        ours = torch.from_numpy(rope_frequencies(rope, spec.context_length))
        theirs = min(frequencies, key=lambda f: float((f.double() / ours - 1).abs().max()))
        torch.testing.assert_close(theirs.double(), ours, rtol=1e-6, atol=0)
        angles = torch.outer(torch.arange(shift + CONTEXT).float(), theirs)
        return angles.cos() * rope.attention_factor, angles.sin() * rope.attention_factor

    monkeypatch.setattr("inglenook.engine.models.decoder._tables", tables)
    assert_close(Runner(folder).step(ids, shift), want)


@pytest.mark.parametrize("name", IN_GGUF)
def test_a_gguf_file_of_the_same_weights_gives_the_same_logits(
    checkpoint: Callable[[str], Made], tmp_path: Path, name: str
) -> None:
    folder, _, want, ids = checkpoint(name)
    path = write_gguf(folder, tmp_path / f"{name}.gguf")

    assert_close(Runner(path).step(ids), want)


@pytest.mark.parametrize("name", IN_GGUF)
def test_the_gguf_package_reads_every_tensor_that_we_read(
    checkpoint: Callable[[str], Made], tmp_path: Path, name: str
) -> None:
    path = write_gguf(checkpoint(name)[0], tmp_path / f"{name}.gguf")
    theirs = {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}

    with open_model(path) as file:
        places = file._places.values()
        for place in places:
            np.testing.assert_array_equal(theirs[place.name].reshape(-1).shape, (np.prod(place.shape),))
        left = {n for n in theirs if not n.startswith("rope_")} - {place.name for place in places}

    assert not left


def test_windows_and_softcaps_of_the_checkpoints_are_in_use(checkpoint: Callable[[str], Made]) -> None:
    for name, windows in (
        ("mistral", (WINDOW,) * 6),
        ("qwen2-windows", (0, 0, 0, WINDOW, WINDOW, WINDOW)),
        ("gemma2", (WINDOW, 0) * 3),
        ("gemma3", (WINDOW,) * 5 + (0,)),
        ("phi3", (WINDOW,) * 6),
    ):
        with open_model(checkpoint(name)[0]) as file:
            assert file.spec.sliding_windows == windows, name


def test_bfloat16_runs_every_architecture_near_the_reference(checkpoint: Callable[[str], Made]) -> None:
    for name in CHECKPOINTS:
        folder, _, want, ids = checkpoint(name)
        got = Runner(folder, "torch-cpu").step(ids)
        errors = (got - want).square().mean(-1).sqrt() / want.std()
        # Where a router tips over, a token goes to another expert: such rows are no measure of rounding.
        is_mixture = "moe" in name or "mixtral" in name
        assert (errors.median() if is_mixture else errors.square().mean().sqrt()) < 0.1, (name, errors)
