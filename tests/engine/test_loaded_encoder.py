"""The sentence encoder through `EngineClient`, against transformers on the same folder."""

import random

import numpy as np
import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError, ModelFileError, NotLoadedError, UnsupportedModelError
from inglenook.engine.loaded_encoder import _STEP_TOKENS, EmbeddingJob, load_encoder
from inglenook.engine.request import LoadOptions, Request, SamplingParams

WORDS = [
    "the",
    "lamp",
    "burns",
    "Öl",
    "and",
    "17:42",
    "море",
    "海",
    "ship,log;",
    "keeper",
    "wrote",
    "weather",
    "3.14",
    "naïve",
    "—",
    "end.",
]


def sentences(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 90))) for _ in range(count)]


def vectors(embedded):
    return np.frombuffer(embedded.vectors, "<f4").reshape(-1, embedded.dimension)


@pytest.fixture(scope="module")
def client(minilm):
    with EngineClient.in_process() as client:
        client.load(minilm, "embedder").result(60)
        yield client


@pytest.fixture(scope="module")
def expected(minilm):
    """200 texts and their vectors by transformers in float32."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = sentences(200)
    tokenizer, model = AutoTokenizer.from_pretrained(minilm), AutoModel.from_pretrained(minilm).eval()
    want = []
    for text in texts:
        encoded = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            states = model(**encoded).last_hidden_state
        want.append(torch.nn.functional.normalize(states[0].mean(0), dim=0).numpy())
    return texts, np.array(want)


@pytest.mark.slow
def test_vectors_equal_transformers_with_mean_pooling(client, expected):
    texts, want = expected

    got = vectors(client.embed(texts).result(120))

    assert (1 - (got * want).sum(1)).max() < 1e-3


@pytest.mark.slow
def test_the_reference_is_nearer_and_says_what_it_is(minilm, expected):
    texts, want = expected
    with EngineClient.in_process() as client:
        loaded = client.load(minilm, "embedder", LoadOptions(backend="reference")).result(60)
        got = vectors(client.embed(texts).result(120))

    assert (loaded.backend, "float32" in loaded.backend_reason) == ("reference", True)
    assert (1 - (got * want).sum(1)).max() < 1e-5


@pytest.mark.slow
def test_texts_longer_than_the_encoder_reads_are_named_and_keep_their_end_token(minilm):
    model = load_encoder(minilm, "embedder", LoadOptions(), lambda event: None)

    sequences, cut = model.tokenize(("short", "word " * 300))

    assert cut == [1]
    assert [len(s) for s in sequences] == [3, 256]
    assert sequences[0][-1] == sequences[1][-1]


@pytest.mark.slow
def test_each_step_is_bounded_and_the_order_of_texts_is_kept(minilm):
    model = load_encoder(minilm, "embedder", LoadOptions(backend="reference"), lambda event: None)
    texts = tuple(sentences(12, seed=3))
    job, alone = EmbeddingJob(model, *model.tokenize(texts)), []
    sizes = []
    embed = model.encoder.embed

    def watched(batch):
        sizes.append(max(map(len, batch)) * len(batch))
        return embed(batch)

    model.encoder.embed = watched
    while not job.is_finished:
        job.step()
    for text in texts:
        single = EmbeddingJob(model, *model.tokenize((text,)))
        single.step()
        alone.append(single.vectors[0])

    assert max(sizes) <= _STEP_TOKENS
    np.testing.assert_allclose(job.vectors, alone, atol=1e-5)


@pytest.mark.slow
def test_an_encoder_does_not_answer_questions_and_a_cancelled_job_says_so(client):
    with pytest.raises(NotLoadedError, match="No model is loaded in 'embedder'"):
        client.submit(Request(prompt="hi", slot="embedder", sampling=SamplingParams())).result(30)

    handle = client.embed(sentences(400))
    handle.cancel()

    with pytest.raises(EngineError, match="Embedding was cancelled"):
        handle.result(30)


@pytest.mark.slow
def test_no_texts_give_no_vectors(client):
    assert client.embed([]).result(30).vectors == b""


def test_embedding_without_an_encoder_says_so():
    with EngineClient.in_process() as client, pytest.raises(NotLoadedError, match="'embedder'"):
        client.embed(["a"]).result(10)


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ('{"model_type": "bert", "hidden_act": "relu"}', UnsupportedModelError, "hidden_act is 'relu'"),
        ('{"model_type": "bert", "hidden_size": 30, "num_attention_heads": 4}', ModelFileError, "4.*30"),
        ('{"model_type": "bert"}', ModelFileError, "hidden_size"),
    ],
)
def test_a_folder_that_cannot_run_is_refused_by_name(tmp_path, config, error, words):
    (tmp_path / "config.json").write_text(config)

    with EngineClient.in_process() as client, pytest.raises(error, match=words):
        client.load(tmp_path, "embedder").result(10)
