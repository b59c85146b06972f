"""Word documents are read in order, with all that lies outside of the body."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import pytest

from inglenook.storage.parsing import zip_package
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.docx import read_docx
from inglenook.storage.parsing.errors import DamagedDocumentError, DocumentTooLargeError

_SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def p(text: str, *, style: str = "", inner: str = "") -> str:
    """A paragraph."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r>{inner}</w:p>"


def docx(
    body: str,
    parts: Mapping[str, str | bytes] | None = None,
    relations: Mapping[str, tuple[str, str]] | None = None,
) -> bytes:
    """An archive with a body, other parts, and what the body refers to: id to kind and target."""
    links = "".join(
        f'<Relationship Id="{i}" Type="{_KIND}{kind}" Target="{target}"/>'
        for i, (kind, target) in (relations or {}).items()
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"<w:document {_SPACES}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/_rels/document.xml.rels", f"<Relationships>{links}</Relationships>")
        for name, content in (parts or {}).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def text_of(data: bytes) -> str:
    return read_docx(data, ParsingLimits()).flow.text


def test_paragraphs_and_rows_keep_their_order_and_cells_stay_apart() -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = "".join(f"<w:tr>{cell.format(f'A{i}')}{cell.format(f'B{i}')}</w:tr>" for i in (1, 2))

    assert (
        text_of(docx(p("before") + f"<w:tbl>{rows}</w:tbl>" + p("after")))
        == "before\n\nA1 | B1\nA2 | B2\n\nafter"
    )


def test_a_table_inside_a_cell_stays_in_its_row() -> None:
    inner = f"<w:tbl><w:tr><w:tc>{p('x')}</w:tc><w:tc>{p('y')}</w:tc></w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{p('a')}{inner}</w:tc><w:tc>{p('b')}</w:tc></w:tr></w:tbl>"

    assert text_of(docx(outer)) == "a x | y | b"


def test_a_text_box_follows_its_paragraph_and_is_not_read_twice() -> None:
    box = f"<w:txbxContent>{p('in the box')}</w:txbxContent>"
    choice = f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>"

    assert text_of(docx(p("anchor", inner=choice) + p("next"))) == "anchor\n\nin the box\n\nnext"


def test_notes_and_comments_follow_what_refers_to_them() -> None:
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:commentReference w:id="0"/></w:r>'
    note = f'<w:footnotes {_SPACES}><w:footnote w:type="separator" w:id="-1"/><w:footnote w:id="2">{p("a note")}</w:footnote></w:footnotes>'
    comment = f'<w:comments {_SPACES}><w:comment w:id="0">{p("a comment")}</w:comment></w:comments>'
    data = docx(
        p("claim", inner=reference) + p("next"),
        {"word/footnotes.xml": note, "word/comments.xml": comment},
        {"r1": ("footnotes", "footnotes.xml"), "r2": ("comments", "comments.xml")},
    )

    assert text_of(data) == "claim\n\na note\n\na comment\n\nnext"


def test_headers_stand_before_and_footers_after_the_body() -> None:
    data = docx(
        p("body"),
        {
            "word/header1.xml": f"<w:hdr {_SPACES}>{p('Confidential')}</w:hdr>",
            "word/footer1.xml": f"<w:ftr {_SPACES}>{p('ACME Ltd')}</w:ftr>",
        },
        {"r1": ("header", "header1.xml"), "r2": ("footer", "/word/footer1.xml")},
    )

    assert text_of(data) == "Confidential\n\nbody\n\nACME Ltd"


def test_alternative_chunks_and_diagrams_are_read() -> None:
    diagram = f"<dgm:dataModel {_SPACES}><dgm:t><a:p><a:r><a:t>plan</a:t></a:r></a:p></dgm:t></dgm:dataModel>"
    data = docx(
        p("one", inner='<w:r><dgm:relIds r:dm="r3"/></w:r>')
        + '<w:altChunk r:id="r1"/><w:altChunk r:id="r2"/>'
        + p("end"),
        {
            "word/chunk.html": "<html><script>no()</script><p>from <b>HTML</b></p></html>",
            "word/inner.docx": docx(p("from inside")),
            "word/diagrams/data1.xml": diagram,
        },
        {
            "r1": ("aFChunk", "chunk.html"),
            "r2": ("aFChunk", "inner.docx"),
            "r3": ("diagramData", "diagrams/data1.xml"),
        },
    )

    assert text_of(data) == "one\n\nplan\n\nfrom HTML\n\nfrom inside\n\nend"


def test_a_document_inside_itself_ends() -> None:
    data = docx(p("leaf"))
    for _ in range(6):
        data = docx(
            p("level") + '<w:altChunk r:id="r1"/>', {"word/x.docx": data}, {"r1": ("aFChunk", "x.docx")}
        )

    word = read_docx(data, ParsingLimits())

    assert word.flow.text.count("level") == 4
    assert word.notes == ["1 embedded documents of other types were not read."]


def test_headings_are_known_by_style_name_base_and_outline() -> None:
    styles = (
        f'<w:styles {_SPACES}><w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>'
        '<w:style w:styleId="O"><w:name w:val="Other"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
        '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style></w:styles>'
    )
    body = (
        p("Report", style="T") + p("Part", style="O") + p("Section", style="Mine") + p("text", style="Loop")
    )

    word = read_docx(
        docx(body, {"word/styles.xml": styles}, {"r1": ("styles", "styles.xml")}), ParsingLimits()
    )

    assert [(heading.level, heading.title) for heading in word.flow.headings] == [
        (0, "Report"),
        (1, "Part"),
        (2, "Section"),
    ]
    assert word.title == "Report"


def test_deleted_and_hidden_text_is_left_out_and_said_so() -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>obey me</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> shown</w:t></w:r>'
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"

    word = read_docx(docx(p("kept", inner=hidden + shown + deleted)), ParsingLimits())

    assert word.flow.text == "kept shown"
    assert word.notes == ["Hidden text (7 characters) was left out."]


def test_entities_and_files_are_never_fetched() -> None:
    xml = (
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        + f"<w:document {_SPACES}><w:p/></w:document>"
    )
    data = docx("", {"word/evil.xml": xml}, None)
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships><Relationship Id="a" Type="{_KIND}officeDocument" Target="word/evil.xml"/></Relationships>',
        )

    with pytest.raises(DamagedDocumentError, match="document type"):
        read_docx(buffer.getvalue(), ParsingLimits())


def test_a_bomb_is_refused_by_what_it_inflates_to(monkeypatch: pytest.MonkeyPatch) -> None:
    data = docx(p("x" * 4_000_000))
    monkeypatch.setattr(zip_package, "MAX_PART_BYTES", 8 << 20)

    assert len(data) < 20_000
    with pytest.raises(DocumentTooLargeError, match="characters"):
        read_docx(data, ParsingLimits(max_text_chars=3_200_000))
    with pytest.raises(DocumentTooLargeError, match="MiB"):
        read_docx(
            docx(p("a"), {"word/header1.xml": b" " * (9 << 20)}, {"r": ("header", "header1.xml")}),
            ParsingLimits(),
        )


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04",
        docx("<w:p>") + b"",
        docx(p("a"))[:-40],
        docx("<w:p><w:r>" * 300 + "</w:r></w:p>" * 300),
    ],
)
def test_what_is_broken_is_said_to_be(data: bytes) -> None:
    with pytest.raises(DamagedDocumentError):
        read_docx(data, ParsingLimits())
