"""Makes users' text safe to show: the one place that all terminal, Markdown and HTML output goes through.

Questions, names and paths may contain anything. Shown raw, a line break could fake a row of a table, an escape sequence
could repaint the terminal, a right-to-left mark could reorder the text, and markup could become part of a page.
"""

from __future__ import annotations

import html
import re

# Characters that take no space but count as letters or marks, so `str.isprintable` lets them pass.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~&$#!])")


def visible(text: object) -> str:
    r"""Write out control characters, line breaks, direction marks and invisible characters: \n, \x1b, \u202e."""
    words = str(text)
    if words.isascii() and words.isprintable():
        return words
    return "".join(c if c.isprintable() and c not in _INVISIBLE else _escape(c) for c in words)


def as_html(text: object) -> str:
    """For the text or an attribute of an HTML page."""
    return html.escape(visible(text))


def as_markdown(text: object) -> str:
    """For a line, or a cell of a table, of a Markdown page."""
    return _MARKDOWN.sub(r"\\\1", visible(text))


def as_markdown_code(text: object) -> str:
    """The same in a fixed-width font: a code span, or HTML where the text could end a code span or split a cell."""
    words = visible(text)
    if words.strip() and not re.search(r"[`|\\]", words):
        return f"`{words}`"
    return "<code>" + re.sub(r"[^\w\s]|_", lambda found: f"&#{ord(found[0])};", words) + "</code>"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
