"""A template is told apart from another family's by the tokens of its model."""

from __future__ import annotations

import pytest
from template_families import FAMILIES

from inglenook.engine.model_doctor.templates import format_findings
from inglenook.engine.tokenizer.template_process import TemplateProcess

QUESTION = "And by day?"
CHAT = [
    {"role": "user", "content": "Who keeps the lamp?"},
    {"role": "assistant", "content": "The keeper keeps it."},
    {"role": "user", "content": QUESTION},
]
TOKENS = {
    "chatml with a default system message": ("<|im_start|>", "<|im_end|>"),
    "mistral 3 and nemo": ("[INST]", "[/INST]"),
    "llama 3.1": ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "gemma 3": ("<start_of_turn>", "<end_of_turn>"),
    "phi 3": ("<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"),
    "qwen 3": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "deepseek r1 distilled": ("<｜User｜>", "<｜Assistant｜>"),
    "smollm 3": ("<|im_start|>", "<|im_end|>"),
    "granite 3": ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
    "olmo 2": ("<|endoftext|>",),
}


@pytest.fixture(scope="module")
def prompts() -> dict[str, str]:
    with TemplateProcess() as process:
        return {
            family: process.render(FAMILIES[family], [CHAT], {"bos_token": "<s>", "eos_token": "</s>"},
                                   max_characters=10_000)[0].text or ""
            for family in TOKENS
        }  # fmt: skip


@pytest.mark.parametrize("family", TOKENS)
def test_a_familys_own_template_is_green(prompts: dict[str, str], family: str) -> None:
    (finding,) = format_findings(prompts[family], QUESTION, TOKENS[family])

    assert finding.light == "green", finding.sentence


@pytest.mark.parametrize(
    ("family", "tokens", "words"),
    [
        ("qwen 3", "llama 3.1", "<|im_start|>, <|im_end|>, which this model has no token for"),
        ("llama 3.1", "qwen 3", "<|start_header_id|>, <|end_header_id|>, <|eot_id|>, which"),
        ("gemma 3", "mistral 3 and nemo", "<start_of_turn>, <end_of_turn>, which"),
        ("olmo 2", "qwen 3", "does not write a question as '<|im_start|>user\\n...<|im_end|>\\n'"),
        ("mistral 3 and nemo", "gemma 3", "does not write a question as '<start_of_turn>user"),
    ],
)
def test_another_familys_template_is_amber_and_says_what_is_wrong(
    prompts: dict[str, str], family: str, tokens: str, words: str
) -> None:
    (finding,) = format_findings(prompts[family], QUESTION, TOKENS[tokens])

    assert finding.light == "amber"
    assert words in finding.sentence


def test_a_changed_turn_is_amber(prompts: dict[str, str]) -> None:
    for spoiled in (
        prompts["qwen 3"].replace("user\nAnd", "user: And"),
        prompts["qwen 3"].replace("assistant\n", "assistant: "),
    ):
        (finding,) = format_findings(spoiled, QUESTION, TOKENS["qwen 3"])

        assert finding.light == "amber"
