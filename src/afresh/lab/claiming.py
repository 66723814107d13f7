"""Analysts of rows that release only symbols: what they learn from passes, failures and winners, and what it buys.

Every analyst of the lab meets every population in each way of asking for a symbol: claims, challenges and contests.
A symbol is no number, but the analyst sets the ends, and levels are public: so each of its questions is put first as
what tells it most, one bit, and then as what is false by a hair on the side it learnt (`Claims`, `Challenges`,
`Contests`). Others are made for one way. `python -m afresh.lab.claiming` prints how often anything certified was false,
and how often it would be if levels forgot the path.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from afresh.lab import constants
from afresh.lab.analysts import World, find_analyst
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.population import POPULATIONS, Bit, Question, Vote
from afresh.lab.session import Floats
from afresh.lab.symbols import Conversation, Gain, Talk
from afresh.mechanisms.planned_checks import plan_open_rows
from afresh.results.progress import waiting
from afresh.theory.special import ndtri

OTHERS = 640  # no analyst asks for bits from here on
FEW, MANY = 3, 10  # the candidates of a contest that is held to learn, and of one that is held to be won
BINS = 40  # of the winner's value
VOTERS = 101  # of a near tie
_FAR = 2.0  # deviations; columns that far below their truth are one in fifty


class Claims:
    """Put questions as claims: "the mean is above e".

    To learn, e is such that the claim passes if the guarded mean is above its truth: half of these claims fail, and
    each says a whole bit. A question that is asked again is bisected. To attack, claim that the truth is beyond itself
    by a hair, on the side that the rows were found to be on: if that passes, it is a miss.
    """

    def __init__(self, held: Conversation) -> None:
        """Start with nothing known."""
        self.held, self._known = held, dict[Question, tuple[float, float]]()

    def learn(self, questions: Sequence[Question]) -> Floats:
        """Find out what an analyst may hear about each question, and attack those that were made from others."""
        heard = []
        for each in questions:
            z = self._bisect(each)
            if isinstance(each, Vote):
                self.attack(each, above=z > 0)
            heard.append(_heard(self.held, each, z))
        return np.array(heard)

    def attack(self, question: Question, *, above: bool) -> None:
        """Claim what is only just false."""
        self.held.claim_beyond(question, above=above, expected=True)

    def _bisect(self, question: Question) -> float:
        """Halve the quantiles in which the guarded mean may be; return roughly where it is, in deviations."""
        low, high = self._known.get(question, (0.0, 1.0))
        middle = (low + high) / 2
        low, high = (middle, high) if self._exceeds(question, ndtri(middle)) else (low, middle)
        self._known[question] = low, high
        return (_density(low) - _density(high)) / (high - low)

    def _exceeds(self, question: Question, deviations: float) -> bool:
        return self.held.claim(question, self.held.end_for(question, deviations), expected=True)


class Challenges(Claims):
    """Put questions as challenges: "this model is better", rejected as a rule.

    Scores of models are the questions' values. To learn, challenge a model that scores 0 with a margin that is passed
    half of the time. To attack a vote, challenge the one in which everybody votes the other way, with a margin by which
    it is not better.
    """

    def attack(self, question: Question, *, above: bool) -> None:
        """Challenge the rival, or let it challenge."""
        rival = _rival(self.held, question)
        self.held.challenge(*((question, rival) if above else (rival, question)))

    def _exceeds(self, question: Question, deviations: float) -> bool:
        gain = Gain(question)
        return self.held.claim(gain, self.held.end_for(gain, deviations), expected=False)


class Contests:
    """Put questions as contests, three at a time: the winner's index tells which seems highest.

    A question that comes alone meets another. To attack, enter it against its rival as the incumbent, and ask for the
    winner's value.
    """

    def __init__(self, held: Conversation) -> None:
        """Start with nothing known."""
        self.held = held

    def learn(self, questions: Sequence[Question]) -> Floats:
        """Find the best of every three, and attack with questions that were made from others."""
        heard = list[float]()
        for start in range(0, len(questions), FEW):
            batch = list(questions[start : start + FEW])
            entered = batch if len(batch) > 1 else [*batch, Bit(OTHERS)]
            winner, many = self.held.contest(entered), len(entered)
            ahead = many * _density(1 - 1 / many)  # roughly where the best of so many lies, in deviations
            for place, each in enumerate(batch):
                if isinstance(each, Vote):
                    self.attack(each, above=winner == place)
                heard.append(_heard(self.held, each, ahead if winner == place else -ahead / (many - 1)))
        return np.array(heard)

    def attack(self, question: Question, *, above: bool) -> None:
        """Enter it against its rival, or its rival against it."""
        rival = _rival(self.held, question)
        candidate, incumbent = (question, rival) if above else (rival, question)
        self.held.contest([candidate], incumbent, BINS)


def _rival(held: Conversation, question: Question) -> Question:
    """Whom to beat: what lifts a vote lowers the vote with opposite signs. Any other bit is as good as a bit."""
    if isinstance(question, Vote):
        return held.population.vote(-question.signs)
    assert isinstance(question, Bit)
    return Bit(OTHERS + question.j)


def _heard(held: Conversation, question: Question, z: float) -> float:
    """The value that an analyst hears if the guarded mean seems to be z deviations above its truth."""
    return question.truth(held.population) + z * held.deviation(question)


def _density(quantile: float) -> float:
    """The standard normal density at a quantile."""
    if not 0 < quantile < 1:
        return 0.0
    return math.exp(-(ndtri(quantile) ** 2) / 2) / math.sqrt(2 * math.pi)


def _play(way: type[Claims | Contests], analyst: str, held: Conversation, rng: np.random.Generator) -> None:
    """Let one of the lab's analysts hold the conversation; a question takes two symbols at most.

    Answers to its last questions cannot be used, so these are attacked, on both sides.
    """
    mechanism, put = held.talk.mechanism, way(held)
    world = World(held.population, mechanism.rows, mechanism.questions // 2)
    asking = find_analyst(analyst)(world, rng)
    if hasattr(asking, "look"):
        asking.look(held.opened)
    asked = 0
    while questions := asking.ask():
        asked += len(questions)
        if asked < world.k:
            asking.hear(put.learn(questions))
            continue
        for each in questions:
            for above in (True, False):
                put.attack(each, above=above)
        return


def _failing_on_purpose(held: Conversation, rng: np.random.Generator) -> None:
    """Make every other claim fail, and in between claim something that is only just false."""
    for j in range(held.talk.mechanism.questions // 2):
        bit = Bit(2 * j)
        held.claim(bit, (1 + bit.truth(held.population)) / 2, expected=True)
        held.claim_beyond(Bit(2 * j + 1), above=bool(rng.integers(2)), expected=True)


def _seldom_failing(held: Conversation, rng: np.random.Generator) -> None:
    """Claim what fails only for columns far below their truth, the cheapest way to learn, and let these vote.

    After every failure their vote challenges its rival: a challenge that is rejected costs nothing.
    """
    signs = np.zeros(held.talk.mechanism.questions, dtype=np.int8)
    for j in range(signs.size):
        if held.talk.left < 2:
            return
        bit = Bit(j)
        if not held.claim(bit, held.end_for(bit, -_FAR), expected=True):
            signs[j] = -1
            vote = held.population.vote(signs)
            held.challenge(vote, _rival(held, vote))


def _near_ties(held: Conversation, rng: np.random.Generator) -> None:
    """Game a gate with challengers that are exactly as good as the incumbent and differ on few rows."""
    incumbent, tied = _tied(held, rng)
    while held.talk.left:
        held.challenge(tied(), incumbent)


def _tied_contests(held: Conversation, rng: np.random.Generator) -> None:
    """Enter ten such models at a time against the incumbent, and ask for the winner's value.

    Last come contests without an incumbent, which somebody always wins: each makes the next level higher.
    """
    incumbent, tied = _tied(held, rng)
    while held.talk.left:
        last = held.talk.left <= held.talk.mechanism.questions // 10
        held.contest([tied() for _ in range(MANY)], None if last else incumbent, BINS)


def _tied(held: Conversation, rng: np.random.Generator) -> tuple[Vote, Callable[[], Vote]]:
    """A vote, and others with the same truth: in each, one voter is replaced by a column that did not vote."""
    signs = np.zeros(3 * VOTERS, dtype=np.int8)
    signs[:VOTERS] = rng.choice([-1, 1], size=VOTERS)
    first = held.population.vote(signs)

    def tied() -> Vote:
        turned = signs.copy()
        leaves, comes = rng.integers(VOTERS), rng.integers(VOTERS, signs.size)
        turned[leaves], turned[comes] = 0, signs[leaves]
        return Vote(turned, first.threshold)

    return first, tied


WAYS: dict[str, type[Claims | Contests]] = {"claims": Claims, "challenges": Challenges, "contests": Contests}
ANALYSTS = constants.ANALYSTS
# Made for one way.
OWN: dict[tuple[str, str], Callable[[Conversation, np.random.Generator], None]] = {
    ("claims", "failing-on-purpose"): _failing_on_purpose,
    ("claims", "seldom-failing"): _seldom_failing,
    ("challenges", "near-ties"): _near_ties,
    ("contests", "tied-contests"): _tied_contests,
}
PAIRS = tuple((way, name) for way in WAYS for name in (*ANALYSTS, *(name for of, name in OWN if of == way)))


class Cell(NamedTuple):
    """What is repeated: a way, who asks, and where rows come from."""

    way: str
    analyst: str
    population: str
    n: int = 2000
    k: int = 200


def misses(cell: Cell, failure: float, repeats: int, *, forgetful: bool = False, seed: int = 2018) -> int:
    """Count the conversations in which anything certified was false.

    Args:
        cell: What is repeated; half of the rows are open, half guarded.
        failure: The probability with which anything certified may be false.
        repeats: The number of conversations.
        forgetful: Whether levels ignore what was released before, as a correction for k fixed questions does.
        seed: The seed of everything random.

    Returns:
        The number with a miss.
    """
    return sum(conversation(cell, failure, (seed, i), forgetful=forgetful).missed for i in range(repeats))


def conversation(cell: Cell, failure: float, seed: Sequence[int], *, forgetful: bool = False) -> Conversation:
    """Hold one conversation.

    Args:
        cell: As in `misses`.
        failure: As in `misses`.
        seed: The seed of the rows and of the analyst.
        forgetful: As in `misses`.

    Returns:
        The conversation, with everything that was released and whether any of it is false.
    """
    of_sample, of_analyst = (
        np.random.Generator(np.random.SFC64(each)) for each in np.random.SeedSequence(seed).spawn(2)
    )
    mechanism = plan_open_rows(cell.n, cell.k, failure, share=0.5)
    assert mechanism is not None
    population = POPULATIONS[cell.population]
    held = Conversation(Talk(mechanism, forgetful=forgetful), population, population.draw(cell.n, of_sample))
    own = OWN.get((cell.way, cell.analyst))
    if own is None:
        _play(WAYS[cell.way], cell.analyst, held, of_analyst)
    else:
        own(held, of_analyst)
    return held


HEADER = (
    *("way", "analyst", "population", "n", "k", "conversations", "with a miss at 95%", "coverage at least"),
    *("with a miss at 50%", "coverage at least", "at 95%, if levels forgot"),
)


def cells(n: int = 2000, k: int = 200) -> list[Cell]:
    """List every way, analyst and population.

    Args:
        n: The number of rows.
        k: The number of questions.

    Returns:
        A cell for each.
    """
    return [Cell(*pair, population, n, k) for pair in PAIRS for population in POPULATIONS]


def lines(
    wanted: Sequence[Cell], repeats: int, progress: Callable[[int], None] = lambda done: None
) -> Iterator[tuple[str, ...]]:
    """Format cells as text, one tuple per line.

    Args:
        wanted: What `cells` lists.
        repeats: The number of conversations of each, at each confidence.
        progress: Called with the number of conversations that were finished since the last call.

    Returns:
        A tuple under `HEADER` for each.
    """
    for cell in wanted:
        found = list[str]()
        for failure in (0.05, 0.5):
            missed = misses(cell, failure, repeats)
            found += f"{missed}", f"{clopper_pearson(repeats - missed, repeats)[0]:.3f}"
            progress(repeats)
        few = _few(repeats)
        found.append(f"{misses(cell, 0.05, few, forgetful=True)}/{few}")
        progress(few)
        yield *cell[:3], f"{cell.n:,}", f"{cell.k:,}", f"{repeats}", *found


def _few(repeats: int) -> int:
    """The number of conversations with levels that forget: few are enough to show that these do not hold."""
    return math.ceil(repeats / 4)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40, help="conversations of each analyst with each population")
    repeats, wanted = parser.parse_args().repeats, cells()
    with waiting("conversations", (2 * repeats + _few(repeats)) * len(wanted)) as progress:
        found = list(lines(wanted, repeats, progress))
    print(markdown(HEADER, found))


if __name__ == "__main__":
    _main()
