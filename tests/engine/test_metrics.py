"""What a slot counts, under which names."""

import re

import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.engine.client import EngineClient
from inglenook.engine.homes.messages import Stats
from inglenook.engine.metrics import Histogram, exposition
from inglenook.engine.request import LoadOptions, Request, SamplingParams

T = 30.0


@pytest.fixture(scope="module")
def stats(tmp_path_factory):
    """After one reply of 20 tokens, the same again from the cache, and one that was refused."""
    path = write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with EngineClient.in_process() as client:
        client.load(path, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        sampling = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
        for _ in range(2):
            client.submit(Request(prompt_token_ids=tuple(range(3, 43)), sampling=sampling)).result(T)
        yield client.stats()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt_tokens", 80),
        ("generation_tokens", 40),
        ("prefix_cache_queries", 80),
        ("prefix_cache_hits", 39),
        ("num_preemptions", 0),
        ("num_requests_running", 0),
        ("num_requests_waiting", 0),
        ("kv_cache_usage_perc", 0),
        ("request_success.length", 2),
        ("request_success.cancelled", 0),
        ("time_to_first_token_seconds_count", 2),
        ("time_per_output_token_seconds_count", 2),
        ("e2e_request_latency_seconds_bucket.120", 2),
        ("request_prompt_tokens_sum", 80),
        ("request_prompt_tokens_bucket.20", 0),
        ("request_prompt_tokens_bucket.50", 2),
        ("request_generation_tokens_sum", 40),
        ("iteration_tokens_total_count", 40),
        ("request_queue_time_seconds_count", 2),
        ("request_inference_time_seconds_count", 2),
        ("request_prefill_time_seconds_count", 2),
        ("request_decode_time_seconds_count", 2),
        ("time_per_prefill_token_request_seconds_count", 2),
        ("request_max_num_generation_tokens_sum", 40),
        ("request_params_n_bucket.1", 2),
        ("request_params_max_tokens_sum", 40),
    ],
)
def test_numbers_have_the_names_of_vllm(stats, name, value):
    assert stats.values[f"chat.{name}"] == value


def test_the_phases_of_a_request_add_up_to_its_time(stats):
    def total(name):
        return stats.values[f"chat.{name}_sum"]

    inference, queue = total("request_inference_time_seconds"), total("request_queue_time_seconds")
    prefill, decode = total("request_prefill_time_seconds"), total("request_decode_time_seconds")

    assert prefill + decode == pytest.approx(inference)
    assert queue + prefill == pytest.approx(total("time_to_first_token_seconds"))
    assert 0 < queue + inference <= total("e2e_request_latency_seconds")


def test_the_bandwidth_of_decoding_is_told(stats):
    assert stats.values["chat.achieved_bandwidth_gb_s"] > 0


def test_a_snapshot_is_written_as_prometheus_reads_it(stats):
    text = exposition(stats)

    line = re.compile(r'inglenook:[a-z0-9_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+')
    assert all(line.fullmatch(shown) for shown in text.splitlines())
    assert 'inglenook:generation_tokens_total{slot="chat",model_name="tiny.gguf"} 40\n' in text
    assert (
        'inglenook:request_success_total{slot="chat",model_name="tiny.gguf",finished_reason="length"} 2\n'
        in text
    )
    assert 'inglenook:request_prompt_tokens_bucket{slot="chat",model_name="tiny.gguf",le="50"} 2\n' in text
    assert 'inglenook:request_prompt_tokens_bucket{slot="chat",model_name="tiny.gguf",le="+Inf"} 2\n' in text


def test_a_models_name_cannot_break_a_line_of_the_snapshot():
    text = exposition(Stats({"chat.steps": 12_345_678.0}, {"chat": 'a"b\n\\'}))

    assert text == 'inglenook:steps_total{slot="chat",model_name="a\\"b\\n\\\\"} 12345678\n'


def test_a_bucket_counts_what_is_at_most_its_limit():
    histogram = Histogram((1, 5))
    for value in (1, 2, 5, 6):
        histogram.observe(value)

    assert histogram.values("x") == {"x_bucket.1": 1, "x_bucket.5": 3, "x_sum": 14, "x_count": 4}
