"""A gate: candidates are proposed, and only those that certainly beat the incumbent become the incumbent (section 15).

Everything the guarded part has said so far decides how sure each test must be. The open part predicts whether a
proposal will pass, and this prediction is fixed before the guarded part is read: outcomes that were predicted cost
later proposals nothing; only surprises do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.evaluations.candidates import Candidate, gain_question
from afresh.evaluations.verdicts import Proposed
from afresh.guard.tasked import Tasked
from afresh.mechanisms.tasks import Claim
from afresh.queries.asked import Asked
from afresh.results import show
from afresh.theory import symbols
from afresh.theory.checked import node_level
from afresh.theory.special import ndtr, ndtri
from afresh.theory.symbols import Trail

if TYPE_CHECKING:
    from afresh.evaluations.evaluation import Evaluation
    from afresh.evaluations.keeping import Keeping

USEFUL = 0.1  # an improvement that a gate should detect
DIFFER = 0.2  # the share of items on which a candidate with many edits differs from the incumbent
_POWER = 0.9


@dataclass(frozen=True, slots=True)
class Known:
    """A candidate, as the ledger knows it."""

    name: str
    digest: str
    seal: str
    key: str
    """The digest of what was run, if its results said so."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict of a gate, as the ledger knows it."""

    candidate: Known
    over: Known
    """The candidate it was compared with."""
    passed: bool
    question: str
    """The digest of the question."""
    step: float
    """After how many symbols it was recorded."""


class Gate(show.Shown):
    """A ratchet over the candidates of an evaluation. Make one with `Evaluation.gate`."""

    def __init__(self, evaluation: Evaluation, incumbent: Candidate, margin: float, keeping: Keeping) -> None:
        """Not for users: `open_gate` finds the incumbent."""
        self.evaluation, self.margin = evaluation, margin
        self._incumbent, self._keeping = incumbent, keeping

    @property
    def incumbent(self) -> str:
        """The name of the candidate to beat: the first one, or the one accepted last."""
        last = accepted_by(self.evaluation)
        return last[-1].candidate.name if last else self._incumbent.name

    @property
    def accepted(self) -> list[str]:
        """The names of all accepted candidates, in order; with the guard's confidence, all are real improvements."""
        return [each.candidate.name for each in accepted_by(self.evaluation)]

    def propose(self, results: Any, name: str) -> Proposed:
        """Propose a candidate: it is accepted if it certainly beats the incumbent, item by item. 1 answer.

        Nothing else is released: a rejection is one bit. A proposal with the same name and open scores is a repeat: it
        is free, and gives the verdict on the results that were proposed first, for the guarded scores passed now are
        not read. Give other results another name. If another proposal is accepted in the meantime, this one must beat
        it too, which costs one more answer. Proposing every edit wastes answers: tune on the open part, and propose
        what survived at milestones.

        Args:
            results: As in `Evaluation.score`.
            name: The candidate's name.

        Returns:
            Whether it was accepted. If it was, it is a real improvement, with the guard's confidence.

        Raises:
            InvalidArgument: The results do not fit the items, or the name belongs to others; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        checks.text("name", name, "a name for the candidate")
        candidate = self.evaluation.candidate(results, name)
        check_name(self.evaluation, candidate)
        found = self._judged(candidate, 0)
        while not isinstance(found, Proposed):  # another was accepted while this one was judged: beat that one
            found = self._judged(candidate, found)
        return found

    def _judged(self, candidate: Candidate, charged: int) -> Proposed | int:
        """The verdict against the incumbent; only the charge, if another candidate replaced the incumbent first."""
        evaluation, before = self.evaluation, self._current()
        desk, analyst = evaluation.guard.desk, evaluation.guard.analyst
        past = accepted_by(evaluation)
        if past and past[-1].candidate.digest == candidate.digest:  # asked again after it was accepted
            return self._told(candidate, past[-1].over.name, True, desk.left(analyst))
        needed = self._needed()
        for each in (before, candidate):  # before it can be accepted: a crash in between loses nothing
            if each.digest not in needed:  # otherwise those that were judged are kept
                self._keeping.keep(each.digest, each.scores)
        detects = self._detects(self._level(), self._spread(before, candidate))
        try:
            (reply,) = desk.answer([self._asked(before, candidate)], analyst)
        except BudgetExhausted:
            self._let_go(candidate)
            raise
        outcome = reply.parts[0].entry.outcome
        assert outcome is not None
        released: Any = outcome.released
        passed, charged = bool(released["passed"]), charged + len(reply.charged)
        if passed:
            mine = (candidate.digest, before.digest)
            if mine not in [(each.candidate.digest, each.over.digest) for each in accepted_by(evaluation)]:
                return charged
            if reply.charged:  # otherwise another process was judged by its scores, and kept those
                self._keeping.keep(candidate.digest, candidate.scores)
                self._incumbent = candidate
        else:
            self._let_go(candidate)
        gained = evaluation.open_difference(before, candidate)
        return self._told(candidate, before.name, passed, reply.left, charged, gained, detects)

    def _let_go(self, candidate: Candidate) -> None:
        """Forget a candidate that was not accepted, unless it is one that others were compared with."""
        if candidate.digest not in self._needed() | {self._incumbent.digest}:
            self._keeping.drop(candidate.digest)

    def _needed(self) -> set[str]:
        """The digests of all that are or were the incumbent."""
        accepted = {each.candidate.digest for each in accepted_by(self.evaluation)}
        return accepted | {each.over.digest for each in verdicts_of(self.evaluation)}

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
        if past and past[-1].candidate.digest == candidate.digest:
            return True
        question = self._tasked(self._current(), candidate).digest
        return any(each.question == question for each in verdicts_of(self.evaluation))

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

    def chance(self, results: Any) -> float:
        """Predict from the open part how likely a candidate is to be accepted if it is proposed now. Free.

        It allows for the error of the open part, not for overfitting it: what was chosen because it did best there does
        worse elsewhere. Propose the best candidate at milestones, from a chance of about one third on.

        Args:
            results: As in `propose`; guarded items may be missing.

        Returns:
            A probability.
        """
        scores = np.array(list(self.evaluation.open_scores(results).values()))
        gains = scores - self._current().scores[self.evaluation.dealt.open]
        return predicted(gains, self.evaluation.guarded, self._level(), self.margin)

    @property
    def too_few(self) -> bool:
        """Whether there are too few items to detect a useful improvement, even with the first proposal."""
        return self.detects(proposals=0) > USEFUL

    @property
    def advice(self) -> str:
        """What the gate can detect, and when to propose, in words."""
        now, most = self.detects(), self.evaluation.guard.plan.questions
        found = f"detects improvements of {now:.3g} or more, about nine times in ten," if now < 1 else "can accept none"
        fits = (
            f"With {self.evaluation.guarded:,} guarded items and {most:,} answers the gate {found} if "
            f"candidates differ on {DIFFER:.0%} of items."
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
        if past and past[-1].candidate.digest != self._incumbent.digest:
            self._incumbent = _in_force(self.evaluation, past[-1].candidate, None, self._keeping)
        return self._incumbent

    def _tasked(self, a: Candidate, b: Candidate) -> Tasked:
        desk = self.evaluation.guard.desk
        query = gain_question(a, b, desk.terms.seed)
        task = Claim(0.5 + self.margin / 2, 1.0, expected=self._foretold(a, b), signs=True)
        by = f" by more than {self.margin:g}" if self.margin else ""
        text = f"gate: {b.name} scores higher than {a.name}{by}"
        return Tasked((query,), task, text, query.bounds, query.levels)

    def _asked(self, a: Candidate, b: Candidate) -> Asked:
        """The proposal of B over A, recorded with all that identifies them."""
        tasked = self._tasked(a, b)
        both = {what: [each.name, each.digest, each.seal, each.key] for what, each in (("candidate", b), ("over", a))}
        return Asked(
            queries=(tasked,),
            question=tasked.text,
            bounds=tasked.bounds,
            about_value="a proposal",
            about_missing="",
            rule="improvement",
            parameters={"gate": both},
        )

    def _foretold(self, a: Candidate, b: Candidate) -> bool:
        """Whether the open part predicts a pass: a function of it and the plan alone, so repeats stay repeats."""
        opened, level = self.evaluation.dealt.open, node_level(self._checking, Trail())
        return predicted(b.scores[opened] - a.scores[opened], self.evaluation.guarded, level, self.margin) > 0.5

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


def open_gate(evaluation: Evaluation, incumbent: Any, name: str, margin: float, keeping: Keeping) -> Gate:
    """The gate of an evaluation, with the incumbent in force."""
    by = checks.number("margin", margin, "an improvement of the mean score, from 0 to below 1", least=0, below=1)
    past = [each.candidate for each in accepted_by(evaluation)]
    given = None if incumbent is None else evaluation.candidate(incumbent, name)
    if given is not None:
        check_name(evaluation, given)
    if not past:
        if given is None:
            raise InvalidArgument("a gate needs its first incumbent; pass its results: evaluation.gate(results).")
        overs = {each.over.digest: each.over for each in verdicts_of(evaluation)}
        first = overs.get(given.digest)
        found = given if first is None else _in_force(evaluation, first, given, keeping)
    elif given is not None and given.digest not in {each.over.digest for each in accepted_by(evaluation)} | {
        past[-1].digest
    }:
        raise InvalidArgument(
            f"the incumbent of this gate is {checks.shown(past[-1].name)}, and {checks.shown(given.name)} with these "
            "results never was the incumbent; leave out incumbent= to continue."
        )
    else:  # a script that starts with its baseline continues where it stopped
        found = _in_force(evaluation, past[-1], given, keeping)
    return Gate(evaluation, found, by, keeping)


def check_name(evaluation: Evaluation, candidate: Candidate) -> None:
    """Refuse a name that this evaluation's gate knows with other open scores, which everyone may see."""
    if candidate.key:
        return  # what was run identifies it, and its author may call other files the same
    for each in verdicts_of(evaluation):
        for known in (each.candidate, each.over):
            if known.name == candidate.name and known.digest != candidate.digest and not known.key:
                raise InvalidArgument(
                    f"the gate knows {checks.shown(candidate.name)} with other scores on the open items; give these "
                    "results another name. Nothing was charged."
                )


def smallest_gain(guarded: int, level: float, spread: float, margin: float = 0.0) -> float:
    """The improvement beyond the margin that passes about nine times in ten, at this many nats; 1 if none does.

    What the exact test accepts if so many items differ, and the scatter of the items.
    """
    if not math.isfinite(level):
        return 1.0
    differ = min(round(guarded * max(spread, margin + margin**2)), guarded)
    gain = symbols.smallest_gain(guarded, differ, level, margin)
    return 1.0 if gain is None else min(gain - margin + ndtri(_POWER) * math.sqrt(spread / guarded), 1.0)


def predicted(gains: NDArray[np.float64], guarded: int, level: float, margin: float) -> float:
    """The probability that so many guarded items accept a candidate at this many nats, given its gains on open items.

    The true gain is as far from that of the open items as theirs scatters, and so is that of the guarded items.
    """
    if not math.isfinite(level):
        return 0.0
    spread = (float((gains**2).sum()) + 1) / (len(gains) + 2)  # the next item may differ though none has
    needed: float | None = margin + math.sqrt(2 * level * spread / guarded)
    if np.isin(gains, (-1.0, 0.0, 1.0)).all():
        needed = symbols.smallest_gain(guarded, min(round(guarded * spread), guarded), level, margin)
    if needed is None:
        return 0.0
    scatter = math.sqrt(spread * (1 / len(gains) + 1 / guarded))
    return float(ndtr((float(gains.mean()) - needed) / scatter))


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


def accepted_by(evaluation: Evaluation) -> list[Judged]:
    """Everything the gate has accepted, according to the ledger.

    Two proposals at once may both beat one incumbent. The one that was recorded first replaced it, and the other did
    not beat that one: it counts as accepted only once it does.
    """
    found: list[Judged] = []
    for each in sorted((one for one in verdicts_of(evaluation) if one.passed), key=lambda one: one.step):
        if not found or each.over.digest == found[-1].candidate.digest:
            found.append(each)
    return found


def verdicts_of(evaluation: Evaluation) -> list[Judged]:
    """All verdicts of an evaluation's gate, according to the ledger."""
    desk, found = evaluation.guard.desk, []
    with desk.ledger.reading(desk.terms) as account:
        for each in account.stated.values():
            if "gate" in each.parameters:
                entry, both = account.entries[each.parts[0] - 1], each.parameters["gate"]
                assert entry.outcome is not None
                released: Any = entry.outcome.released
                known = (Known(*both["candidate"]), Known(*both["over"]))
                found.append(Judged(*known, bool(released["passed"]), entry.digest, released["steps"]))
    return found


def _in_force(evaluation: Evaluation, known: Known, given: Candidate | None, keeping: Keeping) -> Candidate:
    """A candidate with the scores it was judged by: those that were kept, or the ones given if they are the same.

    Only if none were kept does it show whether guarded scores agree; who has lost the folder has their file.
    """
    scores = keeping.get(known.digest)
    if scores is not None and len(scores) == evaluation.items:
        found = evaluation.dealt.known(known.name, known.digest, scores, known.key)
        if found.seal == known.seal:  # not those of another process that proposed others at the same time
            return found
    if given is None or given.digest != known.digest:
        raise InvalidArgument(
            f"the incumbent is {checks.shown(known.name)}, and its scores were not kept here; pass its results: "
            f"evaluation.gate(results, name={checks.shown(known.name)})."
        )
    if given.seal != known.seal:
        raise InvalidArgument(
            f"the incumbent is {checks.shown(known.name)}, with other scores than these; pass the results that were "
            "judged under this name. Nothing was charged."
        )
    return given
