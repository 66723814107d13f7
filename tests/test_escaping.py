"""Whatever users write into questions, names and paths, no output carries it raw."""

import html.parser
import io
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import afresh
from afresh import losses, statistics
from afresh.cli import main
from afresh.errors import AfreshError
from afresh.escaping import as_html, as_markdown, as_markdown_code, visible
from afresh.guard.guard import Guard
from afresh.receipts.page import as_html as html_page
from afresh.receipts.page import as_markdown as markdown_page

NASTY = (
    "\x1b[31mred\x1b[0m\r\n  99  0.50  fake\x00\x07\x9b2J\u202egnp\u2066\u2028\u2029\u200b\u00ad\ufeff"
    "| a | `b` **c** _d_ <script>alert(1)</script> ![x](javascript:alert(1)) [y](javascript:z) \\| \\` &lt; \"' $m$ # h"
)
NAME = NASTY.replace("\x00", "")  # ledgers refuse a null character in names, and so do file systems
ANALYST = "".join(c for c in NAME if visible(c) == c).strip()  # names of analysts have visible characters only
BLACK = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Tags(html.parser.HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs)


def check_text(text: str, lines: int | None = None) -> None:
    assert not BLACK.search(text), repr(BLACK.search(text))
    assert text.isprintable() or set(re.findall(r"[^ -~]", text)) <= set("\n·━●±…"), ascii(text)
    assert lines is None or text.count("\n") == lines
    assert not any(line.lstrip().startswith("99  0.50") for line in text.split("\n"))


def check_html(page: str) -> None:
    assert not BLACK.search(page)
    tags = Tags(page).found
    assert not tags & {"script", "img", "a", "b", "iframe", "object"}


def check_markdown(page: str) -> None:
    assert not BLACK.search(page)
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inline = [token for block in tokens for token in (block, *(block.children or ()))]
    kinds = {token.type for token in inline}
    assert not kinds & {"link_open", "image", "em_open", "html_block", "fence"}
    raw = {token.content for token in inline if token.type == "html_inline"}
    assert raw <= {"<code>", "</code>"}
    assert "strong_open" not in kinds
    lines = [line for line in page.split("\n") if line.startswith("| ")]
    assert len(lines) == sum(token.type == "tr_open" for token in tokens)  # no line broke out of its table


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AFRESH_LEDGER", str(tmp_path / "ledger.sqlite"))
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({NAME: rng.random(2000), "group": rng.integers(0, 3, 2000).astype(str), "b": rng.random(2000)})


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def shown(result: Any) -> None:
    """Every way in which a result can be shown."""
    check_text(str(result))
    check_text(repr(result), 0)
    if hasattr(result, "_repr_html_"):
        check_html(result._repr_html_())
    if hasattr(result, "_repr_markdown_"):
        check_markdown(result._repr_markdown_())


def test_guard(frame: pd.DataFrame) -> None:
    column = '"' + NAME.replace('"', '""') + '"'
    with afresh.open(frame, questions=30, method="calibrated", analyst=ANALYST) as guard:
        shown(guard)
        shown(Guard(guard.desk, NAME))
        shown(guard.ask(f'{column} < 0.5 AND "group" <> {quoted(NAME)}'))
        shown(guard.ask(column, bounds=(0, 1), where=f'"group" <> {quoted(NAME)}'))
        shown(guard.charge(NAME, kl=1e-9))
        shown(guard.divide({ANALYST: 10, "b`|<i>": 2}))
        shown(guard.budget)
        shown(guard.transcript)
        for record in guard.transcript:
            check_text(repr(record), 0)
        shown(guard.measure(statistics.GroupMeans("b < 0.5", '"group"', [NAME])))
        check_text(repr(statistics.Variance(column, bounds=(0, 1))), 0)
        receipt = guard.receipt()
        check_html(html_page(receipt))
        check_markdown(markdown_page(receipt))
        for wrong in (
            lambda: guard.ask(f"{column} < nothing_such"),
            lambda: guard.ask(f"b = {quoted(NAME)}"),
            lambda: guard.ask(NAME),
            lambda: guard.ask("b", bounds=NAME),  # type: ignore[arg-type]
            lambda: guard.ask("b", bounds=(0, 1), missing=NAME),  # type: ignore[arg-type]
            lambda: guard.ask('"' + "x" + NAME.replace('"', '""') + '" > 0'),
            lambda: guard.charge(NAME, kl=1e9),
            lambda: guard.divide({ANALYST: 10**6}),
            lambda: guard.divide({NAME: 1}),
            lambda: afresh.open(frame, analyst=NAME),
            lambda: guard.divide({NAME: -1}),
            lambda: [guard.ask(f"b < {i / 100}") for i in range(30)],
            lambda: guard.measure(NAME),  # type: ignore[arg-type]
            lambda: afresh.open(frame, method=NAME),
            lambda: afresh.open(NAME),
        ):
            with pytest.raises(AfreshError) as caught:
                wrong()
            check_text(str(caught.value), 0)


def test_holdout(frame: pd.DataFrame) -> None:
    labels = (frame["b"] > 0.5).astype(int).to_numpy()
    loss = losses.Custom(lambda y, p: (p - y) ** 2, name=NAME)
    with afresh.holdout(frame[["b"]], labels, loss=loss, questions=40) as holdout:
        shown(holdout)
        shown(holdout.score(labels * 0.9, name=NAME))
        shown(holdout.compare(labels * 0.9, labels * 0.2, names=(NAME, "b" + NAME)))
        shown(holdout.best_of([labels * 0.9, labels * 0.2], names=[NAME, "b" + NAME]))
        shown(holdout.guard.transcript)
        receipt = holdout.guard.receipt()
        check_html(html_page(receipt))
        check_markdown(markdown_page(receipt))


def run(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["afresh", *map(str, arguments)])
    with argv, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


def test_cli(frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = tmp_path / NAME.replace("/", "")
    folder.mkdir()
    data = folder / "a.parquet"
    frame.rename(columns={NAME: "a"}).to_parquet(data)
    asked = f'"group" <> {quoted(NAME)}'
    opened = folder / "b.parquet"
    pd.DataFrame({"group": [str(i) for i in range(4000)], "other": range(4000)}).to_parquet(opened)
    for code, *arguments in (
        (0, "ask", data, asked, "--method", "calibrated", "--questions", 20, "--analyst", ANALYST),
        (2, "ask", data, asked, "--analyst", NAME),
        (0, "charge", data, NAME, "--kl", 1e-9),
        (0, "divide", data, f"{ANALYST}=3"),
        (2, "divide", data, f"{NAME}=3"),
        (0, "log", data),
        (0, "budget", data, "--analyst", ANALYST),
        (0, "receipt", data, "--out", folder / "r.json", "--markdown"),
        (0, "verify", folder / "r.json"),
        (3, "ask", data, NAME),
        (3, "ask", data, f"nothing = {quoted(NAME)}"),
        (2, "ask", data, asked, "--method", NAME),
        (2, "divide", data, NAME),
        (1, "log", folder / "none.parquet"),
        (1, "verify", folder / "none" / NAME),
        (1, "log", data, "--ledger", folder),
        (2, "plan", "--rows", NAME),
        (2, "plan", f"--{NAME}"),
        (2, "plan", f"--{NAME}=3"),
        (2, "plan", "--rows", 3, NAME),
        (2, "ask", data, asked, "--bounds", NAME),
        (2, "lab", NAME),
        (2, NAME),
        (0, "list"),
        (2, "list", "--ledger", folder / NAME),
        (1, "budget", folder / f"{NAME}.parquet"),
        (2, "open-rows", data, "--out", folder / NAME),
        (0, "ask", opened, asked, "--open", 0.5, "--allow-wide", "--dry-run"),
        (0, "open-rows", opened, "--out", folder / f"mine{NAME.replace('/', '')}.csv"),
        (3, "ask", data, NAME, "--json"),
        (1, "budget", folder / f"{NAME}.parquet", "--json"),
    ):
        found, out, err = run(*arguments)
        assert found == code, (arguments, err)
        check_text(out)
        check_text(re.sub("[─│╭╮╰╯]", "", err))
    assert (folder / "r.json").read_text(encoding="utf-8").isascii()
    check_html((folder / "r.html").read_text(encoding="utf-8"))
    check_markdown((folder / "r.md").read_text(encoding="utf-8"))


@given(st.text())
def test_nothing_unseen_is_left(text: str) -> None:
    told = visible(text)
    assert told.isprintable()
    assert "\u3164" not in told  # a letter that takes no space
    assert visible(told) == told
    if text.isascii() and text.isprintable():
        assert told == text


@given(st.text(alphabet=st.sampled_from("ab |`\\*_<>&[]()!#~$\n\u202e{}:/.-'\"1"), max_size=30))
def test_markup_says_what_was_written(text: str) -> None:
    table = MarkdownIt("commonmark").enable("table")
    page = f"| x | y |\n|---|---|\n| {as_markdown(text)} | {as_markdown_code(text)} |"
    tokens = table.parse(page)
    cells = [token for token in tokens if token.type == "inline"][2:]
    assert len(cells) == 2
    for cell in cells:
        words = "".join(child.content for child in cell.children or () if child.type != "html_inline")
        assert words.strip() == visible(text).strip()
    assert "<" not in as_html(text)
