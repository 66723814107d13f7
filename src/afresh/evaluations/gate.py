"""A gate: candidates are proposed, and only those that certainly beat the incumbent become the incumbent (section 15).

Everything the guarded part has said so far decides how sure each test must be. The open part predicts whether a
proposal will pass, and this prediction is fixed before the guarded part is read: outcomes that were predicted cost
later proposals nothing; only surprises do.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.evaluations.candidates import Candidate, gain_question
from afresh.evaluations.keeping import keep, kept, let_go
from afresh.evaluations.verdicts import Proposed
from afresh.guard.claims import ask_task
from afresh.guard.tasked import Tasked
from afresh.mechanisms.tasks import Claim
from afresh.results import show
from afresh.theory.binomial import fewest_wins
from afresh.theory.checked import node_level
from afresh.theory.special import ndtri
from afresh.theory.symbols import Trail, detectable

if TYPE_CHECKING:
    from afresh.evaluations.evaluation import Evaluation
    from afresh.ledger import Entry

USEFUL = 0.1  # an improvement that a gate should detect
DIFFER = 0.2  # the share of items on which a candidate with many edits differs from the incumbent
_POWER = 0.9
_BEATS = " scores higher than "
_KNOWN = re.compile(r"gate: (.*) \[([0-9a-f]{16}) over ([0-9a-f]{16})\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A candidate that a gate accepted, as the ledger knows it."""

    name: str
    digest: str
    over: str
    """The digest of the candidate it replaced."""
    replaced: str
    """The name of the candidate it replaced."""


class Gate(show.Shown):
    """A ratchet over the candidates of an evaluation. Make one with `Evaluation.gate`."""

    def __init__(self, evaluation: Evaluation, incumbent: Candidate, margin: float, folder: str | None) -> None:
        """Not for users: `open_gate` finds the incumbent."""
        self.evaluation, self.margin = evaluation, margin
        self._incumbent, self._folder = incumbent, folder

    @property
    def incumbent(self) -> str:
        """The name of the candidate to beat: the first one, or the one accepted last."""
        last = accepted_by(self.evaluation)
        return last[-1].name if last else self._incumbent.name

    @property
    def accepted(self) -> list[str]:
        """The names of all accepted candidates, in order; with the guard's confidence, all are real improvements."""
        return [each.name for each in accepted_by(self.evaluation)]

    def propose(self, results: Any, name: str) -> Proposed:
        """Propose a candidate: it is accepted if it certainly beats the incumbent, item by item. 1 answer.

        Nothing else is released: a rejection is one bit. Repeating a proposal is free and gives the same verdict. If
        another proposal is accepted in the meantime, this one must beat it too, which costs one more answer. Proposing
        every edit wastes answers: tune on the open part, and propose what survived at milestones.

        Args:
            results: As in `Evaluation.score`.
            name: The candidate's name.

        Returns:
            Whether it was accepted. If it was, it is a real improvement.

        Raises:
            InvalidArgument: The results do not fit the items; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        checks.text("name", name, "a name for the candidate")
        candidate = self.evaluation.candidate(results, name)
        found = self._judged(candidate, 0)
        while not isinstance(found, Proposed):  # another was accepted while this one was judged: beat that one
            found = self._judged(candidate, found)
        return found

    def _judged(self, candidate: Candidate, charged: int) -> Proposed | int:
        """The verdict against the incumbent; only the charge, if another candidate replaced the incumbent first."""
        evaluation, before = self.evaluation, self._current()
        desk, analyst = evaluation.guard.desk, evaluation.guard.analyst
        past = accepted_by(evaluation)
        if past and past[-1].digest == candidate.digest[:16]:  # asked again after it was accepted
            return self._told(candidate, past[-1].replaced, True, desk.left(analyst))
        tasked = self._tasked(before, candidate)
        keep(self._folder, candidate)  # before it can be accepted: a crash in between loses nothing
        detects = self._detects(self._level(), self._spread(before, candidate))
        try:
            reply = ask_task(desk, analyst, tasked, "a proposal")
        except BudgetExhausted:
            let_go(self._folder, candidate, [before.digest])
            raise
        outcome = reply.parts[0].entry.outcome
        assert outcome is not None
        released: Any = outcome.released
        passed, charged = bool(released["passed"]), charged + len(reply.charged)
        if passed:
            mine = (candidate.digest[:16], before.digest[:16])
            if mine not in [(each.digest, each.over) for each in accepted_by(evaluation)]:
                return charged
            self._incumbent = candidate
        else:
            let_go(self._folder, candidate, [before.digest])
        gained = evaluation.open_difference(before, candidate)
        return self._told(candidate, before.name, passed, reply.left, charged, gained, detects)

    def judged(self, results: Any, name: str) -> bool:
        """Whether this proposal was already decided: proposing it again is free and gives the same verdict. Free.

        Args:
            results: As in `propose`; guarded items may be missing.
            name: The candidate's name.

        Returns:
            Whether the ledger has its verdict.
        """
        candidate = self.evaluation.candidate(results, name, "open")
        past = accepted_by(self.evaluation)
        if past and past[-1].digest == candidate.digest[:16]:
            return True
        text, desk = self._tasked(self._current(), candidate).text, self.evaluation.guard.desk
        return any(each.text == text and each.outcome is not None for each in desk.ledger.entries(desk.terms))

    def detects(self, *, disagreement: float = DIFFER, proposals: int | None = None, acceptances: int = 0) -> float:
        """Show the smallest true improvement beyond the margin that is accepted about nine times in ten. Free.

        Args:
            disagreement: The share of items on which a candidate and the incumbent have different scores.
            proposals: The number of proposals before it; by default, those made so far.
            acceptances: How many of them were surprises: accepted or rejected contrary to what the open part predicted.

        Returns:
            An improvement of the mean score; 1 if none can be accepted.
        """
        share = checks.share("disagreement", disagreement, ", a share of items")
        if proposals is None:
            return self._detects(self._level(), share)
        most = self.evaluation.guard.plan.questions - 1
        steps = checks.whole("proposals", proposals, 0, most, ", the answers of the plan")
        events = checks.whole("acceptances", acceptances, 0, steps, ", the proposals")
        return self._detects(self._level(Trail(steps, events)), share)

    def likely(self, results: Any) -> bool:
        """Judge from the open part whether a candidate is worth proposing: whether it would pass comfortably. Free.

        Args:
            results: As in `propose`; guarded items may be missing.

        Returns:
            Whether its improvement on the open part exceeds what the gate needs now by two standard errors.
        """
        scores = np.array(list(self.evaluation.open_scores(results).values()))
        gain = scores - self._current().scores[self.evaluation.dealt.open]
        spread = float(np.mean(gain**2))
        opened, guarded = self.evaluation.open, self.evaluation.guarded
        room = 2 * math.sqrt(spread * (1 / opened + 1 / guarded))
        return float(gain.mean()) - self.margin > self._needs(self._level(), spread) + room

    @property
    def too_few(self) -> bool:
        """Whether there are too few items to detect a useful improvement, even with the first proposal."""
        return self.detects(proposals=0) > USEFUL

    @property
    def advice(self) -> str:
        """What the gate can detect, and when to propose, in words."""
        now, most = self.detects(), self.evaluation.guard.plan.questions
        fits = (
            f"With {self.evaluation.guarded:,} guarded items and {most:,} answers the gate detects improvements of "
            f"{now:.3g} or more, nine times in ten, if candidates differ on {DIFFER:.0%} of items."
        )
        if self.too_few:
            items = _enough(self.evaluation, self.margin)
            return (
                f"{fits} That is too few items to detect an improvement of {USEFUL:g}: about {items:,} items would be "
                f"enough, and you have {self.evaluation.items:,}. Until then most proposals are rejected."
            )
        return f"{fits} Tune on the open part, and propose what survived at milestones."

    def _current(self) -> Candidate:
        """The incumbent, which another process may have changed."""
        past = accepted_by(self.evaluation)
        if past and past[-1].digest != self._incumbent.digest[:16]:
            self._incumbent = _found(self.evaluation, past[-1], self._folder)
        return self._incumbent

    def _tasked(self, a: Candidate, b: Candidate) -> Tasked:
        desk = self.evaluation.guard.desk
        query = gain_question(a, b, desk.terms.seed)
        task = Claim(0.5 + self.margin / 2, 1.0, expected=self._foretold(a, b), signs=True)
        by = f" by more than {self.margin:g}" if self.margin else ""
        names = f"{json.dumps(b.name)}{_BEATS}{json.dumps(a.name)}{by}"
        text = f"gate: {names} [{b.digest[:16]} over {a.digest[:16]}]"
        return Tasked((query,), task, text, query.bounds, query.levels)

    def _foretold(self, a: Candidate, b: Candidate) -> bool:
        """Whether the open part predicts a pass: a function of it and the plan alone, so repeats stay repeats."""
        level = node_level(self._checking, Trail()) + 1
        gain = self.evaluation.open_difference(a, b) - self.margin
        return gain > self._needs(level, self._spread(a, b))

    def _spread(self, a: Candidate, b: Candidate) -> float:
        """The share of open items on which they differ, or by how much if scores are numbers."""
        opened = self.evaluation.dealt.open
        return float(np.mean((b.scores[opened] - a.scores[opened]) ** 2))

    @property
    def _checking(self) -> Any:
        mechanism: Any = self.evaluation.guard.plan.mechanism
        return mechanism.checking

    def _level(self, trail: Trail | None = None) -> float:
        desk, mechanism = self.evaluation.guard.desk, self.evaluation.guard.plan.mechanism
        if trail is None:
            found: Any = mechanism
            trail = found.trail(desk.ledger.released(desk.terms))
        return node_level(self._checking, trail) if trail.steps < mechanism.questions else math.inf

    def _needs(self, level: float, spread: float) -> float:
        return math.sqrt(2 * level * spread / self.evaluation.guarded)

    def _detects(self, level: float, spread: float) -> float:
        return smallest_gain(self.evaluation.guarded, level, spread, self.margin)

    def _told(
        self,
        candidate: Candidate,
        over: str,
        passed: bool,
        left: int,
        charged: int = 0,
        gained: float | None = None,
        detects: float | None = None,
    ) -> Proposed:
        desk = self.evaluation.guard.desk
        said = (
            f"Everything this gate ever accepts ({len(self.accepted):,} so far) is a real improvement {desk.target}, "
            f"together with everything else this guard certifies, {desk.odds}."
        )
        return Proposed(
            candidate=candidate.name,
            incumbent=over,
            margin=self.margin,
            accepted=passed,
            detects=detects,
            open_difference=gained,
            confidence=desk.plan.confidence,
            covers=desk.covers(said),
            charged=charged,
            left=left,
            simulated=desk.terms.simulated,
        )

    def __repr__(self) -> str:
        """One line."""
        return f"Gate(incumbent {self.incumbent!r}, {len(self.accepted)} accepted, margin {self.margin:g})"

    def _blocks(self) -> list[show.Block]:
        left = self.evaluation.guard.desk.left(self.evaluation.guard.analyst)
        facts = {
            "incumbent": self.incumbent,
            "accepted": ", ".join(self.accepted) or "none so far",
            "margin": f"{self.margin:g}",
            "proposals left": f"{left:,}",
        }
        return [show.Title("Gate"), show.Facts(facts), show.Line(self.advice)]


def open_gate(evaluation: Evaluation, incumbent: Any, name: str, margin: float, folder: str | None) -> Gate:
    """The gate of an evaluation, with the incumbent in force."""
    by = checks.number("margin", margin, "an improvement of the mean score, from 0 to below 1", least=0, below=1)
    past = accepted_by(evaluation)
    given = None if incumbent is None else evaluation.candidate(incumbent, name)
    if not past:
        if given is None:
            raise InvalidArgument("a gate needs its first incumbent; pass its results: evaluation.gate(results).")
        found = given
    elif given is not None and given.digest[:16] == past[-1].digest:
        found = given
    elif given is not None and given.digest[:16] not in {each.over for each in past}:
        raise InvalidArgument(
            f"the incumbent of this gate is {checks.shown(past[-1].name)}, and {checks.shown(given.name)} with these "
            "results never was the incumbent; leave out incumbent= to continue."
        )
    else:  # a script that starts with its baseline continues where it stopped
        found = _found(evaluation, past[-1], folder)
    return Gate(evaluation, found, by, folder)


def smallest_gain(guarded: int, level: float, spread: float, margin: float = 0.0) -> float:
    """The improvement beyond the margin that passes about nine times in ten, at this many nats.

    Without a margin the exact sign test decides, otherwise bets; the scatter of the items is added.
    """
    if not math.isfinite(level):
        return 1.0
    scatter = ndtri(_POWER) * math.sqrt(spread / guarded)
    if margin:
        differ = min(max(spread, margin + margin**2), 1.0)
        deviation = math.sqrt(max(differ - margin**2, 0.0))
        return min(detectable("three-valued", guarded, level, margin, deviation, power=_POWER), 1.0)
    differ = round(guarded * spread)
    wins = fewest_wins(differ, level)
    return 1.0 if wins is None else min((2 * wins - differ) / guarded + scatter, 1.0)


def _enough(evaluation: Evaluation, margin: float) -> int:
    """Roughly how many items would detect a useful improvement, with the same plan."""
    mechanism: Any = evaluation.guard.plan.mechanism
    level = node_level(mechanism.checking, Trail())
    low, high = evaluation.guarded, evaluation.guarded
    while smallest_gain(high, level, DIFFER, margin) > USEFUL and high < checks.MOST:
        low, high = high, 2 * high
    while high - low > max(low // 100, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if smallest_gain(middle, level, DIFFER, margin) > USEFUL else (low, middle)
    items = high * evaluation.items / evaluation.guarded
    step: int = 10 ** max(len(str(int(items))) - 2, 0)
    return math.ceil(items / step) * step


def accepted_by(evaluation: Evaluation) -> list[Accepted]:
    """Everything the gate has accepted, according to the ledger.

    Two proposals at once may both beat one incumbent. The one that was recorded first replaced it, and the other did
    not beat that one: it counts as accepted only once it does.
    """
    desk = evaluation.guard.desk
    passed = [one for entry in desk.ledger.entries(desk.terms) if (one := _read(entry)) is not None]
    found: list[Accepted] = []
    for _, each in sorted(passed, key=lambda one: one[0]):
        if not found or each.over == found[-1].digest:
            found.append(each)
    return found


def _read(entry: Entry) -> tuple[float, Accepted] | None:
    """A claim of a gate that passed, and after how many symbols it was recorded."""
    if entry.outcome is None or (known := _KNOWN.fullmatch(entry.text)) is None:
        return None
    released: Any = entry.outcome.released
    if released.get("task") != 1.0 or not released["passed"]:
        return None
    name, end = json.JSONDecoder().raw_decode(known[1])
    replaced, _ = json.JSONDecoder().raw_decode(known[1], end + len(_BEATS))
    return released["steps"], Accepted(str(name), known[2], known[3], str(replaced))


def _found(evaluation: Evaluation, last: Accepted, folder: str | None) -> Candidate:
    """The incumbent's stored scores, or an error that says what to pass."""
    scores = kept(folder, last.digest)
    if scores is None or len(scores[1]) != evaluation.items:
        raise InvalidArgument(
            f"the incumbent is {checks.shown(last.name)}, and its scores were not kept here; pass its results: "
            f"evaluation.gate(results, name={checks.shown(last.name)})."
        )
    digest, values = scores
    return Candidate(last.name, digest, values, evaluation.dealt.passes(values))
