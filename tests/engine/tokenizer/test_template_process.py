"""The template worker: no way out of the sandbox, bounded time and memory, no process left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from inglenook.engine.errors import TemplateError
from inglenook.engine.tokenizer.template_process import TemplateProcess
from inglenook.engine.tokenizer.template_worker import Rendered

_MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def process() -> Iterator[TemplateProcess]:
    with TemplateProcess(render_seconds=1.0) as process:
        yield process


def _render(process: TemplateProcess, template: str, max_characters: int = 10_000) -> Rendered:
    (rendered,) = process.render(template, [_MESSAGES], {"bos_token": "<s>"}, max_characters=max_characters)
    return rendered


def test_a_template_sees_messages_variables_and_the_prompt_flag(process: TemplateProcess) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m['content'] }}{% endfor %}{{ add_generation_prompt }}"

    assert _render(process, template).text == "<s>user:HiTrue"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "Hi"),
        ("{% for i in range(5) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{{ {'b': '<é>', 'a': 1} | tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        (
            "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
            "4",
        ),
        ("{{ dict(a=1).a }}{{ tools is none }}{{ undefined_name }}", "1True"),
        ("{{ strftime_now('%Y') | length }}", "4"),
        ("  {%- if true %}\n  a\n  {% endif %}\nb\n", "  a\nb"),
    ],
)
def test_what_chat_templates_rely_on_works(process: TemplateProcess, template: str, text: str) -> None:
    assert _render(process, template).text == text


_ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__']['__base__'] }}",
    "{{ ''|attr('__class__')|attr('__mro__') }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "{{ ('{0.__class__}' | attr('format'))(messages) }}",
    "{% set f = '{0.__class__}'.format %}{{ f(1) }}",
    "{{ ['{0.__class__}'] | map('format', 1) | join }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ cycler.__init__.__globals__.os.popen('touch FILE').read() }}",
    "{{ joiner.__init__.__globals__['os'].system('touch FILE') }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('touch FILE').read() }}",
    "{{ dict.__base__.__subclasses__() }}",
    "{{ dict.mro() }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context.eval_ctx.environment }}",
    "{{ raise_exception.__globals__['__builtins__']['open']('FILE', 'w') }}",
    "{{ strftime_now.__code__ }}",
    "{% include 'FILE' %}",
    "{% import '/etc/passwd' as x %}",
    "{% extends '/etc/passwd' %}",
    "{% macro m() %}{% endmacro %}{{ m.__class__ }}{{ m._func.__globals__ }}",
    "{{ messages.append({'role': 'x'}) }}",
    "{{ messages[0].update({'role': 'x'}) }}",
    "{{ messages | map(attribute='__class__') | list }}",
    "{% set ns = namespace(__class__=1) %}{{ ns }}",
    "{% set ns = namespace() %}{% set ns.__call__ = 1 %}{{ ns }}",
    "{{ range.__self__ }}{{ (1).__class__ }}",
    "{{ open('FILE', 'w') }}",
    "{{ __import__('os') }}",
    "{{ joiner|attr('__init__')|attr('__globals__')|attr('__getitem__')('os') }}",
]


@pytest.mark.parametrize("template", _ESCAPES)
def test_a_known_escape_finds_nothing(process: TemplateProcess, tmp_path: Path, template: str) -> None:
    file = tmp_path / "file"

    rendered = _render(process, template.replace("FILE", str(file)))

    assert not file.exists()
    assert rendered.text is None or not any(
        word in rendered.text for word in ("<class", "<function", "<module", "root:", "__", "os.")
    )


@pytest.mark.parametrize(
    "template",
    [
        "{{ ('a' * 10**9) | length }}",
        "{{ '{:>1000000000}'.format('a') | length }}",
        "{{ '%1000000000d' % 1 | length }}",
        "{{ 'a' | center(10**9) }}",
        "{{ [0] * 10**9 }}",
        "{{ 'a' | indent(10**9) }}",
        "{{ 10 ** (10 ** 8) }}",
        "{{ range(10**9) | list }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaa' }}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ '(' * 5000 }}" + "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
)
def test_a_resource_bomb_fails_and_the_next_render_works(process: TemplateProcess, template: str) -> None:
    started = time.monotonic()

    with contextlib.suppress(TemplateError):  # over the time; what fails in time is reported with the result
        assert _render(process, template).text is None

    assert time.monotonic() - started < 10
    assert _render(process, "{{ 1 + 1 }}").text == "2"


def test_a_render_over_its_time_says_the_budget(process: TemplateProcess) -> None:
    with pytest.raises(TemplateError, match="budget of 1 seconds"):
        _render(process, "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")


def test_a_refusal_of_the_template_is_told_from_a_fault(process: TemplateProcess) -> None:
    refused = _render(process, "{{ raise_exception('Only user roles') }}")
    broken = _render(process, "{% if %}")

    assert (refused.refused, refused.problem) == (True, "Only user roles")
    assert (broken.refused, "TemplateSyntaxError" in broken.problem) == (False, True)


def test_one_chat_that_fails_leaves_the_others(process: TemplateProcess) -> None:
    template = (
        "{% if messages[0].content == 'x' %}{{ raise_exception('no x') }}{% endif %}{{ messages[0].content }}"
    )
    chats = [[{"role": "user", "content": c}] for c in ("a", "x", "b")]

    assert [r.text for r in process.render(template, chats, {}, max_characters=100)] == ["a", None, "b"]


def test_output_over_the_cap_is_refused(process: TemplateProcess) -> None:
    assert (
        "characters"
        in _render(process, "{% for i in range(50) %}aaa{% endfor %}", max_characters=100).problem
    )


def test_a_worker_that_was_killed_in_between_is_replaced(process: TemplateProcess) -> None:
    _render(process, "a")
    assert process.pid is not None
    killed = psutil.Process(process.pid)
    killed.kill()
    psutil.wait_procs([killed], timeout=10)

    assert _render(process, "b").text == "b"


def test_closing_ends_the_worker_and_twice_is_fine() -> None:
    process = TemplateProcess()
    process.start()
    assert process.pid is not None
    worker = psutil.Process(process.pid)

    process.close()
    process.close()

    assert not worker.is_running()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("template", ["{{ 1 }}", _ESCAPES[0]])
@pytest.mark.slow
def test_no_worker_outlives_a_parent_that_is_killed(template: str) -> None:
    program = (
        "import sys, time\n"
        "from inglenook.engine.tokenizer.template_process import TemplateProcess\n"
        "p = TemplateProcess()\n"
        f"p.render({template!r}, [[]], {{}}, max_characters=10)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)

    gone, _ = psutil.wait_procs([worker], timeout=10)
    assert gone


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux keeps them")
def test_the_worker_has_its_limits(process: TemplateProcess) -> None:
    _render(process, "a")
    assert process.pid is not None
    worker = psutil.Process(process.pid)

    assert worker.rlimit(psutil.RLIMIT_AS)[0] == 512 << 20
    assert worker.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert worker.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert worker.rlimit(psutil.RLIMIT_NPROC) == (0, 0)
    assert worker.rlimit(psutil.RLIMIT_CPU)[0] < 60
