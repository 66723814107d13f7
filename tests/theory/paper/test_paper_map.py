"""docs/paper.md is complete and true: every public function of theory/ is in it, every test it names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAP = (ROOT / "docs" / "paper.md").read_text()
# Numerical tools that state no result: kernels, searches, checks, quadratures used by the results.
TOOLS = {"bernoulli", "beta", "search", "special"}
# Beyond the paper: sections 13 to 18 of docs/guarantees.md, which name these modules and say what is proved.
BEYOND = {"betting", "binomial", "checked", "evidence", "exact", "figures", "numbers", "paired", "rounds", "symbols"}
BEYOND |= {"symmetrized"}
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()


def public_names(path: Path) -> list[str]:
    return [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "src/afresh/theory").rglob("[a-z]*.py")), ids=lambda p: p.stem)
def test_every_function_is_on_the_map(path: Path) -> None:
    if path.stem in TOOLS or {path.stem, path.parent.name} & BEYOND:
        return
    missing = [name for name in public_names(path) if not re.search(rf"\b{name}\b", MAP)]
    assert missing == []


@pytest.mark.parametrize("name", sorted(BEYOND))
def test_what_goes_beyond_the_paper_is_in_the_guarantees(name: str) -> None:
    assert f"theory/{name}" in GUARANTEES or f"`{name}" in GUARANTEES


def test_every_test_on_the_map_exists() -> None:
    page, checked = "", 0
    for named, test in re.findall(r"`(test_\w+\.py)?(?:::(\w+))?`", MAP):
        page = named or page
        if test:
            checked += 1
            (path,) = (ROOT / "tests/theory").rglob(page)
            assert f"def {test}(" in path.read_text(), f"{page}::{test}"
    assert checked > 80


def test_every_label_of_the_paper_is_on_the_map() -> None:
    """Labels of results; those of steps inside proofs are cited by the functions that use them."""
    labels = "KLG MGF-KL klas mis BernsteinMGF KLchain MIchain composition gaussmax generrtrue klas-mis klconv klmin"
    labels += " laplace-kl mis-comp mis-mi prob-gen sup M gen gen-emp mi isklas"
    for label in labels.split():
        assert re.search(rf"(Lemma|Prop\.|Theorem|Corollary|Def\.) (\w+ and )?{re.escape(label)}\b", MAP), label
    for label in ("Main Theorem", "Figure 1", "Figure 2", "Eq. (3)"):
        assert label in MAP, label
