"""Check a receipt from the public constants alone: no data, no ledger, no trust in its own claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.errors import AfreshError, BrokenChain, InvalidArgument
from afresh.guard.outside import convert
from afresh.ledger.collector import paused
from afresh.ledger.paid import Paid
from afresh.ledger.records import START, Answered, seal
from afresh.mechanisms.base import Mechanism, ReadsMany, at_coordinate
from afresh.moments import Span, Vector
from afresh.planning.plan import Plan
from afresh.receipts.format import Facts, check_fields, format_of, loads, read_chain
from afresh.results import show
from afresh.results.progress import counted, waiting
from afresh.results.reading import read
from afresh.results.rules import derive, met, scale_of

# Elementary functions differ by a few units in the last place between processors with and without AVX2, FMA or AVX-512,
# and AArch64; perturbed by two units, no end of an interval moves by more than 1e-11 (guard/test_processors.py). So any
# other machine recomputes what one machine recorded to within this tolerance, relative to the scale of the question.
TOLERANCE = 1e-9
_MANY = 64  # from this many answers on, recomputing them together is faster
PROVED = (
    "the constants of the plan carry the certificate of its method",
    "every charge, and every interval to within 1e-9 of its scale, follows from these constants and the number that "
    "was released, and every derived number follows from its parts by its rule",
    "the records stay within the limits that were fixed before the first question",
    "the records follow from one another up to the head: none was changed, dropped or reordered since it was known",
)
NOT_PROVED = (
    "that the rows are independent draws from the population, and are the ones the keyed name stands for",
    "that the numbers came from these rows with fresh noise, that nobody saw the rows in another way, and that models "
    "disagree as rarely as stated where a comparison has finer noise",
    "that nothing was asked after this receipt was made, or under another ledger; and who the named analysts are",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    name: str
    passed: bool
    about: str


@dataclass(frozen=True, slots=True)
class Verification(show.Told):
    """The outcome: all checks passed, or not."""

    checks: tuple[Check, ...]
    head: str
    answers: int
    confidence: float | None
    simulated: bool = False

    @property
    def passed(self) -> bool:
        """Whether everything that can be checked is right."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        checks = [{"name": c.name, "passed": c.passed, "about": c.about} for c in self.checks]
        return {
            "passed": self.passed,
            "head": self.head,
            "answers": self.answers,
            "confidence": self.confidence,
            "simulated": self.simulated,
            "checks": checks,
            "proved": list(PROVED) if self.passed else [],
            "not_proved": list(NOT_PROVED),
        }

    def _blocks(self) -> list[show.Block]:
        title = f"The receipt verifies: {self.answers:,} answers" if self.passed else "The receipt does NOT verify"
        blocks: list[show.Block] = [
            show.Title(title),
            show.Facts({("ok  " if c.passed else "BAD ") + c.name: c.about for c in self.checks}),
        ]
        if self.passed:
            blocks += [show.Line("This proves"), *(show.Line(f"- {words}") for words in PROVED)]
        blocks += [show.Line("It cannot prove"), *(show.Line(f"- {words}") for words in NOT_PROVED)]
        return [*blocks, show.Line(f"head {self.head}")]


@paused()
def verify(receipt: object, *, head: str | None = None, ledger: Sequence[str] | None = None) -> Verification:
    """Check everything that can be checked in a receipt, without the data and without trusting its claims.

    Args:
        receipt: The document, or its text.
        head: A head that was published earlier; the receipt's chain must contain it.
        ledger: The records of the guard's own ledger; they must begin with those of the receipt.

    Returns:
        Every check with its outcome. A receipt that lies gives failed checks, not an error.

    Raises:
        InvalidArgument: The document is not a receipt, or this version of afresh does not know its format.
    """
    document = loads(receipt) if isinstance(receipt, str) else receipt
    form = format_of(document)
    assert isinstance(document, dict)
    checks: list[Check] = []
    facts: Facts | None = None

    def check(name: str, work: Callable[[], str]) -> bool:
        """Record whether a check raised an error; it returns its findings in words."""
        try:
            checks.append(Check(name, True, work()))
        except (AfreshError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            words = (
                str(error)
                if isinstance(error, AfreshError)
                else "the receipt is incomplete, or has something other than numbers where numbers belong"
            )
            checks.append(Check(name, False, words))
        return checks[-1].passed

    def fields() -> str:
        check_fields(document, form.fields)
        return f"those of version {document['version']}"

    def chain() -> str:
        nonlocal facts
        facts = _chain(document)
        return f"{facts.account.length:,} records lead to the head"

    if check("fields", fields) and check("chain", chain):
        assert facts is not None
        found = facts
        if check("plan", lambda: _plan(found)):
            check("charges", lambda: _charges(found))
            with waiting("Recomputing every interval"):
                check("answers", lambda: _answers(found))
            check("derived numbers", lambda: _derived(found))
            check("statements", lambda: _statements(form.write(found), document))
        if head is not None:
            check("published head", lambda: _contains(found, head))
        if ledger is not None:
            check("ledger", lambda: _begins(found, ledger))
        check("real noise", lambda: _real(found))
    account = None if facts is None else facts.account
    return Verification(
        tuple(checks),
        "" if account is None else account.head,
        0 if account is None else len(account.entries),
        None if facts is None or not checks[2].passed else facts.plan.confidence,
        account is not None and account.opened is not None and account.opened.simulated,
    )


def _chain(document: dict[str, Any]) -> Facts:
    facts = read_chain(document["chain"]["records"])
    if facts.account.head != document["chain"]["head"]:
        raise BrokenChain("the records do not lead to the head that the receipt states")
    return facts


def _real(facts: Facts) -> str:
    if facts.account.opened is not None and facts.account.opened.simulated:
        raise InvalidArgument("a SIMULATION: the noise came from a seed, so nothing is guaranteed")
    return "the noise is real, not simulated"


def _plan(facts: Facts) -> str:
    opened, limits, plan = facts.account.opened, facts.account.limits, facts.plan
    assert opened is not None
    assert limits is not None
    mechanism = plan.mechanism
    if mechanism.questions < 1 or mechanism.answers < mechanism.questions or not 0 < mechanism.failure < 1:
        raise InvalidArgument("the numbers of questions and answers do not fit the confidence")
    if found := mechanism.problems():
        raise InvalidArgument("; ".join(found))
    if mechanism.rows != opened.rows or limits.questions != plan.questions or limits.answers > plan.answers:
        raise InvalidArgument("the limits in force are not those of the plan")
    if limits.information > (mechanism.information or 0.0) * (1 + 1e-12):
        raise InvalidArgument("the limit on the information is larger than the plan's")
    if mechanism.row_share is not None and (
        limits.row_share is None or limits.row_share > mechanism.row_share * (1 + 1e-12)  # None means no limit at all
    ):
        raise InvalidArgument("the limit on the share of one row is larger than the plan's")
    words = f"{plan.method} for {plan.questions:,} questions about {plan.rows:,} rows"
    return f"{words} at {show.percent(plan.confidence)}"


def _charges(facts: Facts) -> str:
    plan, reserved, charged = facts.plan, facts.account.entries.reserved, facts.account.charged
    # Most questions of a long chain have the same price; numbers may have another.
    prices = {
        (each.coarseness, each.charge, each.row_charge, each.vector, each.levels is None): each
        for each in reversed(reserved)
    }
    for one in prices.values():
        mechanism = plan.of(one)
        if one.vector is not None:
            noise = at_coordinate(plan.mechanism, Vector(*one.vector)).coarseness
            _same(f"the noise of question {one.number}", one.coarseness, noise)
        _same(f"the charge of question {one.number}", one.charge, mechanism.charge)
        _same(f"the row charge of question {one.number}", one.row_charge, mechanism.row_charge)
    for record in charged:
        basis = dict(record.basis)
        rows, times = int(basis.pop("rows")), int(basis.pop("count"))
        again = convert(
            plan, record.text, {**dict.fromkeys(("kl", "zcdp", "pure_dp", "noise_sd")), **basis}, rows, times
        )
        _same(f"the charge of {record.text!r}", record.charge, again.charge)
        _same(f"the row charge of {record.text!r}", record.row_charge, again.row_charge)
        if record.answers != again.answers:
            raise InvalidArgument(
                f"{record.text!r} counts for {record.answers} answers, but its basis gives {again.answers}"
            )
    return f"{len(reserved) + len(charged):,} recomputed"


def _answers(facts: Facts) -> str:
    """Check that every recorded value and interval follows from its released number, up to a processor's last bits."""
    plan, entries = facts.plan, facts.account.entries
    groups: dict[tuple[float, tuple[str, int, int, int] | None, int | None], list[Answered]] = {}
    looks: list[Answered] = []  # checked after the answers they repeat, so the original error is reported first
    for place in sorted(entries.order):
        answer = entries.answer(place)
        assert answer is not None
        reserved = entries.reserved[place]
        alike = reserved.coarseness, reserved.vector, reserved.levels
        (groups.setdefault(alike, []) if reserved.again is None else looks).append(answer)
    for answers in groups.values():
        for answer in _unsettled(plan.of(entries.reserved[answers[0].number - 1]), answers, plan.ends):
            _check_answer(plan, entries, answer)
    for answer in looks:
        _check_answer(plan, entries, answer)
    plan.mechanism.history(facts.account.released)  # each release must be consistent with those before it
    return f"{len(entries.order):,} values and intervals recomputed"


def _check_answer(plan: Plan, entries: Paid, answer: Answered) -> None:
    asked = entries.reserved[answer.number - 1]
    mechanism, span = plan.of(asked), None if asked.span is None else Span(*asked.span)
    if not mechanism.admits(answer.released, levels=asked.levels, span=span):
        raise InvalidArgument(
            f"what was released for question {answer.number} is not on the plan's public grid, whose step is "
            f"{mechanism.grid!r}"
        )
    value, (low, high) = mechanism.value(answer.released), mechanism.interval(answer.released, levels=asked.levels)
    first = None if asked.again is None else entries.answer(asked.again - 1)
    if first is not None and mechanism.meets_first(answer.released):
        low, high = met(low, high, first.low, first.high)
        value = min(max(value, low), high)
    # Ends were rounded outward, by less than a step.
    for what, said, least, most in (
        ("value", answer.value, value, value),
        ("lower end", answer.low, low - plan.ends, low),
        ("upper end", answer.high, high, high + plan.ends),
    ):
        if not max(least, 0.0) - TOLERANCE <= said <= min(most, 1.0) + TOLERANCE:
            raise InvalidArgument(
                f"the {what} of answer {answer.number} is {said!r}, but its constants give "
                f"{(least if what == 'upper end' else most)!r}"
            )


def _unsettled(mechanism: Mechanism, answers: Sequence[Answered], ends: float) -> Sequence[Answered]:
    """Return the answers that must be checked one by one: a quick check of all of them could not rule out an error."""
    if len(answers) < _MANY or not isinstance(mechanism, ReadsMany):
        return answers
    if any(type(answer.released) is not float for answer in answers):
        return answers
    released, *said = (
        np.array([answer[field] for answer in answers], dtype=np.float64) for field in (2, 3, 4, 5)
    )  # released, value, low, high
    with np.errstate(all="ignore"):
        value, low, high = mechanism.read_each(released)
        tolerance = 0.9 * TOLERANCE  # anything not clearly right is decided the slow way
        right = np.ones(len(answers), dtype=bool)
        for one, least, most in zip(said, (value, low - ends, high), (value, low, high + ends), strict=True):
            right &= (np.maximum(least, 0.0) - tolerance <= one) & (one <= np.minimum(most, 1.0) + tolerance)
    return [answers[place] for place in np.flatnonzero(~right).tolist()]


def _derived(facts: Facts) -> str:
    """Check that every derived number is the one its rule gives for its parts."""
    entries = facts.account.entries
    for stated in counted(list(facts.account.stated.values()), "Computing derived numbers again"):
        parts = [read(entries[part - 1]) for part in stated.parts]
        again = derive(stated.rule, parts, stated.parameters, stated.bounds, facts.plan)
        scale = stated.bounds[1] - stated.bounds[0]
        bounds = scale_of(stated.rule, parts, stated.parameters)
        if not all(abs(one - other) <= TOLERANCE * scale for one, other in zip(stated.bounds, bounds, strict=True)):
            raise InvalidArgument(f"{stated.text!r} has the bounds {stated.bounds}, but its parts give {bounds}")
        for one, other in zip((stated.value, stated.low, stated.high), again, strict=True):
            if not abs(one - other) <= TOLERANCE * scale:
                raise InvalidArgument(f"{stated.text!r} is stated as {one!r}, but its parts give {other!r}")
    return f"{len(facts.account.stated):,} recomputed from their parts"


def _statements(again: dict[str, Any], document: dict[str, Any]) -> str:
    """Check that everything the receipt states matches its records."""
    for name, value in again.items():
        _compare(name, document[name], value)
    count = len(again["questions"])
    return f"{count:,} question{'' if count == 1 else 's'}, and everything else, match the records"


def _contains(facts: Facts, head: str) -> str:
    found = START
    for place, text in enumerate(facts.records, 1):
        found = seal(found, text)
        if found == head:
            return f"it is the head at record {place:,}"
    raise BrokenChain("the chain does not contain the head that was published: it is another chain, or an older one")


def _begins(facts: Facts, ledger: Sequence[str]) -> str:
    if list(ledger[: len(facts.records)]) != list(facts.records):
        raise BrokenChain(
            "the ledger does not begin with these records: it is another one, or was restored from a copy"
        )
    later = len(ledger) - len(facts.records)
    return "the ledger begins with these records" + (f", and has {later:,} later ones" if later else " and no others")


def _compare(where: str, said: Any, again: Any) -> None:
    """Check that two values are equal, up to the rounding of another machine's arithmetic."""
    if isinstance(again, dict):
        if not isinstance(said, dict) or again.keys() != said.keys():
            raise InvalidArgument(f"{where} is incomplete, or has extra parts")
        for name, value in again.items():
            _compare(f"{where}.{name}", said[name], value)
    elif isinstance(again, list):
        if not isinstance(said, list) or len(said) != len(again):
            raise InvalidArgument(f"{where} does not have {len(again)} parts, as the records do")
        if _agree(said, again):
            return
        for place, value in enumerate(again):
            _compare(f"{where}[{place}]", said[place], value)
    elif isinstance(again, float) and isinstance(said, int | float) and not isinstance(said, bool):
        _same(where, said, again)
    elif said != again or type(said) is not type(again):
        raise InvalidArgument(f"{where} is {said!r}, but the records say {again!r}")


def _agree(said: list[Any], again: list[Any]) -> bool:
    """Whether two lists, of texts for example or of objects with the same names, are equal to the last bit.

    Objects are compared name by name, which is fast. Python's equality is not enough: 1 is neither true nor 1.0.
    """
    if not again or type(again[0]) is not dict:
        return _alike(said, again)
    if not all(type(each) is dict and each.keys() == again[0].keys() for each in (*said, again[0])):
        return False
    return all(_alike([one[name] for one in said], [one[name] for one in again]) for name in again[0])


def _alike(said: list[Any], again: list[Any]) -> bool:
    kinds = list(map(type, said))
    if said != again or kinds != list(map(type, again)) or dict in kinds:
        return False
    if list not in kinds:
        return True
    within = [each for one in said if type(one) is list for each in one]
    return _alike(within, [each for one in again if type(one) is list for each in one])


def _same(what: str, said: float, again: float) -> None:
    if not math.isclose(said, again, rel_tol=TOLERANCE):
        raise InvalidArgument(f"{what} is {said!r}, but its constants give {again!r}")
