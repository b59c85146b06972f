"""Which back end runs a model, and why."""

import pytest
import torch
from tiny_gguf import write_tiny_gguf

from inglenook.engine.backend_choice import backend_statuses, choose_backend
from inglenook.engine.cards.placement import CardOptions
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.weights.loader import open_model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with (
        open_model(write_tiny_gguf(folder / "float.gguf")) as plain,
        open_model(write_tiny_gguf(folder / "packed.gguf", quantize="Q8_0")) as packed,
    ):
        yield plain, packed


def choose(name, model, **options):
    return choose_backend(name, model.spec, model, **options)


def native_is_usable():
    return backend_statuses()[0].usable


def test_auto_takes_the_native_kernels_where_they_run_the_model(models):
    expected = "native-cpu" if native_is_usable() else "torch-cpu"

    assert choose("auto", models[1]).name == expected


def test_auto_takes_torch_where_they_do_not_and_says_why(models):
    backend = choose("auto", models[0])

    assert backend.name == "torch-cpu"
    assert "the native kernels do not run here: " in backend.reason


def test_without_native_kernels_auto_takes_torch_and_says_why(models, monkeypatch):
    from inglenook.engine import backend_choice

    def unavailable(**options):
        raise backend_choice.NativeUnavailableError("no compiler was found")

    monkeypatch.setattr(backend_choice, "NativeBackend", unavailable)

    assert "no compiler was found" in choose("auto", models[1]).reason
    assert backend_statuses()[0] == backend_choice.BackendStatus("native-cpu", False, "no compiler was found")
    # `doctor` says of the first usable one that it would be used
    assert next(s.name for s in backend_statuses() if s.usable) == choose("auto", models[1]).name
    with pytest.raises(UnsupportedModelError, match="no compiler was found"):
        choose("native-cpu", models[1])


def test_asking_for_native_kernels_that_cannot_run_the_model_says_why(models):
    with pytest.raises(UnsupportedModelError, match=r"native CPU back end does not run this model: .*F32"):
        choose("native-cpu", models[0])


def test_an_unknown_name_lists_the_known_ones(models):
    with pytest.raises(InvalidRequestError, match=r"auto, native-cpu, torch-cpu, reference.*'fast'"):
        choose("fast", models[0])


def test_a_cache_the_back_end_does_not_have_is_refused(models):
    with pytest.raises(InvalidRequestError, match="kv_dtype must be bfloat16 on torch-cpu, got 'int8'"):
        choose("torch-cpu", models[0], kv_dtype="int8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has a card")
def test_cards_that_were_asked_for_and_are_not_here_are_not_passed_over(models):
    with pytest.raises(UnsupportedModelError, match=r"num_cards 2 cannot be had: .*\."):
        choose("auto", models[1], cards=CardOptions(num_cards=2))
    with pytest.raises(
        InvalidRequestError, match="card_layers 1 is for the back end cuda, not for torch-cpu"
    ):
        choose("torch-cpu", models[1], cards=CardOptions(card_layers=1))
    with pytest.raises(
        InvalidRequestError, match=r"backend cuda can be cuda, cuda:deterministic or cuda:reference"
    ):
        choose("cuda:fast", models[1])

    assert choose("auto", models[1], cards=CardOptions(context_length=128)).name != "cuda"
