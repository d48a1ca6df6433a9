"""A report as blocks, and the two forms that it is given in: a page of HTML by itself, and PDF."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from host_tools.cli import plots
from host_tools.i18n import _, language

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `strong` for what must not be missed."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Rows:
    """A table; columns in `left` hold words, the others numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[int] = frozenset({0})


@dataclass(frozen=True)
class Drawing:
    """A drawing with what it shows in words."""

    figure: Figure
    caption: str


Block = Heading | Paragraph | Rows | Drawing


@dataclass
class Document:
    """A report: its title, what stands under it, when it was made (UTC), and its blocks."""

    title: str
    subtitle: str
    made: datetime
    blocks: list[Block] = field(default_factory=list)


# System colours and fonts only; the page asks for nothing from anywhere.
_CSS = """
:root { color-scheme: light dark; --line: #8888; --soft: #8882; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 60rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 1.6rem; } p.under { margin-top: 0; } a { color: inherit; }
div.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th.left, td.left { text-align: left; overflow-wrap: break-word; } thead th { background: var(--soft); }
figure { margin: 1rem 0; } figcaption { font-size: .9rem; }
figure div { overflow-x: auto; } figure svg { max-width: 100%; min-width: 32rem; height: auto; }
@media print { :root { color-scheme: light; } body { margin: 0; max-width: none; font-size: 10pt; }
  h2, h3 { break-after: avoid; } figure, tr { break-inside: avoid; } thead { display: table-header-group; } }
"""


def to_html(document: Document, back: tuple[str, str] | None = None) -> str:
    """The document as one page that needs nothing else, for light and dark and for paper.

    `back` is the address and the words of a link to where the page is from.
    """
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="{language()}">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{html.escape(document.title)}</title><style>{_CSS}</style></head>",
        "<body>",
        f'<nav><a href="{html.escape(back[0])}">{html.escape(back[1])}</a></nav>' if back else "",
        f"<main><h1>{html.escape(document.title)}</h1>",
        f'<p class="under">{html.escape(document.subtitle)}</p>',
    ]
    for index, block in enumerate(document.blocks):
        if isinstance(block, Heading):
            parts.append(f"<h{block.level}>{html.escape(block.text)}</h{block.level}>")
        elif isinstance(block, Paragraph):
            text = html.escape(block.text)
            parts.append(f"<p><strong>{text}</strong></p>" if block.strong else f"<p>{text}</p>")
        elif isinstance(block, Rows):
            parts.append(_html_table(block))
        else:
            caption = html.escape(block.caption)
            drawn = plots.svg(block.figure, f"drawing{index}")
            drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{caption}" ', 1)
            parts.append(f'<figure><div tabindex="0">{drawn}</div><figcaption>{caption}</figcaption></figure>')
    parts.append("</main></body></html>")
    return "\n".join(parts) + "\n"


def _html_table(rows: Rows) -> str:
    def cells(values: Sequence[str], tag: str) -> str:
        opened = '<th scope="col"' if tag == "th" else "<td"
        return "".join(
            opened + (' class="left">' if place in rows.left else ">") + html.escape(value) + f"</{tag}>"
            for place, value in enumerate(values)
        )

    head = cells(rows.headings, "th")
    body = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows.rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def to_pdf(document: Document) -> bytes:
    """The document as PDF on A4, its letters in the file."""
    import matplotlib
    from fpdf import FPDF
    from fpdf.enums import XPos, YPos
    from fpdf.fonts import FontFace

    foot = _("page {page} of {pages}")

    class Pages(FPDF):
        def footer(self) -> None:
            self.set_y(-12)
            self.set_font("DejaVu", size=8)
            words = foot.format(page=self.page_no(), pages="{nb}")
            self.cell(0, 5, f"{document.title} · {document.made:%Y-%m-%d %H:%M} UTC · {words}", align="C")

    pdf = Pages(format="A4")
    # matplotlib brings this font; the ones that every PDF reader has know Latin letters only.
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    pdf.add_font("DejaVu", "", str(fonts / "DejaVuSans.ttf"))
    pdf.add_font("DejaVu", "B", str(fonts / "DejaVuSans-Bold.ttf"))
    pdf.set_title(document.title)
    pdf.set_lang(language())
    pdf.set_creation_date(document.made)
    pdf.set_margins(15, 15)
    pdf.set_auto_page_break(True, 18)
    pdf.add_page()

    def text(words: str, size: float, style: str = "", before: float = 0.0) -> None:
        pdf.set_font("DejaVu", style, size)
        pdf.ln(before)
        pdf.multi_cell(0, size * 0.5, words, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    text(document.title, 17, "B")
    text(document.subtitle, 9, before=1)
    for block in document.blocks:
        if isinstance(block, Heading):
            # A heading is not left alone at the foot of a page.
            if pdf.will_page_break(40):
                pdf.add_page()
            text(block.text, 13 if block.level == 2 else 10.5, "B", before=5 if block.level == 2 else 3)
        elif isinstance(block, Paragraph):
            text(block.text, 9, "B" if block.strong else "", before=1.5)
        elif isinstance(block, Drawing):
            drawn = BytesIO(plots.png(block.figure))
            width, height = block.figure.get_size_inches()
            if pdf.will_page_break(180 * height / width + 8):
                pdf.add_page()
            pdf.ln(2)
            pdf.image(drawn, w=180, alt_text=block.caption)
            text(block.caption, 8)
        elif block.rows:
            pdf.ln(1.5)
            pdf.set_font("DejaVu", size=8)
            aligned = tuple("LEFT" if place in block.left else "RIGHT" for place in range(len(block.headings)))
            with pdf.table(
                text_align=aligned,
                borders_layout="HORIZONTAL_LINES",
                line_height=4.5,
                headings_style=FontFace(emphasis="BOLD"),
                col_widths=_widths(block),
            ) as drawn_table:
                for row in (block.headings, *block.rows):
                    drawn_table.row(list(row))
    return bytes(pdf.output())


def _widths(rows: Rows) -> tuple[int, ...]:
    """Columns as wide as their longest words want, within reason."""
    columns = zip(rows.headings, *rows.rows, strict=True)
    return tuple(min(40, max(5, *(len(value) + 2 for value in column))) for column in columns)
