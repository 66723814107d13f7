"""One description of a result, one renderer a medium."""

import ast
import re
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest

import afresh
from afresh.results import blocks, charts, html, markdown, show

ROOT = Path(afresh.__file__).parent
HOSTILE = '<script>alert(1)</script> & "it\'s"\n\x1b[31m|`'
MARKUP = re.compile(r"</?(div|span|table|t[rdh]|svg|p|h[1-6]|html|body|style|li|ul|details)\b[^a-z]")
TABLE = show.Table(["#", "value", "question"], [["1", "0.5", HOSTILE], ["2+3", "-0.1", "x < 5"]], code=["question"])
FOREST = show.Forest(
    [
        show.Mark("1", HOSTILE, 0.5, 0.4, 0.6, "0.50 [0.40, 0.60]", HOSTILE),
        show.Mark("2", "x" * 200, None, 0.0, 1.0, "too few rows [0, 1]", "who"),
    ],
    (0.0, 1.0),
    HOSTILE,
)
DIFFERENCES = show.Forest(
    [show.Mark("1", "a", 0.1, -0.2, 0.3, "0.10", "who", href="/a?b=1&c=2", strong=False)], (-0.5, 0.5), "", filled=True
)
BARS = show.Table(["name", "0 to 1"], [[HOSTILE, show.Bar(0.5, 0.4, 0.6, (0.0, 1.0), strong=False)]])
EACH: list[show.Block] = [
    show.Title(HOSTILE),
    show.Heading(HOSTILE),
    show.Line(HOSTILE),
    show.Alert(HOSTILE),
    show.Facts({HOSTILE: HOSTILE}),
    TABLE,
    show.Bar(0.5, 0.4, 0.6, (0.0, 1.0)),
    BARS,
    show.Gauge(30, 100, HOSTILE),
    show.Gauge(0, 0, "nothing"),
    show.Drawn([FOREST, DIFFERENCES], TABLE),
    show.Fold(HOSTILE, [show.Line(HOSTILE)]),
]


def test_every_kind_of_block_is_tried() -> None:
    assert {type(block) for block in EACH} == {*get_args(blocks.Block)}


@pytest.mark.parametrize("block", EACH, ids=lambda block: type(block).__name__)
def test_every_medium_shows_every_block_and_nothing_of_its_text_is_markup(block: show.Block) -> None:
    shown = html.body([block])
    ElementTree.fromstring(f"<body>{shown}</body>")  # raises if a tag is left open
    for text in (shown, markdown.page("t", [block]), show.as_text([block])):
        assert text.strip()
        assert "\x1b" not in text
    assert "<script" not in shown + markdown.page("t", [block]).replace("\\<script", "")


def test_a_page_and_a_notebook_look_the_same_and_no_element_has_a_style_of_its_own() -> None:
    """So a server may forbid inline styles, and there is one place to change a colour."""
    page, fragment = html.page("Title", EACH), html.fragment(EACH)
    for shown in (page, fragment):
        assert html.STYLE in shown
        assert html.body(EACH) in shown
        assert not re.search(r"\sstyle=", shown)
    assert "prefers-color-scheme: dark" in page
    assert "prefers-color-scheme" not in fragment  # a notebook has colours of its own
    drawn = charts.svg(FOREST) + charts.bar(show.Bar(0.5, 0.4, 0.6, (0.0, 1.0)))
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b", drawn)


def test_a_picture_draws_every_mark_and_leaves_out_a_value_that_would_mislead() -> None:
    picture = charts.svg(FOREST)
    assert picture.count('stroke-width="3"') == 2
    assert picture.count("<circle") == 1
    assert "x" * 45 not in picture  # a long name is cut, and whole in the table


def test_without_pictures_the_table_stands_open() -> None:
    assert html.body([show.Drawn([], TABLE)]) == html.body([TABLE])


def test_no_other_module_writes_markup() -> None:
    """The texts of all modules but those that draw, the escaper's `<code>` aside."""
    own = {ROOT / "results" / "html.py", ROOT / "results" / "charts.py", ROOT / "boards" / "badge.py"}
    for path in sorted({*ROOT.rglob("*.py")} - own):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = MARKUP.search(node.value)
                assert not found, f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"


@pytest.mark.parametrize("ends", [(0.871, 0.932), (-0.01, 0.03), (0.5, 0.5), (0.0, 1.0), (1e-7, 2e-7), (120.0, 870.0)])
def test_a_scale_that_is_zoomed_in_holds_all_ends_in_four_plain_steps(ends: tuple[float, float]) -> None:
    bounds = (0.0, 1000.0) if ends[1] > 1 else (-1.0, 1.0)
    low, high = show.zoomed(ends, bounds)
    assert low <= ends[0] + 1e-12
    assert high >= ends[1] - 1e-12
    assert high - low <= max(8 * (ends[1] - ends[0]), (bounds[1] - bounds[0]) * 1e-5)
    assert all(len(f"{tick:.6g}") <= 8 for tick in charts.ticks_of((low, high)))


def test_intervals_and_gauges_in_letters() -> None:
    assert show.as_text([show.Bar(0.5, 0.25, 0.75, (0.0, 1.0))]).count("━") == 29  # and the value
    assert "█████" in show.as_text([show.Gauge(1, 8, "one of eight")])
    assert "○" in show.as_text([BARS])
