"""What every engine must do: mean exactly what `operations` says, on a table of values chosen to break it.

Counts must be those of the oracle, and means within 1e-12 of it. An engine takes the suite by a subclass of
`Conformance` with a fixture `engine` over a table of `ROWS`.
"""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from afresh.engines.base import Engine
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.errors import InvalidArgument
from afresh.moments import Moments, Span, even_spans
from afresh.queries import build
from afresh.queries.asked import ask
from afresh.queries.parse import parse
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type, walk
from engines import oracle
from engines.nasty import ROWS, TEXTS, table
from engines.reference_identity import fingerprint, sketch
from examples import examples
from queries import expressions

Made = tuple[Query, Node, Node | None]

MISTAKEN = [
    "trim(city) = 'x'",
    "length(trim(city)) <= 1",
    "length(city) = 1",
    "NOT (x < 1)",
    "NOT (flag AND other)",
    "NOT (x = 0)",
    "city < 'a'",
    "city > 'Z' AND city < 'é'",
    "city > '日本'",
    "city = 'BERN'",
    "city LIKE 'a\\b'",
    "city LIKE '\\%'",
    "city LIKE '%\\%'",
    "city LIKE '_'",
    "city LIKE 'a%b'",
    "city LIKE '%''%'",
    "city LIKE '~%' OR city LIKE '%`%'",
    "city ILIKE '%É%' OR city ILIKE 'B%'",
    "city = 'a\\b' OR city = '\\%' OR city = '\"`$'",
    "city IN ('it''s', 'a\\b', '', '100%')",
    "upper(city) = 'STRASSE' OR upper(city) = 'STRAßE'",
    "lower(city) = 'ασ' OR lower(city) = 'ας' OR lower(city) = 'ΑΣ'",
    "lower(city) = 'i' OR lower(city) = 'İ' OR lower(city) = 'é'",
    "length(upper(city)) = length(city) AND lower(upper(city)) < 'b'",
    "TRY_CAST(x AS VARCHAR) < TRY_CAST(y AS VARCHAR)",
    "TRY_CAST(x AS VARCHAR) < 'a' AND TRY_CAST(big AS VARCHAR) IS NULL",
    "TRY_CAST(x AS VARCHAR) = '0' OR TRY_CAST(big AS VARCHAR) = '9007199254740992'",
    "TRY_CAST(city AS DOUBLE) IS NULL",
    "TRY_CAST(city AS DOUBLE) BETWEEN -150 AND 12 OR TRY_CAST(city AS DOUBLE) = 1e99",
    "TRY_CAST('1 ' AS DOUBLE) = 1 AND TRY_CAST('x' AS DOUBLE) IS NULL",
    "starts_with(city, '') AND ends_with(city, '') AND contains(city, '')",
    "starts_with(city, '1') OR ends_with(city, 'b') OR contains(city, '\n')",
    "starts_with('a', city) OR ends_with('it''s', city) OR contains('100%', city)",
    "substring(city, 2) = 'ern' OR substring(city, 1, 1) = '😀' OR substring(city, 999999999, 999999999) = ''",
    "year(day) = 1 OR month(moment) = 12 OR extract(doy FROM day) = 366",
    "extract(dow FROM day) = 0 OR extract(isodow FROM moment) = 7",
    "hour(moment) = 2 OR minute(moment) = 59 OR second(moment) = 59",
    "extract(epoch FROM moment) < 0 AND extract(epoch FROM day) = -86400",
    "extract(epoch FROM moment) = 253402300799 OR extract(epoch FROM moment) = -1",
    "date_diff('day', day, moment) > 0 OR day - DATE '2024-02-29' = 0",
    "date_diff('week', day, DATE '2025-02-02') = 0 OR date_diff('second', moment, day) < -1000",
    "extract(epoch FROM DATE '0001-01-01') = -62135596800 AND hour(TIMESTAMP '2025-03-09 02:30:00') = 2",
    "x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)",
    "x IN (0, -0.0, 1, 1.0, 1e0)",
    "x IN (-0.0, 7) OR y IN (-0.0)",
    "city IN ('é', 'é')",
    "moment IN ('2024-02-29', '2024-02-29 00:00:00') OR day IN ('2024-02-29', '2024-02-29 00:00:00')",
    "x = 0",
    "-x = 0",
    "1 / x > 0",
    "x * y = 0",
    "x / y = 0",
    "x - y = 0",
    "big = 9223372036854775807",
    "big = 9007199254740992",
    "big + 1 > big",
    "round(x) = 1 OR round(x) = -3",
    "x % 3 = 1 OR x % -2 = -1",
    "x % 0.1 < 0.05",
    "moment < '2025-03-09 02:30:00.000001'",
    "moment = '2025-01-31 12:00:00.000001'",
    "moment > '9999-12-31 23:59:59'",
    "day < '1970-01-01' OR day = '9999-12-31'",
    "CASE WHEN x > 0 THEN ln(x) ELSE NULL END > 1",
    "coalesce(x, y) IS NULL",
    "least(x, y) = greatest(x, y)",
    "1e308 * 10 > 0",
    "1e308 + 1e308 IS NULL",
    "0.0 / 0 IS NULL AND 1 / 0 IS NULL AND 5 % 0 IS NULL",
    "power(-8, 0.5) IS NULL AND ln(0) IS NULL AND sqrt(-1) IS NULL",
    "5e-324 * 0.5 = 0 AND exp(-1000) = 0 AND exp(1000) IS NULL",
    "power(x, 2) = 6.25 OR power(x, 3) = 1000 OR power(x, 0.5) = 0",
    "exp(0) = 1 AND ln(1) = 0 AND log10(1000) = 3 AND power(2, 10) = 1024 AND sqrt(x * x) = abs(x)",
    "TRUE",
]


@st.composite
def _queries(draw: st.DrawFn) -> Made:
    """A query and the trees it was made of, which the oracle reads as they were written."""
    group = draw(st.one_of(st.none(), expressions.conditions(1)))
    complement = draw(st.booleans())
    if draw(st.booleans()):
        missing = draw(st.sampled_from([None, 0.0, 1.0]))
        tree = draw(expressions.conditions(4))
        return Query(tree, (0.0, 1.0), missing, group, complement), tree, group
    low, high = draw(st.sampled_from([(0.0, 1.0), (-10.0, 10.0), (0.0, 1e300), (-3.0, -2.0), (5e-324, 1.0)]))
    missing = draw(st.sampled_from([None, low, high, (low + high) / 2]))
    tree = draw(expressions.numbers(4))
    return Query(tree, (low, high), missing, group, complement), tree, group


def check(query: Query, found: Moments, values: list[float]) -> None:
    """Compare what an engine found with the oracle's values."""
    assert all(0 <= value <= 1 for value in values)
    assert found.n == len(values)
    if query.expression.type is Type.BOOLEAN:
        assert found.total == sum(values), query.text
        assert found.squares == found.total
    else:
        assert found.mean == pytest.approx(math.fsum(values) / found.n, abs=1e-12), query.text
        assert found.squares == pytest.approx(math.fsum(v * v for v in values), abs=1e-9), query.text
    if query.levels == 2:
        assert set(values) <= {0.0, 1.0}


def check_all(engine: Engine, made: list[Made], *, libm: bool = True) -> None:
    """Ask many queries at once and compare every answer; without `libm` the engine's functions are not Python's."""
    for one, found in zip(made, engine.moments([query for query, _, _ in made]), strict=True):
        if libm or not _uses_library(one):
            check(one[0], found, oracle.psi(*one, ROWS))
        else:
            _check_between(one, found)


def _nudged(made: Made, nudge: int) -> list[float]:
    oracle.nudge = nudge
    try:
        return oracle.psi(*made, ROWS)
    finally:
        oracle.nudge = 0


def _uses_library(made: Made) -> bool:
    nodes = (node for tree in made[1:] if tree is not None for node in walk(tree))
    return any(isinstance(node, Call) and node.op.row.library for node in nodes)


def _check_between(made: Made, found: Moments) -> None:
    """The total lies between those of functions a last bit smaller and larger, most often the same."""
    three = list(zip(*(_nudged(made, nudge) for nudge in (-1, 0, 1)), strict=True))
    low, high = math.fsum(map(min, three)), math.fsum(map(max, three))
    assert low - found.n * 1e-12 <= found.total <= high + found.n * 1e-12, made[0].text


def check_generated(engine: Engine, times: float, batch: int, *, libm: bool = True) -> None:
    """Ask random queries, `batch` at once, and compare every answer; so many times the usual number of examples."""
    # without shrinking where a statement takes long: one that fails would be tried hundreds of times
    phases = list(Phase) if times >= 0.5 else [Phase.explicit, Phase.generate]
    unhurried = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]

    @examples(times, phases=phases, suppress_health_check=unhurried)
    @given(made=st.lists(_queries(), min_size=1 if batch < 10 else batch, max_size=batch))
    def agree(made: list[Made]) -> None:
        check_all(engine, made, libm=libm)

    agree()


def check_mistaken(engine: Engine) -> None:
    """Ask what is easily mistaken."""
    trees = [parse(text, engine.schema) for text in MISTAKEN]
    check_all(engine, [(Query(tree), tree, None) for tree in trees])


class Conformance:
    """The suite. Engines that take long for every statement take fewer and larger ones."""

    times = 1.0
    batch = 4  # queries asked at once
    libm = True  # whether exp, ln, log10 and power are those of the C library, as in Python

    def test_agrees_with_the_oracle(self, engine: Engine) -> None:
        check_generated(engine, self.times, self.batch, libm=self.libm)

    def test_no_operation_lets_a_non_finite_operand_out(self, engine: Engine) -> None:
        """Every operation on every operand that can be infinite or NaN inside an engine."""
        x, y, ten = Column("x", Type.NUMBER), Column("y", Type.NUMBER), Literal(10.0, Type.NUMBER)
        operands: list[Node] = [x, *(Call(op, (x, y), Type.NUMBER) for op in (Op.MULTIPLY, Op.DIVIDE, Op.POWER))]
        unary = expressions.operations(Type.NUMBER, Type.NUMBER)
        pairs = [*expressions.operations(Type.NUMBER, Type.NUMBER, Type.NUMBER), *expressions.MERGES]
        trees: list[Node] = [Call(op, (one,), Type.NUMBER) for op in unary for one in operands]
        trees += [Call(op, args, Type.NUMBER) for op in pairs for one in operands for args in ((one, ten), (ten, one))]
        trees += [Call(Op.CASE, (Column("flag", Type.BOOLEAN), one, ten), Type.NUMBER) for one in operands]
        trees += [Call(Op.IS_NULL, (tree,), Type.BOOLEAN) for tree in trees]
        check_all(
            engine,
            [(Query(t, (-5.0, 20.0) if t.type is Type.NUMBER else (0.0, 1.0)), t, None) for t in trees],
            libm=self.libm,
        )

    def test_easily_mistaken(self, engine: Engine) -> None:
        check_mistaken(engine)

    def test_missing_numbers_are_left_out(self, engine: Engine) -> None:
        """Both parts of a mean over the rows that have a number: NULL, NaN, infinities and overflow are no number."""
        texts = ["x", "y", "big", "x * y", "1 / x", "ln(x)", "TRY_CAST(city AS DOUBLE)", "CASE WHEN flag THEN x END"]
        texts += ["least(x, y)", "coalesce(x, y)", "length(city)", "month(day)"]
        asked = [
            ask(text, engine.schema, (-5, 20), where, missing)
            for text in texts
            for where in (None, "flag", "x > 1 OR city = 'Bern'")
            for missing in (None, -5, 20, 1)
        ]
        queries = [query for one in asked for query in one.queries if isinstance(query, Query)]
        made: list[Made] = [(query, query.expression, query.group) for query in queries]
        assert {one.skips for one in asked} == {True, False}
        check_all(engine, made, libm=self.libm)

    def test_patterns_mean_the_same(self, engine: Engine) -> None:
        """Made of the signs in the table's texts."""
        dice = random.Random(11)
        made: list[Made] = []
        for _ in range(60):
            signs = "".join(dice.choice([text for text in TEXTS if text]) for _ in range(3))
            like = "".join(dice.choice((*signs, "%", "%", "_")) for _ in range(dice.randint(0, 6)))
            tree = build.like(Column("city", Type.TEXT), Literal(like, Type.TEXT))
            made.append((Query(tree), tree, None))
        check_all(engine, made)

    def test_schema(self, engine: Engine) -> None:
        assert dict(engine.schema) == {name: kind for name, kind in expressions.SCHEMA.items() if kind}
        assert engine.rows == len(ROWS)
        engine.check_unchanged()

    def test_the_identity_is_that_of_the_same_rows_in_memory(self, engine: Engine) -> None:
        """Digests in row order aside, which a database does not have."""
        for key in ("one ledger's", "another's"):
            assert engine.identity(key).sketch == sketch(ROWS, key)
        reference, found = EmbeddedEngine(table()).identity(), engine.identity()
        assert found.fingerprint == reference.fingerprint == fingerprint(ROWS)
        assert found.rows == len(ROWS)
        for one, other in zip(found.columns, reference.columns, strict=True):
            assert (one.name, one.unordered) == (other.name, other.unordered)
            assert one.ordered in (None, other.ordered)

    def test_spans_see_their_own_rows_only(self, engine: Engine) -> None:
        queries = [make_query("x", engine.schema, (-10, 10)), make_query("flag", engine.schema)]
        each = [query for query in queries for _ in range(7)]
        with pytest.raises(InvalidArgument, match="not shuffled"):
            engine.moments(queries[:1], [Span(0, 1)])
        totals = []
        for seed in ("seed 'of' \\ it", "another", "seed 'of' \\ it"):
            engine.shuffle(seed)
            parts = engine.moments(each, even_spans(engine.rows, 7) * 2)
            assert [part.n for part in parts] == [63] * 14
            for one, full in zip((parts[:7], parts[7:]), engine.moments(queries), strict=True):
                assert sum(part.total for part in one) == pytest.approx(full.total)
            totals.append([part.total for part in parts])
        assert totals[0] == pytest.approx(totals[2])
        assert totals[0] != pytest.approx(totals[1])

    def test_rows_are_dealt_as_those_in_memory(self, engine: Engine) -> None:
        """One budget for the same rows on all engines: what one has opened must not be fresh on another."""
        reference = EmbeddedEngine(table())
        texts = [*(f"city = '{city}'" for city in ("BERN", "100%", "")), "flag", "other", "x > 0", "day < '1970-01-01'"]
        queries = [make_query(text, engine.schema) for text in texts] + [make_query("y", engine.schema, (-10, 10))]
        spans = even_spans(len(ROWS), 21)
        for opened in (engine, reference):
            opened.shuffle("a seed for all")
        for query in queries:
            found, known = (each.moments([query] * len(spans), spans) for each in (engine, reference))
            assert [part.total for part in found] == pytest.approx([part.total for part in known])
        handed, kept = (sorted(each.hand_out(Span(5, 60))["city"].to_pylist(), key=str) for each in (engine, reference))
        assert handed == kept
        reference.close()

    def test_long_and_deep_questions_run(self, engine: Engine) -> None:
        texts = [
            " OR ".join(f"x = {i}" for i in range(700)),
            f"x IN ({', '.join(map(str, range(1500)))})",
            " + ".join(["x"] * 90) + " > 1",
            "1 / (" * 20 + "x" + ")" * 20 + " > 1",
            " ^ ".join(["x"] * 90) + " > 1",
            "NOT (" * 20 + "flag" + ")" * 20,
            "CASE WHEN x > 1 THEN 2 ELSE " * 20 + "3" + " END" * 20 + " > 2",
        ]
        for text in texts:  # one by one, so that a failure tells which
            tree = parse(text, engine.schema)
            check_all(engine, [(Query(tree), tree, None)], libm=self.libm)
