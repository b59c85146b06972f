"""Requests that no single passage answers: "summarise it", "how many pages", "list the files", "how often is X said".

What can be counted or listed is answered from the database, without a model. A summary is made from the whole where
that fits the model's context, else from passages spread evenly over it, and then it is said which pages were read.
English phrasings, and summaries in some more languages; what is not recognised is searched for as any question. Pure but for `counted` and `listed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inglenook.storage.documents import Documents
from inglenook.storage.records import Document, IndexedChunk
from inglenook.storage.search import Search

WholeKind = Literal["summary", "listing", "pages", "occurrences", "counting"]

MAX_SPREAD = 6
_MAX_LISTED = 200

_THING = (
    r"(?:documents?|files?|pdfs?|papers?|texts?|sources?|books?|reports?|it|this|these|them|everything|all)"
)
_SUMMARY = re.compile(
    r"\b(?:summar(?:y|ise|ize|ies|ised|ized)|tl;?dr|overview|outline|main points|key points|key takeaways|gist)\b"
    rf"|\bwhat (?:is|are) (?:the |this |these |my )?{_THING}(?: \w+)? about\b"
    r"|\b(?:describe|comment on|review|discuss|explain|analy[sz]e|critique|assess|go through|tell me about|proofread)"
    rf" (?:the |this |these |my |that ){_THING}\W*$"
    # "Summarise" in other languages.
    r"|zusammenfass|\bfasse?\b.*\bzusammen\b|\brésum|\bresum(?:e|en|ir|o|a)\b|riassum|riassunt|samenvat|sammanfatt|streszcz"
    r"|shrň|özet|tóm tắt|ringkas|кратк\w* (?:содержан|излож)|резюмир|обобщи|підсумуй|περίληψη|总结|總結|摘要|概括|要約|まとめて"
    r"|요약|لخص|ملخص|סכם|סיכום|सारांश|สรุป",
    re.I,
)
_LISTING = re.compile(
    r"\b(?:list|show|name)(?: me)?(?: all)?(?: of)?(?: the| my)? (?:documents|files|sources|pdfs)\b"
    r"|\b(?:which|what) (?:documents|files|sources|pdfs) (?:do (?:you|i) have|are (?:there|here|in|loaded|ticked|available))"
    r"|\bhow many (?:documents|files|pdfs|sources)\b(?! (?:say|mention|name|contain|describe|deal))",
    re.I,
)
_PAGES = re.compile(
    rf"\bhow many pages\b(?=\W*$| (?:are|does|do|has|have|is|long|in)\b.*\b{_THING}\b)|\bhow long is (?:the |this ){_THING}\b",
    re.I,
)
_OCCURRENCES = re.compile(
    r"\bhow (?:many times|often) (?:does|do|is|are) (?:the )?(?:(?:words?|terms?|names?|phrases?) )?"
    r"[\"'“‘«]?(?P<term>[^\"'”’»?]{1,80}?)[\"'”’»]? (?:appear|occur|mentioned|used|said|come up)\b"
    r"|\bcount (?:the )?(?:occurrences|mentions) of (?:the )?(?:word )?[\"'“‘]?(?P<other>[^\"'”’?.]{1,80})",
    re.I,
)
_COUNTING = re.compile(
    rf"\bhow many\b.*\b(?:in total|altogether|in all|(?:in|across|throughout) (?:the |this |these |my |all ){_THING})\W*$"
    r"|\b(?:list|name|find) (?:all|every)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class WholeRequest:
    """What is asked of the documents as a whole; `term` is what to count."""

    kind: WholeKind
    term: str = ""


def whole_request(question: str) -> WholeRequest | None:
    """Recognise a request that needs all of a document; None for a question that a passage may answer."""
    if match := _OCCURRENCES.search(question):
        return WholeRequest("occurrences", (match["term"] or match["other"] or "").strip())
    kinds: tuple[tuple[re.Pattern[str], WholeKind], ...] = (
        (_LISTING, "listing"),
        (_PAGES, "pages"),
        (_COUNTING, "counting"),
        (_SUMMARY, "summary"),
    )
    return next((WholeRequest(kind) for pattern, kind in kinds if pattern.search(question)), None)


def answer_by_counting(documents: Documents, ready: Sequence[Document], request: WholeRequest) -> str:
    """Answer what needs no model from the whole of the documents; "" for the other kinds."""
    if request.kind == "listing":
        return listed(ready)
    if request.kind == "pages":
        return "\n".join(f"“{document.name}” has {_amount(document)}." for document in ready)
    if request.kind == "occurrences" and request.term:
        return counted(documents, ready, request.term)
    return ""


def listed(ready: Sequence[Document]) -> str:
    """Name the documents with their length."""
    head = "There is 1 document:" if len(ready) == 1 else f"There are {len(ready):,} documents:"
    lines = [f"- {document.name} ({_amount(document)})" for document in ready[:_MAX_LISTED]]
    if len(ready) > _MAX_LISTED:
        lines.append(f"- and {len(ready) - _MAX_LISTED:,} more")
    return "\n".join([head, *lines])


def counted(documents: Documents, ready: Sequence[Document], term: str) -> str:
    """Count a word or phrase in every page, in whatever case and only as whole words."""
    words = r"\s+".join(re.escape(word) for word in term.split())
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.I)
    lines = []
    for document in ready:
        counts = [(page, len(pattern.findall(page.text))) for page in documents.pages(document.version_id)]
        total = sum(count for _, count in counts)
        where = [str(page.label or page.index + 1) for page, count in counts if count]
        on = f", on page{'s' if len(where) > 1 else ''} {', '.join(where[:20])}" if where else ""
        more = f" and {len(where) - 20} more" if len(where) > 20 else ""
        has_pages = any(page.width for page, _ in counts[:1])
        times = "once" if total == 1 else f"{total:,} times"
        lines.append(f"“{term}” stands {times} in “{document.name}”{on + more if has_pages else ''}.")
    return "\n".join(lines)


def spread_chunks(search: Search, ready: Sequence[Document], most: int = MAX_SPREAD) -> list[IndexedChunk]:
    """Return passages spread evenly over the documents: each one's beginning, then places further on."""
    share = max(1, most // max(1, len(ready)))
    chunks: list[IndexedChunk] = []
    for document in ready[:most]:
        num_pages = max(1, document.num_pages)
        places = sorted({round(i * (num_pages - 1) / max(1, share - 1)) for i in range(share)})
        for page_index in places:
            chunks += search.chunks_of_page(document.version_id, page_index)[:1]
    return chunks


def read_notice(chunks: Sequence[IndexedChunk], ready: Sequence[Document]) -> str:
    """Say plainly that not the whole was read, and which pages were."""
    pages = sum(document.num_pages for document in ready)
    read = len({(chunk.version_id, chunk.place.page_index) for chunk in chunks})
    return (
        f"This was not answered from the whole: {read} of {pages:,} pages were read, spread evenly, because the rest does "
        "not fit into the model's context. Ask about one part for an exact answer."
    )


def _amount(document: Document) -> str:
    what = "page" if document.kind in ("pdf", "") else "part"
    return f"{document.num_pages:,} {what}{'' if document.num_pages == 1 else 's'}"
