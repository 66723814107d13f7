"""Check a receipt from the public constants alone: no data, no ledger, no trust in what it says of itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from afresh import display
from afresh.errors import AfreshError, BrokenChain, InvalidArgument
from afresh.ledger.account import Account
from afresh.ledger.journal import Sealed
from afresh.ledger.records import START, Charged, Reserved, decode, seal
from afresh.mechanisms.guess_and_check import GuessAndCheck
from afresh.outside import convert
from afresh.plan import Plan
from afresh.receipts.certificate import problems
from afresh.receipts.make import FORMAT, VERSION, make_receipt

_ROUNDING = 1e-9
PROVED = (
    "the constants of the plan carry the certificate of its method",
    "every charge and every interval is the one these constants give for the number that was released",
    "the records never go beyond the limits that were fixed before the first question",
    "the records follow from one another up to the head: none was changed, dropped or reordered since it was known",
)
NOT_PROVED = (
    "that the rows are independent draws from the population, and the data those that the fingerprint names",
    "that the numbers came from these rows with fresh noise, and that nobody saw the rows in another way",
    "that nothing was asked after this receipt was made, or under another ledger; and who the named analysts are",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    name: str
    passed: bool
    about: str


@dataclass(frozen=True, slots=True)
class Verification(display.Shown):
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
        """JSON-ready."""
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

    def _blocks(self) -> list[display.Block]:
        title = f"The receipt verifies: {self.answers:,} answers" if self.passed else "The receipt does NOT verify"
        blocks: list[display.Block] = [
            display.Title(title),
            display.Facts({("ok  " if c.passed else "BAD ") + c.name: c.about for c in self.checks}),
        ]
        if self.simulated:
            blocks.append(display.Line("It is of a SIMULATION: the noise came from a seed, so nothing is promised."))
        if self.passed:
            blocks += [display.Line("This proves"), *(display.Line(f"- {words}") for words in PROVED)]
        blocks += [display.Line("It cannot prove"), *(display.Line(f"- {words}") for words in NOT_PROVED)]
        return [*blocks, display.Line(f"head {self.head}")]


def verify(receipt: object) -> Verification:
    """Check everything that can be checked. A receipt that is none raises `InvalidArgument`."""
    if not isinstance(receipt, dict) or receipt.get("format") != FORMAT:
        raise InvalidArgument('this is not a receipt: it has no "format": "afresh receipt".')
    version = receipt.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InvalidArgument(
            f"the receipt has version {version!r}, this afresh knows up to {VERSION}; upgrade afresh."
        )
    checks: list[Check] = []
    account = Account()
    plan: Plan | None = None

    def check(name: str, work: Callable[[], str]) -> bool:
        """Note whether the work raised: it returns what it found, in words."""
        try:
            checks.append(Check(name, True, work()))
        except (AfreshError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            words = str(error) if isinstance(error, AfreshError) else "the receipt is not complete, or not of numbers"
            checks.append(Check(name, False, words))
        return checks[-1].passed

    def constants() -> str:
        nonlocal plan
        plan = _plan(account)
        method = plan.method if plan.guesser is None else f"{plan.method} (guesses by {plan.guesser})"
        words = f"{method} for {plan.questions:,} questions to {plan.rows:,} rows"
        return f"{words} at {display.percent(plan.confidence)}"

    if check("chain", lambda: _chain(account, receipt)) and check("plan", constants):
        assert plan is not None
        found = plan
        check("charges", lambda: _charges(found, account, receipt))
        check("statements", lambda: _statements(found, account, receipt))
    simulated = account.opened is not None and account.opened.simulated
    return Verification(
        tuple(checks), account.head, len(account.entries), None if plan is None else plan.confidence, simulated
    )


def _chain(account: Account, receipt: dict[str, Any]) -> str:
    for text in receipt["chain"]["records"]:
        account.read(text, seal(account.head, text))
    if account.head != receipt["chain"]["head"] or account.length == 0:
        raise BrokenChain("the records do not lead to the head that the receipt states")
    return f"{account.length:,} records lead to the head"


def _plan(account: Account) -> Plan:
    opened = account.opened
    assert opened is not None
    plan = Plan.thaw(opened.plan)
    mechanism = plan.mechanism
    if found := problems(mechanism):
        raise InvalidArgument("; ".join(found))
    if mechanism.rows != opened.rows or opened.questions != plan.questions or opened.answers > plan.answers:
        raise InvalidArgument("the limits in force are not those of the plan")
    if opened.information > (mechanism.information or 0.0) * (1 + 1e-12):
        raise InvalidArgument("the limit on the information is larger than the plan's")
    if mechanism.row_share is not None and (opened.row_share or 0.0) > mechanism.row_share * (1 + 1e-12):
        raise InvalidArgument("the limit on the share of one row is larger than the plan's")
    return plan


def _charges(plan: Plan, account: Account, receipt: dict[str, Any]) -> str:
    opened, count = account.opened, 0
    assert opened is not None
    for text in receipt["chain"]["records"]:
        record = decode(text)
        if isinstance(record, Reserved):
            mechanism = plan.at(record.coarseness)
            _same(f"the charge of question {record.number}", record.charge, mechanism.charge)
            if opened.row_share is not None:  # otherwise it follows from the charge
                _same(f"the row charge of question {record.number}", record.row_charge, mechanism.row_charge)
            count += 1
        elif isinstance(record, Charged):
            basis = dict(record.basis)
            rows, times = int(basis.pop("rows")), int(basis.pop("count"))
            again = convert(
                plan, record.text, {**dict.fromkeys(("kl", "zcdp", "pure_dp", "noise_sd")), **basis}, rows, times
            )
            _same(f"the charge of {record.text!r}", record.charge, again.charge)
            _same(f"the row charge of {record.text!r}", record.row_charge, again.row_charge)
            count += 1
    return f"{count:,} recomputed"


def _statements(plan: Plan, account: Account, receipt: dict[str, Any]) -> str:
    """Whatever the receipt states must be what its records and constants give."""
    head, chain = START, []
    for text in receipt["chain"]["records"]:
        head = seal(head, text)
        chain.append(Sealed(text, head))
    again = make_receipt(plan, chain)
    for name, value in again.items():
        if name not in ("format", "version", "made_by", "made_at"):
            _compare(name, receipt[name], value)
    if isinstance(plan.mechanism, GuessAndCheck):
        plan.mechanism.history(account.released)  # every level must follow from what was released before
    answers = sum(answer["value"] is not None for answer in again["answers"])
    return f"{answers:,} values and intervals, and all the rest, recomputed"


def _compare(where: str, said: Any, again: Any) -> None:
    """Equal, up to the rounding of another machine's arithmetic."""
    if isinstance(again, dict):
        if not isinstance(said, dict) or not again.keys() <= said.keys():
            raise InvalidArgument(f"{where} is not complete")
        for name, value in again.items():
            _compare(f"{where}.{name}", said[name], value)
    elif isinstance(again, list):
        if not isinstance(said, list) or len(said) != len(again):
            raise InvalidArgument(f"{where} does not have {len(again)} parts, as the records do")
        for place, value in enumerate(again):
            _compare(f"{where}[{place}]", said[place], value)
    elif isinstance(again, float) and isinstance(said, int | float) and not isinstance(said, bool):
        _same(where, said, again)
    elif said != again or type(said) is not type(again):
        raise InvalidArgument(f"{where} is {said!r}, but the records say {again!r}")


def _same(what: str, said: float, again: float) -> None:
    if not math.isclose(said, again, rel_tol=_ROUNDING, abs_tol=_ROUNDING * 1e-3):
        raise InvalidArgument(f"{what} is {said!r}, but its constants give {again!r}")
