"""A badge: one line of text as a self-contained SVG picture, for pages elsewhere."""

from __future__ import annotations

from afresh.escaping import as_html

_LETTER = 6.4  # the approximate width of a letter at this size; `textLength` makes it exact
_LEFT = "afresh"


def badge(words: str, sure: str, *, decided: bool) -> str:
    """The verdict, next to the name afresh; green once one entry is certainly the best."""
    said = words if len(words) <= 80 else words[:79] + "…"
    said = f"{said} ({sure})"
    left, right = (round(_LETTER * len(text) + 14) for text in (_LEFT, said))
    colour = "#2e7d32" if decided else "#2a5d8f"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{as_html(said)}"><title>{as_html(said)}</title>'
        f'<rect width="{left + right}" height="20" rx="4" fill="{colour}"/>'
        f'<path d="M4 0h{left - 4}v20H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z" fill="#444c56"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="7" y="14" textLength="{left - 14}">{_LEFT}</text>'
        f'<text x="{left + 7}" y="14" textLength="{right - 14}" lengthAdjust="spacingAndGlyphs">{as_html(said)}</text>'
        "</g></svg>"
    )
