"""The one Markdown renderer; tables replace pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from afresh.escaping import as_markdown, as_markdown_code
from afresh.results.blocks import Alert, Bar, Block, Drawn, Facts, Fold, Gauge, Heading, Line, Table, Title
from afresh.results.strips import strip


def page(title: str, blocks: Sequence[Block]) -> str:
    """A whole document."""
    return "\n\n".join([f"# {as_markdown(title)}", *filter(None, map(_block, blocks))]) + "\n"


def _block(block: Block) -> str:
    match block:
        case Title(text) | Line(text):
            return as_markdown(text)
        case Heading(text):
            return f"## {as_markdown(text)}"
        case Alert(text):
            return f"**{as_markdown(text)}**"
        case Facts(items):
            return "\n".join(f"- {as_markdown(name)}: {as_markdown(value)}" for name, value in items.items())
        case Table():
            return "\n".join(_table(block))
        case Bar(value, low, high):
            return f"{value:.6g}, from {low:.6g} to {high:.6g}"
        case Gauge(_, _, words):
            return as_markdown(words)
        case Drawn(_, table):
            return _block(table)
        case Fold(summary, inner):
            return "\n\n".join([as_markdown(summary), *map(_block, inner)])


def _table(table: Table) -> Iterator[str]:
    shown = [as_markdown_code if name in table.code else as_markdown for name in table.header]
    yield f"| {' | '.join(map(as_markdown, table.header))} |"
    yield f"|{'|'.join('--:' if table.numeric(i) else '---' for i in range(len(table.header)))}|"
    for row in table.rows:
        cells = [strip(cell) if isinstance(cell, Bar) else cell for cell in row]
        yield f"| {' | '.join(show(cell) for show, cell in zip(shown, cells, strict=True))} |"
