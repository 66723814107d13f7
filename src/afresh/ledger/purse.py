"""What a guard's answers may cost and have cost: exact sums, the caps, and who owns which part of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger.base import SLACK, Limits, Outside, Question, Spent, counted
from afresh.ledger.records import Reserved

_UNIT = 2**1074
"""Sums are whole multiples of 1/_UNIT, as every finite float is, so they are exact in any order."""


@lru_cache(maxsize=4096)
def _exact(amount: float) -> int:
    """Return a float in units; cached, because most charges of a chain are the same few."""
    over, under = amount.as_integer_ratio()
    return over * (_UNIT // under)


@dataclass(slots=True)
class Sum:
    """Answers and charges, in units."""

    answers: int = 0
    charge: int = 0
    row_charge: int = 0
    rows: int = 0
    """Rows that were opened for batches."""

    @classmethod
    def of(cls, answers: int, charge: float, row_charge: float, rows: int = 0) -> Sum:
        """Make the sum of these amounts."""
        return cls(answers, _exact(charge), _exact(row_charge), rows)

    def add(self, other: Sum) -> None:
        """Add another sum to this one."""
        self.answers += other.answers
        self.charge += other.charge
        self.row_charge += other.row_charge
        self.rows += other.rows

    def minus(self, other: Sum) -> Sum:
        """Return this sum less another."""
        charge, row_charge = self.charge - other.charge, self.row_charge - other.row_charge
        return Sum(self.answers - other.answers, charge, row_charge, self.rows - other.rows)

    @property
    def nats(self) -> float:
        """The charges as a float."""
        return self.charge / _UNIT


@dataclass(frozen=True)
class Caps:
    """The most answers and nats, and the most that the answers may depend on one row; None means no limit."""

    answers: int
    nats: Fraction
    row_share: Fraction | None
    rows: int
    """The most rows that may be opened for batches."""

    @cached_property
    def charge(self) -> int:
        """The largest sum of charges that fits."""
        return math.floor(self.nats * SLACK * _UNIT)

    @cached_property
    def row_charge(self) -> float:
        """The largest sum of row charges that fits."""
        return math.inf if self.row_share is None else math.floor(self.row_share * SLACK * _UNIT)


class _Copied(defaultdict[str, Sum]):
    """Sums of another purse, each copied on first access: there may be very many analysts."""

    def __init__(self, of: Mapping[str, Sum]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, analyst: str) -> Sum:
        found = self[analyst] = replace(self._of.get(analyst) or Sum())
        return found


@dataclass(slots=True)
class Purse:
    """The caps in force, what was spent in total and by whom, and how the whole is divided."""

    limits: Limits | None = None
    caps: Caps | None = None
    rows: int = 0
    """The number of rows in the data."""
    total: Sum = field(default_factory=Sum)
    outside: Sum = field(default_factory=Sum)
    """The part of the total that was revealed elsewhere."""
    shares: dict[str, int] = field(default_factory=dict)
    by_analyst: defaultdict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))

    def plan(self, limits: Limits, rows: int) -> None:
        """Put these limits in force."""
        row_share = None if limits.row_share is None else Fraction(limits.row_share)
        self.limits, self.rows = limits, rows
        self.caps = Caps(limits.answers, Fraction(limits.information), row_share, rows)

    def copy(self) -> Purse:
        """Return a copy for trying out what would fit together; nothing done to it changes this purse."""
        return replace(self, total=replace(self.total), by_analyst=_Copied(self.by_analyst))

    def pay(self, asked: Sum, analyst: str) -> None:
        """Take a sum from the whole, and from what the analyst may use."""
        self.total.add(asked)
        self.by_analyst[analyst].add(asked)

    def pay_outside(self, asked: Sum) -> None:
        """Take what was revealed elsewhere from the whole."""
        self.total.add(asked)
        self.outside.add(asked)

    def clearly_fits(self, asked: Sum) -> bool:
        """Whether it fits and nobody's share matters: nearly always true, and there may be very many to read."""
        return not self.shares and _fits(self.total, self.whole, asked)

    def check(self, new: Sequence[Question | Reserved], analyst: str, rows: int = 0) -> Sum:
        """Return what the questions cost; `BudgetExhausted` unless it fits what is left of the whole and of the share.

        `rows` is the number of rows that would be opened for them.
        """
        asked = Sum(rows=rows)
        for question in new:
            asked.add(Sum.of(counted(question), question.charge, question.row_charge))
        if not _fits(self.total, self.whole, asked):
            raise _refusal(self.total, self.whole, asked, new, None)
        if self.shares:
            used, caps = self.pot(analyst, self.shares)
            if not _fits(used, caps, asked):
                raise _refusal(used, caps, asked, new, analyst if analyst in self.shares else "those without a share")
        return asked

    def check_outside(self, outside: Outside) -> Sum:
        """Return what an outside release costs; `BudgetExhausted` unless it fits what is left besides the shares."""
        asked = Sum.of(outside.answers, outside.charge, outside.row_charge)
        used, caps = self.pot("", self.shares)
        if _fits(used, caps, asked):
            return asked
        count = f" and {outside.answers} answers" if outside.answers else ""
        beside = " besides the shares" if self.shares else ""
        raise BudgetExhausted(
            asked=outside.answers,
            spent=used.answers,
            questions=used.answers,
            message=f"what was revealed costs {outside.charge:.6g} nats{count}, more than is left{beside}: "
            f"{max((caps.charge - used.charge) / _UNIT, 0.0):.6g} nats and {caps.answers - used.answers} answers"
            f"{'' if caps.row_share is None else ', and what one row may matter'}. Nothing was recorded, but "
            "intervals of questions asked after it was known do not hold: ask other data.",
        )

    def check_shares(self, shares: Mapping[str, int]) -> None:
        """Raise `InvalidArgument` unless the shares fit the whole and what everyone has already spent."""
        for name, share in shares.items():
            named = isinstance(name, str) and name.strip()
            if not named or isinstance(share, bool) or not isinstance(share, int) or share < 0:
                raise InvalidArgument(f"share {name!r}: {share!r}, must be a name and a whole number of answers")
        whole, wanted = self._limits.questions, sum(shares.values())
        if wanted > whole:
            raise InvalidArgument(f"the shares add up to {wanted} answers, but the whole has {whole}")
        for name in (*shares, ""):
            used, caps = self.pot(name, shares)
            if not _fits(used, caps, Sum()):
                who, has = (name, shares[name]) if name else ("those without a share", whole - wanted)
                raise InvalidArgument(f"{who} would have {has} answers, but more were already spent")

    def spent(self, analyst: str | None = None) -> Spent:
        """Return what was paid for, and the caps: in total, or of what one analyst may use."""
        used, caps = (self.total, self.whole) if analyst is None else self.pot(analyst, self.shares)
        row_cap = self.whole.row_share
        return Spent(
            used.answers,
            used.nats,
            0.0 if analyst in self.shares else self.outside.nats,  # outside charges do not touch a share
            caps.answers,
            float(caps.nats),
            None if row_cap is None else float(row_cap * SLACK - Fraction(self.total.row_charge, _UNIT)),
        )

    def spent_by(self, analysts: Iterable[str]) -> dict[str, Spent]:
        """Return what `spent` does for each of them; all who have no share use the same pot."""
        analysts = set(analysts)
        others = analysts - self.shares.keys()
        found = {analyst: self.spent(analyst) for analyst in analysts & self.shares.keys()}
        if others:
            found |= dict.fromkeys(others, self.spent(next(iter(others))))
        return found

    @property
    def whole(self) -> Caps:
        """The caps for all analysts together."""
        if self.caps is None:
            raise BrokenChain("the chain has no plan")
        return self.caps

    @property
    def _limits(self) -> Limits:
        if self.limits is None:
            raise BrokenChain("the chain has no plan")
        return self.limits

    def pot(self, analyst: str, shares: Mapping[str, int]) -> tuple[Sum, Caps]:
        """Return what was spent from this analyst's pot, and its caps: a share, or what no share takes."""
        if analyst in shares:
            return self.by_analyst[analyst], self._part([shares[analyst]])
        if not shares:
            return self.total, self.whole
        used, parts, whole = self.total, self._part(shares.values()), self.whole
        for name in shares:
            used = used.minus(self.by_analyst[name])
        # No share has its own limit on how much one row may matter, so the whole's limit applies to all shares at once.
        used.row_charge = self.total.row_charge
        rows = whole.rows - parts.rows
        return used, Caps(whole.answers - parts.answers, whole.nats - parts.nats, whole.row_share, rows)

    def _part(self, shares: Iterable[int]) -> Caps:
        """Return the caps of shares: their part of the whole, in answers and in nats."""
        limits, whole = self._limits, max(self._limits.questions, 1)
        answers = sum(share * limits.answers // whole for share in shares)
        rows = sum(share * self.rows // whole for share in shares)
        return Caps(answers, self.whole.nats * sum(shares) / whole, None, rows)


def _fits(used: Sum, caps: Caps, asked: Sum) -> bool:
    return (
        used.answers + asked.answers <= caps.answers
        and used.rows + asked.rows <= caps.rows
        and used.charge + asked.charge <= caps.charge
        and used.row_charge + asked.row_charge <= caps.row_charge
    )


def _refusal(
    used: Sum, caps: Caps, asked: Sum, new: Sequence[Question | Reserved], whose: str | None
) -> BudgetExhausted:
    if used.answers + asked.answers <= caps.answers and used.rows + asked.rows > caps.rows:
        return _too_few_rows(caps.rows - used.rows, asked.rows, used.answers, whose)
    affordable = caps.answers - used.answers
    # The caller reads "n more are affordable", which must be true at the price it asked for.
    if dearest := _exact(max(question.charge for question in new)):
        affordable = min(affordable, (caps.charge - used.charge) // dearest)
    heaviest = _exact(max(question.row_charge for question in new))
    if heaviest and caps.row_share is not None:
        affordable = min(affordable, int(caps.row_charge - used.row_charge) // heaviest)
    affordable = max(affordable, 0)
    error = BudgetExhausted(asked=asked.answers, spent=used.answers, questions=used.answers + affordable, analyst=whose)
    if caps.nats:  # rounds keep no account of information, and the message says the rest
        error.add_note(
            f"answers: {used.answers} of {caps.answers} spent, {asked.answers} asked; information: "
            f"{used.nats:.6g} of {float(caps.nats):.6g} nats spent, {asked.nats:.6g} asked"
        )
    return error


def _too_few_rows(left: int, asked: int, answers: int, whose: str | None) -> BudgetExhausted:
    beside = "" if whose is None else f" for {whose}"
    return BudgetExhausted(
        asked=0,
        spent=answers,
        questions=answers,
        message=f"this takes {asked:,} fresh rows, but {max(left, 0):,} are left{beside}. "
        "Nothing was charged; repeats are free.",
        analyst=whose,
    )
