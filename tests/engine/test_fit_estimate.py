"""What a model is said to need before it is loaded, against what its engine process takes once a context is full."""

import psutil
import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.request import LoadOptions, Request, SamplingParams

T = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("model", "backend", "context", "kv_dtype"),
    [
        ("smollm2", "native-cpu", 2048, None),
        ("smollm2", "native-cpu", 4096, "int8"),
        ("qwen2", "native-cpu", 2048, None),
        ("smollm2", "torch-cpu", 128, None),
    ],
)
def test_the_estimate_is_within_a_tenth_of_what_is_measured(request, model, backend, context, kv_dtype):
    options = LoadOptions(backend=backend, context_length=context, kv_dtype=kv_dtype)
    with EngineClient.child() as client:
        facts = client.load(request.getfixturevalue(model), options=options).result(T)
        (engine,) = psutil.Process().children()
        whole = tuple(1000 + i % 5000 for i in range(context - 4))
        sampling = SamplingParams(max_tokens=4, ignore_eos=True)
        client.submit(Request(prompt_token_ids=whole, sampling=sampling)).result(T)

        taken = engine.memory_info().rss

    assert facts.need_bytes == pytest.approx(taken, rel=0.10)
