"""HTML as start tags, end tags and text, in time that grows with its length whatever it holds.

The standard library's parser tries anew at every "<" of a page without a ">", which takes minutes for some kilobytes.
Here a tag is looked for within a bound, and what is no tag is text. Entities become characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

_LONGEST_QUOTED_TAG = 4096

_NAME = re.compile(r"</?([a-zA-Z][^\s/>\"'=<]{0,60})")
_TAG_END = re.compile(r"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')|=)*+>")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']{1,100})(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']*)))?")
# Elements whose content is text up to their own end tag.
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


class StartTag(NamedTuple):
    """A tag that begins an element; names in lower case."""

    name: str
    attributes: dict[str, str]
    is_empty: bool


class EndTag(NamedTuple):
    """A tag that ends an element."""

    name: str


def html_tokens(source: str) -> Iterator[StartTag | EndTag | str]:
    """Yield the parts of a page in order; comments and declarations are passed over."""
    position, last_end = 0, source.rfind(">")
    while position < len(source):
        start = source.find("<", position)
        if start < 0 or start > last_end:
            break
        if start > position:
            yield unescape(source[position:start])
        name = _NAME.match(source, start)
        if source.startswith("<!--", start):
            end = source.find("-->", start + 4)
            # One that is never closed hides the rest of the page.
            position = end + 3 if end >= 0 else len(source)
        elif source.startswith(("<!", "<?"), start):
            position = source.find(">", start) + 1
        elif name is None:
            yield "<"
            position = start + 1
        else:
            position = _tag_end(source, name.end())
            if source.startswith("</", start):
                yield EndTag(name.group(1).lower())
                continue
            tag = _start_tag(name.group(1).lower(), source[name.end() : position - 1])
            yield tag
            if tag.name in _RAW and not tag.is_empty:
                found = _RAW[tag.name].search(source, position)
                end = found.start() if found else len(source)
                yield (
                    unescape(source[position:end])
                    if tag.name in ("title", "textarea")
                    else source[position:end]
                )
                position = end
    else:
        return
    yield unescape(source[position:])


def _tag_end(source: str, position: int) -> int:
    """Return the place after the ">" that ends a tag; one inside of quotes does not, unless the tag is very long."""
    found = _TAG_END.match(source, position, position + _LONGEST_QUOTED_TAG)
    return found.end() if found else source.find(">", position) + 1


def _start_tag(name: str, rest: str) -> StartTag:
    # Values are looked for only where they matter and the tag is of a sane length: pictures may stand in them.
    attributes: dict[str, str] = {}
    for key, double, single, bare in _ATTRIBUTE.findall(rest[:_LONGEST_QUOTED_TAG]):
        attributes.setdefault(key.lower(), unescape(double or single or bare))
    return StartTag(name, attributes, rest.endswith("/"))
