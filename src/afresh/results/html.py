"""The one HTML renderer: blocks as a fragment for a notebook, or as a self-contained page.

All styles are in `STYLE` and `PAGE`; no element has a style of its own, so a server may forbid inline styles. A
fragment takes the colours of the surrounding page; a page follows its reader's preference for light or dark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from afresh.escaping import as_html
from afresh.results import charts
from afresh.results.blocks import (
    Alert,
    Bar,
    Block,
    Cell,
    Drawn,
    Facts,
    Fold,
    Gauge,
    Heading,
    Line,
    Picture,
    Table,
    Title,
)

STYLE = """
.afresh { font-family: system-ui, sans-serif; line-height: 1.45; max-width: 64em }
.afresh .title { font-weight: 600; margin: .3em 0; white-space: pre-wrap; overflow-wrap: anywhere }
.afresh .line { margin: .2em 0; opacity: .85; overflow-wrap: anywhere }
.afresh .alert { border-left: 4px solid #d9a400; background: rgba(217, 164, 0, .15); padding: .4em 1em; margin: .4em 0 }
.afresh .scroll { overflow-x: auto }
.afresh table { border-collapse: collapse; margin: .4em 0; font-size: inherit; font-variant-numeric: tabular-nums }
.afresh th, .afresh td { text-align: left; vertical-align: top; padding: .15em 1.2em .15em 0 }
.afresh .facts th { font-weight: normal; opacity: .7; white-space: nowrap }
.afresh .facts td { overflow-wrap: anywhere }
.afresh .right { text-align: right; white-space: nowrap }
.afresh .code { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere }
.afresh .forest { width: 100%; min-width: 640px }
.afresh .accent { color: #2a78c4 }
.afresh .quiet { opacity: .55 }
.afresh svg.bar, .afresh svg.gauge { max-width: 100%; vertical-align: middle }
.afresh summary { cursor: pointer; margin: .2em 0; overflow-wrap: anywhere }
"""
PAGE = """
:root { color-scheme: light dark }
body { margin: 2em auto; padding: 0 1em; max-width: 64em; font-size: 16px; background: #fff; color: #1c2430 }
h1 { font-size: 1.8em; line-height: 1.2 } h2 { font-size: 1.3em; margin: 1.6em 0 .4em }
@media (prefers-color-scheme: dark) {
  body { background: #14181e; color: #dfe5ec }
  .afresh .accent { color: #62a8e5 }
}
"""


def fragment(blocks: Sequence[Block]) -> str:
    """The HTML for the output of a notebook cell."""
    return f'<div class="afresh"><style>{STYLE}</style>{body(blocks)}</div>'


def page(title: str, blocks: Sequence[Block]) -> str:
    """A whole document."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{as_html(title)} - afresh</title><style>{STYLE}{PAGE}</style></head>
<body><main class="afresh"><h1>{as_html(title)}</h1>
{body(blocks)}
</main></body></html>
"""


def part(blocks: Sequence[Block]) -> str:
    """Part of a service's page, whose stylesheet chooses between the wide and the narrow picture."""
    return f'<div class="afresh">{body(blocks, charts.both)}</div>'


def body(blocks: Sequence[Block], draw: Callable[[Picture], str] = charts.svg) -> str:
    """Only the blocks, for a page that has the stylesheet."""
    return "\n".join(_block(block, draw) for block in blocks)


def _block(block: Block, draw: Callable[[Picture], str]) -> str:
    match block:
        case Title(text):
            return f'<div class="title">{as_html(text)}</div>'
        case Heading(text):
            return f"<h2>{as_html(text)}</h2>"
        case Line(text):
            return f'<div class="line">{as_html(text)}</div>'
        case Alert(text):
            return f'<div class="alert" role="note">{as_html(text)}</div>'
        case Facts(items):
            return f'<table class="facts">{"".join(_fact(*item) for item in items.items())}</table>'
        case Table():
            return _table(block)
        case Bar():
            return charts.bar(block)
        case Gauge(_, _, words):
            return f'<div class="line">{charts.gauge(block)} {as_html(words)}</div>'
        case Drawn(pictures, table):
            drawn = "".join(f'<div class="scroll" tabindex="0">{draw(picture)}</div>' for picture in pictures)
            return drawn + _block(Fold("The numbers as a table", [table]) if drawn else table, draw)
        case Fold(summary, inner):
            return f"<details><summary>{as_html(summary)}</summary>{body(inner, draw)}</details>"


def _fact(name: str, value: str) -> str:
    return f'<tr><th scope="row">{as_html(name)}</th><td>{as_html(value)}</td></tr>'


def _table(table: Table) -> str:
    sides = [' class="right"' if table.numeric(i) else "" for i in range(len(table.header))]
    kinds = [' class="code"' if name in table.code else side for name, side in zip(table.header, sides, strict=True)]
    header = _row("th", table.header, sides)
    rows = "".join(_row("td", row, kinds) for row in table.rows)
    return f'<div class="scroll" tabindex="0"><table>{header}{rows}</table></div>'


def _row(tag: str, cells: Sequence[Cell], kinds: Sequence[str]) -> str:
    inner = (f"<{tag}{kind}>{_cell(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
    return f"<tr>{''.join(inner)}</tr>"


def _cell(cell: Cell) -> str:
    return charts.small_bar(cell) if isinstance(cell, Bar) else as_html(cell)
