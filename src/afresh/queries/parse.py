"""SQL text to expression tree, through an allowlist: what is not named here does not pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from afresh.errors import QueryError
from afresh.queries.refusals import refuse, unknown_column
from afresh.queries.syntax import MAX_CHARACTERS, TOO_DEEP, short, syntax
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type
from afresh.queries.typing import align, expect, moment, need_order, negated

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

MAX_DEPTH = 100  # of the tree, as a + b + c + ... makes it
MAX_SIZE = 5_000  # nodes, after BETWEEN and CASE x WHEN have been written out

_TOO_LONG = f"the question is too long (at most {MAX_SIZE} parts); split it into several questions"


def parse(text: str, schema: Mapping[str, Type | None]) -> Node:
    """The typed tree of a row expression over the columns of `schema`; `QueryError` says what is wrong."""
    if not isinstance(text, str):
        raise QueryError(f"a question is text, as in \"age < 30 AND city = 'Bern'\"; got {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"the question has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    if "\0" in text:
        raise QueryError("the question contains a NUL character")
    try:
        return _Reader(schema).read(syntax(text))
    except RecursionError:
        pass  # raised below, so that the error carries no thousand frames of context
    raise QueryError(TOO_DEEP)


_COMPARE: dict[str, tuple[Op, bool, bool]] = {  # operation, swap the operands, negate
    "EQ": (Op.EQUAL, False, False),
    "NEQ": (Op.EQUAL, False, True),
    "LT": (Op.LESS, False, False),
    "LTE": (Op.LESS_EQUAL, False, False),
    "GT": (Op.LESS, True, False),
    "GTE": (Op.LESS_EQUAL, True, False),
}
_ARITHMETIC = {
    "Add": Op.ADD,
    "Sub": Op.SUBTRACT,
    "Mul": Op.MULTIPLY,
    "Div": Op.DIVIDE,
    "Mod": Op.MODULO,
    "Pow": Op.POWER,
}
_OF_NUMBER = {
    "Abs": Op.ABS,
    "Sign": Op.SIGN,
    "Floor": Op.FLOOR,
    "Ceil": Op.CEIL,
    "Exp": Op.EXP,
    "Ln": Op.LN,
    "Sqrt": Op.SQRT,
}
_OF_TEXT = {"Lower": Op.LOWER, "Upper": Op.UPPER, "Trim": Op.TRIM, "Length": Op.LENGTH}
_MERGE = {"Coalesce": Op.COALESCE, "Least": Op.LEAST, "Greatest": Op.GREATEST}
# arguments sqlglot sets besides operands and whose values do not change the meaning here
_HARMLESS = {"typed", "safe", "ignore_nulls", "negate", "_type"}


class _Reader:
    """Turns sqlglot's nodes into ours and checks types on the way."""

    def __init__(self, schema: Mapping[str, Type | None]) -> None:
        self.schema = schema
        self.names = {name.lower(): name for name in schema}
        self.depth = 0
        self.handlers: dict[str, Callable[[Expression], Node]] = {
            "Paren": lambda node: self.read(node.this),
            "Column": self.column,
            "Literal": self.literal,
            "Boolean": lambda node: Literal(bool(node.this), Type.BOOLEAN),
            "Neg": self.negative,
            "Not": lambda node: negated(self.boolean(node.this, "NOT")),
            "And": self.junction,
            "Or": self.junction,
            "In": self.membership,
            "Between": self.between,
            "Is": self.state,
            "Like": self.like,
            "ILike": self.like,
            "Case": self.case,
            "Nullif": self.nullif,
            "Round": self.round,
            "Log": self.log10,
            "Cast": self.dated,
            **dict.fromkeys(_COMPARE, self.comparison),
            **dict.fromkeys(_ARITHMETIC, self.arithmetic),
            **dict.fromkeys(_OF_NUMBER, self.of_number),
            **dict.fromkeys(_OF_TEXT, self.of_text),
            **dict.fromkeys(_MERGE, self.merge),
        }

    def read(self, node: Expression) -> Node:
        """The tree of any allowed node."""
        handler = self.handlers.get(type(node).__name__)
        if handler is None:
            raise refuse(node)
        if self.depth >= MAX_DEPTH:
            raise QueryError(f"the question has more than {MAX_DEPTH} operations in a chain; split it into several")
        self.depth += 1
        tree = handler(node)
        self.depth -= 1
        if tree.size > MAX_SIZE:
            raise QueryError(_TOO_LONG)
        return tree

    def column(self, node: Expression) -> Node:
        from sqlglot import exp

        if isinstance(node.this, exp.Star):
            raise refuse(node.this)
        name = str(node.name)
        if node.args.get("table"):
            raise QueryError(f"columns are written without a table: {name}, not {node.sql()}")
        real = self.names.get(name.lower())
        if real is None:
            raise unknown_column(name, self.schema, quoted=bool(node.this.args.get("quoted")))
        kind = self.schema[real]
        if kind is None:
            raise QueryError(
                f"the column {real!r} has a type no question can use; usable are booleans, numbers, "
                "text, dates and timestamps. Convert it before opening the data"
            )
        return Column(real, kind)

    def literal(self, node: Expression) -> Node:
        if node.is_string:
            return Literal(str(node.this), Type.TEXT)
        value = float(node.this)
        if not math.isfinite(value):
            raise QueryError(f"the number {short(str(node.this))} is too large for a double")
        return Literal(value, Type.NUMBER)

    def negative(self, node: Expression) -> Node:
        value = self.number(node.this, "-")
        if isinstance(value, Literal) and isinstance(value.value, float):
            return Literal(-value.value + 0.0, Type.NUMBER)  # + 0.0: there is no -0.0
        return Call(Op.NEGATE, (value,), Type.NUMBER)

    def junction(self, node: Expression) -> Node:
        """AND or OR; a long chain is a deep tree to sqlglot and a flat one to us."""
        op = Op.AND if type(node).__name__ == "And" else Op.OR
        parts, stack = [], [node]
        while stack:
            part = stack.pop()
            if type(part) is type(node):
                stack += [part.expression, part.this]
            else:
                parts.append(self.boolean(part, op.name))
        return Call(op, tuple(parts), Type.BOOLEAN)

    def comparison(self, node: Expression) -> Node:
        op, swap, negate = _COMPARE[type(node).__name__]
        left, right = self.pair(node.this, node.expression)
        if op is not Op.EQUAL:
            need_order(left.type, node.sql())
        tree = Call(op, (right, left) if swap else (left, right), Type.BOOLEAN)
        return negated(tree) if negate else tree

    def membership(self, node: Expression) -> Node:
        self.only(node, "this", "expressions")
        value = self.read(node.this)
        choices = []
        for item in node.expressions:
            if type(item).__name__ == "Null":
                raise QueryError("NULL in an IN list makes NOT IN true for no row; leave it out and write IS NULL")
            left, choice = align(value, self.read(item), "IN")
            if not isinstance(choice, Literal) or left is not value:
                raise QueryError("only constants may stand in an IN list; write a = b OR a = c")
            choices.append(choice)
        if not choices:
            raise QueryError("the IN list is empty; no row can match")
        return Call(Op.IN, (value, *choices), Type.BOOLEAN)

    def between(self, node: Expression) -> Node:
        self.only(node, "this", "low", "high")
        low, value = self.pair(node.args["low"], node.this)
        value, high = align(value, self.read(node.args["high"]), "BETWEEN")
        need_order(value.type, "BETWEEN")
        return Call(
            Op.AND,
            (
                Call(Op.LESS_EQUAL, (low, value), Type.BOOLEAN),
                Call(Op.LESS_EQUAL, (value, high), Type.BOOLEAN),
            ),
            Type.BOOLEAN,
        )

    def state(self, node: Expression) -> Node:
        kind = type(node.expression).__name__
        if kind == "Null":
            return Call(Op.IS_NULL, (self.read(node.this),), Type.BOOLEAN)
        if kind != "Boolean":
            raise QueryError("IS must be followed by NULL, TRUE or FALSE; to compare values write =")
        value = self.boolean(node.this, "IS TRUE")
        return Call(Op.IS_TRUE, (value if node.expression.this else negated(value),), Type.BOOLEAN)

    def like(self, node: Expression) -> Node:
        name = "LIKE" if type(node).__name__ == "Like" else "ILIKE"
        if type(node.expression).__name__ in ("Any", "All"):
            raise QueryError(f"{name} ANY is not allowed; write a {name} 'x%' OR a {name} 'y%'")
        value, pattern = self.text(node.this, name), self.text(node.expression, name)
        if not isinstance(pattern, Literal):
            raise QueryError(f"the pattern after {name} must be a constant, as in {name} 'abc%'")
        args: tuple[Node, Node] = (value, pattern)
        if name == "ILIKE":
            args = (Call(Op.LOWER, (value,), Type.TEXT), Call(Op.LOWER, (pattern,), Type.TEXT))
        tree = Call(Op.LIKE, args, Type.BOOLEAN)
        return negated(tree) if node.args.get("negate") else tree

    def case(self, node: Expression) -> Node:
        subject = node.args.get("this")
        tests: list[Node] = []
        for branch in node.args["ifs"]:
            if subject is None:
                tests.append(self.boolean(branch.this, "WHEN"))
            else:
                tests.append(Call(Op.EQUAL, self.pair(subject, branch.this), Type.BOOLEAN))
        results = self.alike([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")], "CASE")
        pairs = [part for pair in zip(tests, results[:-1], strict=True) for part in pair]
        return Call(Op.CASE, (*pairs, results[-1]), results[-1].type)

    def nullif(self, node: Expression) -> Node:
        left, right = self.pair(node.this, node.expression)
        test = Call(Op.EQUAL, (left, right), Type.BOOLEAN)
        return Call(Op.CASE, (test, Literal(None, left.type), left), left.type)

    def merge(self, node: Expression) -> Node:
        op = _MERGE[type(node).__name__]
        args = self.alike([node.this, *node.expressions], op.value)
        if op is not Op.COALESCE:
            need_order(args[0].type, op.value)
        return Call(op, tuple(args), args[0].type) if len(args) > 1 else args[0]

    def arithmetic(self, node: Expression) -> Node:
        name = type(node).__name__
        sign = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "Pow": "power"}[name]
        args = self.number(node.this, sign), self.number(node.expression, sign)
        return Call(_ARITHMETIC[name], args, Type.NUMBER)

    def of_number(self, node: Expression) -> Node:
        self.only(node, "this")
        op = _OF_NUMBER[type(node).__name__]
        return Call(op, (self.number(node.this, op.value),), Type.NUMBER)

    def of_text(self, node: Expression) -> Node:
        self.only(node, "this")
        op = _OF_TEXT[type(node).__name__]
        return Call(op, (self.text(node.this, op.value),), Type.NUMBER if op is Op.LENGTH else Type.TEXT)

    def round(self, node: Expression) -> Node:
        """To d digits is to scale by 10^d, round and scale back: one meaning for every engine."""
        self.only(node, "this", "decimals")
        value = self.number(node.this, "round")
        digits = 0.0
        if node.args.get("decimals"):
            given = self.read(node.args["decimals"])
            digits = given.value if isinstance(given, Literal) and isinstance(given.value, float) else math.nan
            if digits not in range(-15, 16):
                raise QueryError("the digits of round(x, digits) must be a whole number between -15 and 15")
        if digits == 0:
            return Call(Op.ROUND, (value,), Type.NUMBER)
        scale = Literal(10.0 ** abs(digits), Type.NUMBER)
        there, back = (Op.MULTIPLY, Op.DIVIDE) if digits > 0 else (Op.DIVIDE, Op.MULTIPLY)
        rounded = Call(Op.ROUND, (Call(there, (value, scale), Type.NUMBER),), Type.NUMBER)
        return Call(back, (rounded, scale), Type.NUMBER)

    def log10(self, node: Expression) -> Node:
        base, value = node.this, node.args.get("expression")
        if value is None or type(base).__name__ != "Literal" or base.this != "10":
            raise refuse(node)
        return Call(Op.LOG10, (self.number(value, "log10"),), Type.NUMBER)

    def dated(self, node: Expression) -> Node:
        """DATE '...' and TIMESTAMP '...', to sqlglot casts of a constant; other casts are refused."""
        to = node.args["to"].this.name
        kind = {"DATE": Type.DATE, "TIMESTAMP": Type.TIMESTAMP, "TIMESTAMPNTZ": Type.TIMESTAMP}.get(to)
        if kind is None or type(node.this).__name__ != "Literal" or not node.this.is_string:
            raise refuse(node)
        return moment(str(node.this.this), kind)

    def boolean(self, node: Expression, where: str) -> Node:
        """An operand that must be a condition."""
        return expect(self.read(node), Type.BOOLEAN, where)

    def number(self, node: Expression, where: str) -> Node:
        """An operand that must be a number."""
        return expect(self.read(node), Type.NUMBER, where)

    def text(self, node: Expression, where: str) -> Node:
        """An operand that must be text."""
        return expect(self.read(node), Type.TEXT, where)

    def pair(self, left: Expression, right: Expression) -> tuple[Node, Node]:
        """Two operands to compare, of one type."""
        if "Null" in (type(left).__name__, type(right).__name__):
            raise QueryError("comparing with NULL is true for no row; write IS NULL or IS NOT NULL")
        return align(self.read(left), self.read(right), "a comparison")

    def alike(self, nodes: Sequence[Expression | None], where: str) -> list[Node]:
        """Operands of one type, where NULL (or nothing) takes the type of the others."""
        read = [None if node is None or type(node).__name__ == "Null" else self.read(node) for node in nodes]
        typed = [tree for tree in read if tree is not None]
        if not typed:
            raise QueryError(f"{where} needs a value besides NULL")
        # a date among texts: the texts must be dates too
        model = next((tree for tree in typed if tree.type in (Type.DATE, Type.TIMESTAMP)), typed[0])
        return [Literal(None, model.type) if tree is None else align(model, tree, where)[1] for tree in read]

    def only(self, node: Expression, *allowed: str) -> None:
        """Refuse an argument we would otherwise silently drop."""
        for key, value in node.args.items():
            if value and key not in allowed and key not in _HARMLESS:
                if key in ("query", "field", "unnest"):
                    raise QueryError("after IN goes a list of constants in parentheses, not a column or another query")
                name = type(node).__name__.lower()
                raise QueryError(f"{name} takes only its plain form here; leave out what follows ({key})")
