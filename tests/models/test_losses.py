"""Losses against scikit-learn's, and what no row may make them say."""

import functools
import math
import os
import signal
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from afresh.errors import InvalidArgument
from afresh.labels import Labels, check_predictions, encode
from afresh.losses import Absolute, Brier, Cost, Custom, Log, Loss, Pinball, Squared, ZeroOne, make_loss, prepare
from afresh.queries.vector import VectorQuery, keyed_digest

RNG = np.random.default_rng(11)
N = 600_000  # more rows than two threads evaluate at once
CLASSES = np.array(["ant", "bee", "cow"])
TRUTH = CLASSES[RNG.integers(0, 3, N)]
GUESS = np.where(RNG.random(N) < 0.6, TRUTH, CLASSES[RNG.integers(0, 3, N)])
CHANCES = RNG.dirichlet([1, 1, 1], N)
NUMBERS = RNG.normal(0, 2, N)
COSTS = ((0.0, 1.0, 5.0), (2.0, 0.0, 1.0), (1.0, 1.0, -1.0))


def mean(loss: Loss, predictions: Any, truth: Any, classes: Any = None) -> float:
    """The mean loss in its own units, the way a guard evaluates it."""
    labels = Labels(truth, classes)
    checked = prepare(loss, predictions, labels)
    query = VectorQuery("", "", lambda rows: loss.rows(checked, labels, rows), loss.binary)
    low, high = loss.bounds
    found = query.moments(len(truth))
    everything = loss.rows(checked, labels, slice(None)).astype(float)
    assert found.mean == pytest.approx(everything.mean())
    assert found.variance == pytest.approx(everything.var(), abs=1e-12)
    assert ((everything >= 0) & (everything <= 1)).all()
    return low + (high - low) * found.mean


def test_losses_of_classes() -> None:
    assert mean(ZeroOne(), GUESS, TRUTH) == pytest.approx(metrics.zero_one_loss(TRUTH, GUESS))
    table = metrics.confusion_matrix(TRUTH, GUESS)
    assert mean(Cost(COSTS), GUESS, TRUTH) == pytest.approx((table * np.array(COSTS)).sum() / N)
    assert Cost(((0, 1), (1, 0))).binary
    assert not Cost(COSTS).binary


def test_losses_of_probabilities() -> None:
    hit = (CLASSES[None, :] == TRUTH[:, None]).astype(float)
    assert mean(Brier(), CHANCES, TRUTH) == pytest.approx(((CHANCES - hit) ** 2).sum(axis=1).mean() / 2)
    right = (CHANCES * hit).sum(axis=1)
    assert mean(Log(clip=3), CHANCES, TRUTH) == pytest.approx(np.minimum(-np.log(right), 3).mean())
    two = RNG.random(N) < 0.3
    chance = RNG.uniform(0.01, 0.99, N)
    assert mean(Brier(), chance, two) == pytest.approx(metrics.brier_score_loss(two, chance))
    assert mean(Log(), chance, two) == pytest.approx(metrics.log_loss(two, chance))
    both = np.column_stack([1 - chance, chance])
    assert mean(Log(), both, two) == pytest.approx(metrics.log_loss(two, chance))


def test_losses_of_numbers() -> None:
    guess = NUMBERS + RNG.normal(0, 1, N)
    for loss, reference in (
        (Squared(clip=1000), metrics.mean_squared_error(NUMBERS, guess)),
        (Absolute(clip=1000), metrics.mean_absolute_error(NUMBERS, guess)),
        (Pinball(clip=1000, quantile=0.8), metrics.mean_pinball_loss(NUMBERS, guess, alpha=0.8)),
    ):
        assert mean(loss, guess, NUMBERS) == pytest.approx(reference)
    assert mean(Squared(clip=0.5), guess, NUMBERS) == pytest.approx(np.minimum((guess - NUMBERS) ** 2, 0.5).mean())


def test_custom_losses_are_total() -> None:
    def strange(predictions: Any, labels: Any) -> Any:
        return np.where(labels > 2, np.nan, np.where(labels < -2, 7.0, np.abs(predictions) / 10))

    def fragile(predictions: Any, labels: Any) -> Any:
        if (labels > 3).any():
            raise ValueError(f"secret {labels.max()}")
        return np.full(len(labels), 0.25)

    small, truth = np.zeros(500), NUMBERS[:500]
    assert mean(Custom(strange, "strange"), small, truth) == pytest.approx(np.mean(np.abs(truth) > 2))
    assert mean(Custom(fragile, "fragile"), small, truth) == pytest.approx(np.where(truth > 3, 1, 0.25).mean())
    asymmetric = Custom(lambda p, y: (p != y) * np.where(y == "ant", 1.0, 0.5), "ants matter", kind="classes")
    assert mean(asymmetric, GUESS, TRUTH) == pytest.approx(np.mean((GUESS != TRUTH) * np.where(TRUTH == "ant", 1, 0.5)))
    with pytest.raises(InvalidArgument, match="one number for each"):
        prepare(Custom(lambda p, y: 0.5, "scalar"), small, Labels(truth))
    assert Custom(lambda p, y: p, "a").words != Custom(lambda p, y: y, "a").words
    assert Custom(strange, "a").words == Custom(strange, "a").words


@pytest.mark.parametrize("kind", ["numbers", "probabilities", "classes"])
def test_custom_losses_may_write_into_what_they_are_handed(kind: Any) -> None:
    truth, given = np.array([0, 1, 1, 0]), np.array([0.0, 1.0, 0.0, 1.0])

    def greedy(predictions: Any, labels: Any) -> Any:
        labels -= predictions.astype(labels.dtype)
        predictions[:] = 0
        if len(labels) > 2:
            raise ValueError("ask for each row")
        return labels != 0

    labels, loss = Labels(truth, (0, 1)), Custom(greedy, "greedy", kind)
    for _ in range(2):
        checked = prepare(loss, given, labels)
        assert loss.rows(checked, labels, slice(None)).tolist() == [0, 0, 1, 1]
    assert given.tolist() == [0, 1, 0, 1]
    assert labels.numbers.tolist() == labels.codes.tolist() == [0, 1, 1, 0]


class Scaled:
    """A loss as an object."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, p: Any, y: Any) -> Any:
        return self.loss(p, y)

    def loss(self, p: Any, y: Any) -> Any:
        return self.scale * np.abs(p - y)


def scale_by(scale: float, p: Any, y: Any) -> Any:
    return scale * np.abs(p - y)


def nested(scale: float) -> Any:
    def inner(x: Any, depth: int) -> Any:
        return outer(x, x, depth - 1) if depth else scale * x

    def outer(p: Any, y: Any, depth: int = 1) -> Any:
        return inner(np.abs(p - y), depth)

    return outer


def with_weights(scale: float) -> Any:
    weights = np.ones(5000)  # so many that numpy shows but a few
    weights[2500] = scale
    return lambda p, y: weights[2500] * np.abs(p - y)


@pytest.mark.parametrize(
    "make",
    [
        Scaled,
        lambda scale: Scaled(scale).loss,
        lambda scale: lambda p, y, *, scale=scale: scale * np.abs(p - y),
        lambda scale: functools.partial(scale_by, scale),
        nested,
        with_weights,
    ],
)
def test_losses_of_one_name_are_told_apart(make: Any) -> None:
    """Made one after the other, so that they may have one address."""
    words = [Custom(make(scale), "scaled").words for scale in (0.1, 0.2, 0.3, 0.4, 0.1)]
    assert len(set(words)) == 4
    assert words[0] == words[-1]


def test_labels_do_not_show_themselves() -> None:
    assert "7" not in repr(Labels(np.array([7, 8]), (8, 9)))


_LIMIT = 1.0


def _beyond_limit(predictions: Any, labels: Any) -> Any:
    return np.abs(predictions - labels) > _LIMIT


def test_custom_losses_that_differ_where_it_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was mistaken for another would be answered with the other's answer."""

    class Beyond:  # no pickle finds it here
        def __init__(self, limit: float) -> None:
            self.limit = limit

        def __call__(self, predictions: Any, labels: Any) -> Any:
            return np.abs(predictions - labels) > self.limit

    for make in (Beyond, lambda limit: Beyond(limit).__call__):  # each is gone when the next is made
        assert len({Custom(make(limit), "beyond").words for limit in range(20)}) == 20
        assert Custom(make(1), "beyond").words == Custom(make(1), "beyond").words
    before = Custom(_beyond_limit, "beyond").words
    assert before == Custom(_beyond_limit, "beyond").words
    monkeypatch.setitem(globals(), "_LIMIT", 2.0)
    assert Custom(_beyond_limit, "beyond").words != before


def test_missing_labels_have_the_largest_loss() -> None:
    numbers = np.array([1.0, np.nan, np.inf, 2.0])
    for loss in (Squared(clip=9), Absolute(clip=9), Pinball(clip=9), Custom(lambda p, y: p * 0, "none")):
        values = loss.rows(numbers[[0, 0, 0, 3]], Labels(numbers), slice(None))
        assert values.tolist() == [0, 1, 1, 0]
    names = np.array(["a", None, "b", "z"], dtype=object)
    labels = Labels(names, ("a", "b"))
    assert ZeroOne().rows(np.array([0, 0, 1, 1], np.uint8), labels, slice(None)).tolist() == [False, True, False, True]
    chances = np.array([0.0, 0.0, 1.0, 1.0])
    assert Brier().rows(chances, labels, slice(None)).tolist() == [0, 1, 0, 1]
    assert Log().rows(chances, labels, slice(None)).tolist() == [0, 1, 0, 1]
    assert Cost(((0, 1), (2, 0))).rows(np.array([0, 0, 1, 1]), labels, slice(None)).tolist() == [0, 1, 0, 1]
    masked = np.ma.MaskedArray([0, 1, 0], mask=[False, True, False])
    assert Labels(masked).codes.tolist() == [0, -1, 0]
    assert Labels(masked, (0, 1)).codes.tolist() == [0, -1, 0]


@pytest.mark.parametrize(
    ("kind", "predictions", "said"),
    [
        ("classes", ["ant"] * 3, "4 rows and 3 predictions"),
        ("classes", "ant", "str are no array"),
        ("classes", ["ant", "bee", "dog", "ant"], "row 2 is 'dog'"),
        ("classes", [0, 1, 2, 3], "none of the classes 'ant', 'bee', 'cow'"),
        ("classes", ["ant", None, "bee", "ant"], "row 1 is None"),
        ("classes", [["ant", "bee"]] * 4, "one class for each row"),
        ("numbers", [1, 2, np.nan, 4], "row 2 is nan"),
        ("numbers", [1, 2, np.inf, 4], "finite"),
        ("numbers", [1, -np.inf, np.inf, 4], "row 1 is -inf"),
        ("probabilities", [[0.2, 0.3, 0.5]] * 3 + [[0.5, np.nan, 0.5]], "row 3 is"),
        ("numbers", ["a", "b", "c", "d"], "not numbers"),
        ("numbers", np.ones((4, 2)), "one number for each row"),
        ("probabilities", np.ones((4, 2)) / 2, "a probability a class"),
        ("probabilities", np.ones((4, 3)), "add up to 3"),
        ("probabilities", np.array([[1.5, -0.5, 0]] * 4), "no probability"),
        ("numbers", [[1], [2, 3], 4, 5], "array"),
    ],
)
def test_bad_predictions_are_errors_of_the_predictions(kind: Any, predictions: Any, said: str) -> None:
    for truth in (["ant", "bee", "cow", "ant"], ["cow", "cow", "ant", "bee"]):
        labels = Labels(np.array(truth), ("ant", "bee", "cow"))
        with pytest.raises(InvalidArgument, match=said):
            check_predictions(predictions, kind, labels)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: make_loss("squared"), "Squared"),
        (lambda: make_loss(lambda p, y: p), "Custom"),
        (lambda: Squared(clip=0), "clip == 0"),
        (lambda: Squared(clip=5e-324), "clip == 5e-324"),
        (lambda: Log(clip=float("inf")), "positive"),
        (lambda: Pinball(clip=1, quantile=1.0), "between 0 and 1"),
        (lambda: Cost(((1, 2, 3), (1, 2, 3))), "square"),
        (lambda: Pinball(clip=1, quantile="high"), "between 0 and 1"),  # type: ignore[arg-type]
        (lambda: Cost(((1, 1), (1, 1))), "all the same"),
        (lambda: Cost("ab"), "square"),  # type: ignore[arg-type]
        (lambda: Cost([[0, 1], [1]]), "square"),  # type: ignore[arg-type]
        (lambda: Cost(((-1e308, 1e308), (0, 1))), "other units"),
        (lambda: Pinball(clip=1e100, quantile=1e-300), "too near 0"),
        (lambda: Pinball(clip=1e308, quantile=1 - 1e-16), "too near 0"),
        (lambda: prepare(Cost(((0, 1), (1, 0))), GUESS, Labels(TRUTH)), "3 classes and 2 rows of costs"),
        (lambda: Custom(3, "x"), "callable"),  # type: ignore[arg-type]
        (lambda: Custom(max, " "), "words"),
        (lambda: Labels(NUMBERS).codes, "classes="),
        (lambda: Labels(TRUTH).numbers, "not numbers"),
    ],
)
def test_bad_losses_are_errors(make: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        make()


@given(st.lists(st.integers(-3, 12), min_size=1), st.sets(st.integers(-2, 11), min_size=2))
def test_encode_finds_places(values: list[int], classes: set[int]) -> None:
    listed = tuple(classes)
    expected = [listed.index(value) if value in classes else -1 for value in values]
    assert encode(np.array(values), listed).tolist() == expected
    text = tuple(map(str, listed))
    assert encode(np.array(list(map(str, values))), text).tolist() == expected
    assert encode(np.array(list(map(str, values)), dtype=object), text).tolist() == expected


def test_a_number_of_numpy_is_a_clip() -> None:
    assert Squared(clip=np.int64(9)) == Squared(clip=np.float32(9)) == Squared(clip=9)  # type: ignore[arg-type]


def test_extreme_clips_and_chances() -> None:
    assert mean(Log(clip=100), np.array([1e-30, 1e-50, 1.0]), np.array([True, True, False])) == pytest.approx(
        (30 * np.log(10) + 200) / 3
    )
    for clip in (2.3e-308, 1.7e308):
        for loss in (Squared(clip=clip), Absolute(clip=clip), Pinball(clip=clip, quantile=0.01)):
            values = loss.rows(np.array([0.0, 1e300, 0.0]), Labels(np.array([0.0, -1e300, np.nan])), slice(None))
            assert values[[0, 2]].tolist() == [0, 1]
            assert 0 < values[1] <= 1


@pytest.mark.parametrize(
    "loss", [Log(clip=800), Brier(), Squared(clip=2.3e-308), Absolute(clip=1.7e308), Pinball(clip=1)]
)
@pytest.mark.parametrize("label", [0, 1])
def test_no_label_makes_numpy_complain(loss: Loss, label: int) -> None:
    """A warning is an error here, as in a process that asked numpy for errors: it would depend on labels."""
    labels, given = Labels(np.full(4, label), (0, 1)), np.array([0.0, 1.0, 1e-200, 1 - 1e-16])
    query = VectorQuery("", "", lambda rows: loss.rows(prepare(loss, given, labels), labels, rows))
    calm = query.moments(4)
    with np.errstate(all="raise"):
        assert query.moments(4) == calm
    assert 0 <= calm.mean <= 1


def test_log_loss_of_any_clip() -> None:
    labels = Labels(np.array([True, False, True]))
    with np.errstate(divide="ignore"):
        for clip in (2.3e-308, 1e-17, 1e-3, 2, 800, 1e308):
            assert Log(clip=clip).rows(np.array([0.0, 1.0, 1.0]), labels, slice(None)).tolist() == [1, 1, 0]
    assert mean(Log(clip=1e-15), np.array([0.9, 1.0]), np.array([True, True])) == 0.5e-15


def test_numbers_whose_sum_is_infinite_are_numbers() -> None:
    given = np.array([1.7e308, 1.7e308, -1.0])
    assert (check_predictions(given, "numbers", Labels(np.zeros(3))) == given).all()


def test_every_prediction_is_looked_at() -> None:
    for place in (0, 1, 262_143, 262_144, N - 1):
        for bad in (np.nan, np.inf, -np.inf):
            given = np.ones(N)
            given[place] = bad
            with pytest.raises(InvalidArgument, match=f"the prediction of row {place} is {bad}"):
                check_predictions(given, "numbers", Labels(np.zeros(N)))
        given[place] = -0.0
        assert not np.signbit(check_predictions(given, "numbers", Labels(np.zeros(N)))).any()


def test_zero_has_no_sign() -> None:
    for kind in ("numbers", "probabilities"):
        given = np.array([-0.0, 1.0, 0.5])
        checked = check_predictions(given, kind, Labels(np.array([0, 1, 1])))
        assert not np.signbit(checked).any()
        assert np.signbit(given[0])


def test_threads_change_nothing() -> None:
    """Every row is seen once, the sums are the same to the last bit, and what fails in a thread is told in this one."""
    values = RNG.random(N)
    rows = RNG.permutation(N)
    for chosen in (None, rows, rows[:300_000], rows[:10]):
        several, one = (
            VectorQuery("", "", values.__getitem__, one_thread=alone).moments(N, chosen) for alone in (False, True)
        )
        seen = values if chosen is None else values[chosen]
        assert several == one
        assert one.n == len(seen)
        assert one.total == pytest.approx(math.fsum(seen), rel=1e-14)
        assert one.squares == pytest.approx(math.fsum(seen**2), rel=1e-13)

    def fails(rows: Any) -> Any:
        if rows.start:
            raise MemoryError("no room")
        return values[rows]

    with pytest.raises(MemoryError, match="no room"):
        VectorQuery("", "", fails).moments(N)


def test_digests_are_those_of_plain_hashes() -> None:
    """Put together by hand, in one thread."""
    array = np.random.default_rng(0).normal(size=(600_000, 1))
    key = blake3(bytes.fromhex("02" * 32), derive_key_context="afresh-vector-v3: names of questions").digest()
    data, size = array.tobytes(), 2 * 1024 * 1024
    message = b'["afresh-vector-v3", "a", 1]\n<f8 (600000, 1)\n'
    message += b"".join(blake3(data[at : at + size], key=key).digest() for at in range(0, len(data), size))
    assert keyed_digest("02" * 32, ["a", 1], [array]) == blake3(message, key=key).hexdigest()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_can_hash() -> None:
    array = np.zeros(600_000)
    digest = keyed_digest("02" * 32, [], [array])
    child = os.fork()
    if not child:
        signal.alarm(60)  # a process that waits for threads it does not have would wait forever
        os._exit(keyed_digest("02" * 32, [], [array]) != digest)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_digests_are_keyed_and_see_everything() -> None:
    seeds = "00" * 32, "01" * 32
    array = np.arange(300_000.0)  # so long that threads hash it
    changed = array.copy()
    changed[-1] += 1
    digests = {
        keyed_digest(seed, parts, arrays)
        for seed in seeds
        for parts in (["a"], ["b"])
        for arrays in ([], [array], [changed], [array.reshape(2, -1)], [array.astype(np.float32)], [array[:0]])
    }
    assert len(digests) == 24
    assert keyed_digest(seeds[0], ["a"], [array]) == keyed_digest(seeds[0], ["a"], [array.copy()])
