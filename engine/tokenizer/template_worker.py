"""The process that renders chat templates: `python -I -m inglenook.engine.tokenizer.template_worker`.

A chat template is a program that came with a file. Jinja's immutable sandbox keeps it away from Python's insides, but
bounds neither time nor memory, so it runs here: the process limits itself, serves one request after the other over
its standard streams (a length in 4 bytes, then msgpack), and ends when its input does. The parent kills it when a
render takes too long. It knows no tokens and no files.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from datetime import datetime
from typing import IO, Any, NoReturn

import jinja2
import jinja2.exceptions
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
import jinja2.utils
import msgspec

from inglenook.engine.tokenizer.process_limits import limit_cpu, limit_process

MEMORY_BYTES = 512 << 20
CPU_SECONDS = 2  # for each chat of a request
READY = b"ready"
LENGTH = struct.Struct("<I")


class RenderRequest(msgspec.Struct):
    """Render `template` once for each list of messages; `now` is the time in all of them, in seconds."""

    template: str
    chats: list[list[dict[str, str]]]
    variables: dict[str, str]
    now: float
    max_characters: int


class Rendered(msgspec.Struct):
    """One render: its text, or why there is none. `refused` marks what the template itself raised."""

    text: str | None = None
    problem: str = ""
    refused: bool = False


class _RefusedError(jinja2.TemplateError):
    """The template called `raise_exception`."""


class _GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}` marks replies for training; here its body is just text."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Put the body in the block's place."""
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return [jinja2.nodes.Scope(body).set_lineno(lineno)]


class _Namespace(jinja2.utils.Namespace):
    """Jinja's namespace, without names that could shadow Python's own."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # any name may be a keyword, also "self"
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_name(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name!r}")


def environment(now: datetime) -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """The sandbox as chat templates expect it: what `transformers` offers them, and no more."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, jinja2.ext.loopcontrols]
    )

    def raise_exception(message: object) -> NoReturn:
        raise _RefusedError(str(message))

    def to_json(
        value: object,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: now.strftime(format)
    # A function, because a type has attributes to climb out by.
    env.globals["dict"] = lambda *args, **kwargs: dict(*args, **kwargs)
    env.globals["namespace"] = _Namespace
    del env.globals["lipsum"]
    return env


def render(request: RenderRequest) -> list[Rendered]:
    """Render every chat of a request; a failure in one is its own."""
    try:
        template = environment(datetime.fromtimestamp(request.now)).from_string(request.template)
    except Exception as error:  # noqa: BLE001 - a template may fail in any way; it is reported
        return [_problem(error) for _ in request.chats]
    return [_render_one(template, messages, request) for messages in request.chats]


def _render_one(
    template: jinja2.Template, messages: list[dict[str, str]], request: RenderRequest
) -> Rendered:
    parts: list[str] = []
    size = 0
    try:
        for part in template.generate(
            **request.variables, messages=messages, tools=None, documents=None, add_generation_prompt=True
        ):
            size += len(part)
            if size > request.max_characters:
                return Rendered(problem=f"it makes more than {request.max_characters:,} characters")
            parts.append(part)
    except Exception as error:  # noqa: BLE001 - a template may fail in any way; it is reported
        return _problem(error)
    return Rendered("".join(parts))


def _problem(error: Exception) -> Rendered:
    if isinstance(error, MemoryError):
        return Rendered(problem="it asks for too much memory")
    if isinstance(error, _RefusedError):
        return Rendered(problem=str(error)[:500], refused=True)
    return Rendered(problem=f"{type(error).__name__}: {str(error)[:500]}")


def read_frame(stream: IO[bytes], limit: int) -> bytes | None:
    """One frame, or None where the stream ends or the length is over `limit`."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size or LENGTH.unpack(head)[0] > limit:
        return None
    body = stream.read(LENGTH.unpack(head)[0])
    return body if len(body) == LENGTH.unpack(head)[0] else None


def main() -> None:
    """Serve requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the parent's affair
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    environment(datetime.now()).from_string("{{ 1 }}").render()  # import all that rendering imports
    limit_process(MEMORY_BYTES)
    sink.write(READY)
    sink.flush()
    while (frame := read_frame(source, MEMORY_BYTES)) is not None:
        request = msgspec.msgpack.decode(frame, type=RenderRequest)
        limit_cpu(CPU_SECONDS * len(request.chats))
        answer = msgspec.msgpack.encode(render(request))
        sink.write(LENGTH.pack(len(answer)) + answer)
        sink.flush()


if __name__ == "__main__":
    main()
