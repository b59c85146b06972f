"""What a person may set for one model is read and tried before anything is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_gguf import CONTEXT, HEADS, HIDDEN, KV_HEADS, LAYERS, TEMPLATE, write_tiny_gguf

from inglenook.engine.library.model_details import check_template, read_details
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import open_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("details") / "tiny.gguf")


def test_the_longest_context_the_cost_of_a_token_and_the_template_are_read(tiny: Path) -> None:
    details = read_details(tiny)

    head = HIDDEN // HEADS
    assert details.context_length == CONTEXT
    assert details.kv_bytes_per_token["float16"] == 2 * LAYERS * KV_HEADS * head * 2
    assert details.kv_bytes_per_token["int8"] == 2 * LAYERS * KV_HEADS * (head + 4)
    assert details.chat_template == TEMPLATE


def test_the_models_own_template_passes_and_shows_what_it_renders(tiny: Path) -> None:
    check = check_template(tiny, TEMPLATE)

    assert (check.problem, check.remark) == ("", "")
    assert check.sample.startswith("<|im_start|>user\nWhat is a hedge?<|im_end|>\n")
    assert check.num_tokens > 10


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for m in messages %}{{ m.content }}", "This chat template is not usable"),
        ("{{ raise_exception('No chats here.') }}", "No chats here."),
        ("<|im_start|>assistant\n", "leaves the question “What is a hedge?” out"),
        (
            "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}",
            "leaves the earlier reply “A row of shrubs.” out",
        ),
        ("{{ ''.__class__.__mro__ }}", "not usable"),
        ("x" * 70_000, "70,000 bytes; at most 65,536 are allowed. Correct it"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_in_a_sentence(
    tiny: Path, template: str, words: str
) -> None:
    assert words in check_template(tiny, template).problem


def test_a_template_that_works_but_worse_is_remarked(tiny: Path) -> None:
    bare = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE

    assert "none of this model's control tokens" in check_template(tiny, bare).remark
    # Instructions are folded into the question where the template has no place for them.
    assert check_template(tiny, refusing).problem == ""


def test_a_file_that_is_no_model_is_a_problem_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")

    assert check_template(tmp_path / "x.gguf", TEMPLATE).problem


def test_a_template_given_at_load_is_the_one_that_renders(tiny: Path) -> None:
    given = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
    with open_model(tiny) as file, Tokenizer.from_model_file(file, chat_template=given) as tokenizer:
        prompt = tokenizer.encode_chat([{"role": "user", "content": "Hello"}])

    assert prompt.text == "<|im_start|>Hello<|im_end|>"


def test_reading_details_needs_no_torch(tiny: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from inglenook.engine.library.model_details import *; "
        f"read_details(Path({str(tiny)!r})); assert 'torch' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
