"""Whatever is recognized by a digest is recognized by at least 128 bits of it; people may be shown fewer.

Two inputs that agree in 32 bits are found in a second, and one of them would get the other's answer.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "afresh"
BYTES = 16
SHOWN = {
    "guard/noise.py": {"from_seed.draw"},  # 64 bits of chance
    "engines/identity/sketch.py": {"key_of"},  # the ledger's key, as large as what it multiplies
    "evaluations/candidates.py": {"Dealt.candidate"},
    "judging/files.py": {"Files.label"},
    "judging/judge.py": {"Judge._run"},  # the name of a log, with chance in it
    "models/labelled.py": {"LabelledRows._predictions", "LabelledRows._submit"},
    "results/holding.py": {"Holding._blocks"},
}
"""Functions that shorten a digest for people, or draw from it. Nothing may be looked up by what they make."""
DIGESTS = ("digest", "fingerprint", "hash", "seal", "mark", "data", "key")
WEAK = {"crc32", "adler32", "hash", "md5", "sha1"}
WEAK_AT = {
    # The identity of rows: a sum of 64-bit hashes of cells, as Postgres computes them; the steward brings the rows.
    "engines/identity/cells.py": {"md5"},
}


def found_in(text: str) -> Iterator[tuple[str, str]]:
    """Every truncated digest and weak hash of a source, with the function it is in."""

    def visit(node: ast.AST, where: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            where = (*where, node.name)
        if why := truncated(node):
            yield ".".join(where), why
        for child in ast.iter_child_nodes(node):
            yield from visit(child, where)

    yield from visit(ast.parse(text), ())


def truncated(node: ast.AST) -> str | None:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        cut, (of, each) = node.slice.upper, _name(node.value)
        low = 0 if node.slice.lower is None else getattr(node.slice.lower, "value", None)
        if of.rpartition("_")[2] in DIGESTS or of in ("hexdigest", "digest"):
            if not isinstance(cut, ast.Constant) or low is None or not isinstance(cut.value, int):
                return None
            size = (cut.value - low) / (1 if each == "digest()" else 2)
            return f"{of}[:{cut.value}]" if size < BYTES else None
    if isinstance(node, ast.Call):
        called, _ = _name(node.func)
        for given in node.keywords:
            if (
                given.arg == "digest_size"
                and isinstance(given.value, ast.Constant)
                and given.value.value in range(BYTES)
            ):
                return f"digest_size={given.value.value!r}"
        if called in WEAK and (isinstance(node.func, ast.Name) or called != "hash"):
            return called
    return None


def _name(node: ast.AST) -> tuple[str, str]:
    """The last name of an expression, and how it is used."""
    if isinstance(node, ast.Call):
        return _name(node.func)[0], f"{_name(node.func)[0]}()"
    if isinstance(node, ast.Attribute):
        return node.attr, ""
    return (node.id, "") if isinstance(node, ast.Name) else ("", "")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_is_recognized_by_a_part_of_a_digest(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    found = list(found_in(path.read_text(encoding="utf-8")))
    allowed = SHOWN.get(name, set())
    assert [each for each in found if each[0] not in allowed and each[1] not in WEAK_AT.get(name, set())] == []


def test_every_exception_is_still_one() -> None:
    for name, functions in SHOWN.items():
        found = {where for where, _ in found_in((SOURCE / name).read_text(encoding="utf-8"))}
        assert functions == found, name


@pytest.mark.parametrize(
    "text",
    [
        "key = digest[:8]",
        "path = f'{candidate.digest[:16]}.npz'",
        "own = hashlib.sha256(b'').hexdigest()[:12]",
        "own = hashlib.sha256(b'').hexdigest()[2:10]",
        "own = hashlib.sha256(b'').digest()[:8]",
        "own = hashlib.blake2b(b'', digest_size=12).hexdigest()",
        "name = terms.data[:8]",
        "name = zlib.crc32(b'')",
        "name = hash(text)",
        "name = hashlib.md5(b'')",
    ],
)
def test_it_finds_them(text: str) -> None:
    assert len(list(found_in(text))) == 1


@pytest.mark.parametrize(
    "text",
    ["d = digest[:32]", "d = h.digest()[:16]", "d = blake2b(b'', digest_size=16)", "d = text[:8]", "cells.hash(x)"],
)
def test_it_finds_nothing_else(text: str) -> None:
    assert list(found_in(text)) == []
