"""Losses against scikit-learn's, and what no row may make them say."""

import functools
import hashlib
import math
import os
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from afresh.errors import InvalidArgument
from afresh.losses import Absolute, Brier, Cost, Custom, Log, Loss, Pinball, Squared, ZeroOne, make_loss, settle
from afresh.losses.probes import probes
from afresh.models.labels import Labels, check_predictions, encode
from afresh.models.vectors import VectorQuery, keyed_digest

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
    checked = check_predictions(predictions, loss.kind, labels)
    query = VectorQuery("", "", lambda rows: loss.rows(checked, labels, rows), 2 if loss.binary else None)
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


def test_losses_have_the_names_and_the_order_of_scikit_learn() -> None:
    for name, loss in {"accuracy": ZeroOne(), "log_loss": Log(), "neg_brier_score": Brier()}.items():
        assert make_loss(name) == loss
    short = Custom(lambda y_true, y_pred: np.where(y_pred < y_true, 1.0, 0.0), "too low")
    assert mean(short, NUMBERS - 1, NUMBERS) == 1
    assert mean(short, NUMBERS + 1, NUMBERS) == 0
    assert Custom(metrics.accuracy_score, "any metric").function is metrics.accuracy_score


def test_custom_losses_are_total() -> None:
    def strange(labels: Any, predictions: Any) -> Any:
        return np.where(labels > 2, np.nan, np.where(labels < -2, 7.0, np.abs(predictions) / 10))

    def fragile(labels: Any, predictions: Any) -> Any:
        if (labels > 3).any():
            raise ValueError(f"secret {labels.max()}")
        return np.full(len(labels), 0.25)

    small, truth = np.zeros(500), NUMBERS[:500]
    assert mean(Custom(strange, "strange"), small, truth) == pytest.approx(np.mean(np.abs(truth) > 2))
    assert mean(Custom(fragile, "fragile"), small, truth) == pytest.approx(np.where(truth > 3, 1, 0.25).mean())
    asymmetric = Custom(lambda y, p: (p != y) * np.where(y == "ant", 1.0, 0.5), "ants matter", kind="classes")
    assert mean(asymmetric, GUESS, TRUTH) == pytest.approx(np.mean((GUESS != TRUTH) * np.where(TRUTH == "ant", 1, 0.5)))
    with pytest.raises(InvalidArgument, match="one number for each"):
        settle(Custom(lambda y, p: 0.5, "scalar"), Labels(truth))
    with pytest.raises(InvalidArgument, match=r"fails on all of 4,096 made-up .*ZeroDivisionError"):
        settle(Custom(lambda y, p: 1 / 0, "broken"), Labels(truth))


@pytest.mark.parametrize("kind", ["numbers", "probabilities", "classes"])
def test_custom_losses_may_write_into_what_they_are_handed(kind: Any) -> None:
    truth, given = np.array([0, 1, 1, 0]), np.array([0.0, 1.0, 0.0, 1.0])

    def greedy(labels: Any, predictions: Any) -> Any:
        labels -= predictions.astype(labels.dtype)
        predictions[:] = 0
        if len(labels) > 2:
            raise ValueError("ask for each row")
        return labels != 0

    labels, loss = Labels(truth, (0, 1)), Custom(greedy, "greedy", kind)
    for _ in range(2):
        checked = check_predictions(given, loss.kind, labels)
        assert loss.rows(checked, labels, slice(None)).tolist() == [0, 0, 1, 1]
    assert given.tolist() == [0, 1, 0, 1]
    assert labels.numbers.tolist() == labels.codes.tolist() == [0, 1, 1, 0]


def scale_by(scale: float, y: Any, p: Any) -> Any:
    return scale * np.abs(p - y)


class Held:
    """A loss as an object; what it works with may change under it."""

    limit = 1.0

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def __call__(self, y: Any, p: Any) -> Any:
        return np.abs(p - y) > self.limit


_LIMIT = 1.0
_TABLE = {"limit": 1.0}


def _helpers_helper() -> float:
    return _LIMIT


def _helper(x: Any) -> Any:
    return x > _helpers_helper()


def _beyond_limit(y: Any, p: Any) -> Any:
    return _helper(np.abs(p - y))


def _by_table(y: Any, p: Any) -> Any:
    return np.abs(p - y) > _TABLE["limit"]


def _by_default(y: Any, p: Any, limit: float = 1.0) -> Any:
    return np.abs(p - y) > limit


def _closed_over(limit: float) -> Any:
    cell = [limit]
    return lambda y, p: np.abs(p - y) > cell[0]


def _words(function: Any, **more: Any) -> str:
    return settle(Custom(function, "a loss", **more), Labels(NUMBERS[:9])).words


@pytest.mark.parametrize(
    ("function", "target", "name", "value"),
    [
        (_beyond_limit, "module", "_LIMIT", 2.0),
        (_beyond_limit, "module", "_helpers_helper", lambda: 2.0),
        (_beyond_limit, "module", "_helper", lambda x: x > 2),
        (Held(), Held, "limit", 2.0),
        (Held(), Held, "__call__", lambda self, y, p: np.abs(p - y) > 2),
        (Held().__call__, Held, "limit", 2.0),
        (functools.partial(scale_by, 0.5), "module", "scale_by", None),
        (_by_default, _by_default, "__defaults__", (2.0,)),
        (lambda y, p: scale_by(0.5, y, p), "module", "scale_by", lambda scale, y, p: np.abs(p - y) / 4),
    ],
)
def test_a_loss_that_changes_is_another(
    function: Any, target: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it was changed: a loss taken for the one before would get that one's answers."""
    before = _words(function)
    assert before == _words(function)
    if value is None:  # what was bound earlier did not change, nor did the loss
        monkeypatch.setitem(globals(), name, None)
        assert _words(function) == before
        return
    if target == "module":
        monkeypatch.setitem(globals(), name, value)
    else:
        monkeypatch.setattr(target, name, value)
    assert _words(function) != before


def test_a_loss_is_known_by_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by how: neither an address nor a way of writing makes another loss of it."""
    assert len({_words(make(1.0)) for make in (_closed_over, _closed_over, lambda _: _by_default)}) == 1
    assert len({_words(_closed_over(limit)) for limit in (0.5, 0.9, 1.0, 1.1, 2, 3, 100)}) == 7
    before = _words(_by_table)
    monkeypatch.setitem(_TABLE, "limit", 2.0)
    assert _words(_by_table) != before
    assert _words(_by_default) != _words(_by_default, version=2) != _words(_by_default, version="2b")
    far = {_words(lambda y, p, top=top: np.abs(p - y) > top) for top in (1e40, 1e50)}
    assert len(far) == 1  # no made-up row is so far off: this is what a version is for


@pytest.mark.parametrize("count", [2, 3, 64, 65])
def test_every_pair_of_declared_classes_tells(count: int) -> None:
    classes = tuple(f"class {i}" for i in range(count))
    labels = Labels(np.array(classes[:1] * 4), classes)
    rng = np.random.default_rng(0)
    seen = set()
    for a, b in rng.integers(0, count, (20, 2)):

        def loss(y: Any, p: Any, a: Any = classes[a], b: Any = classes[b]) -> Any:
            return np.where((p == a) & (y == b), 0.25, 0.5)

        seen.add((a, b, settle(Custom(loss, "pair", "classes"), labels).words))
    pairs, words = {each[:2] for each in seen}, {each[2] for each in seen}
    assert len(words) == len(pairs) or count > 64


@pytest.mark.parametrize("count", [2, 3])
def test_losses_of_probabilities_are_told_apart(count: int) -> None:
    labels = Labels(np.arange(count), tuple(range(count)))
    words = set()
    for power in (1, 1.01, 2, 3):

        def loss(y: Any, p: Any, power: float = power) -> Any:
            chance = np.where(y == 1, p, 1 - p) if p.ndim == 1 else p[np.arange(len(p)), y]
            return (1 - chance) ** power

        words.add(settle(Custom(loss, "power", "probabilities"), labels).words)
    assert len(words) == 4


def test_a_mark_does_not_depend_on_last_bits() -> None:
    """Another processor's logarithm is off by an ulp or two; the words stay."""
    rng = np.random.default_rng(1)

    def loss(y: Any, p: Any) -> Any:
        found = np.log1p(np.abs(p - y)) / 20
        return found * (1 + rng.choice([-2, 0, 2], len(found)) * 2.0**-52)

    assert len({_words(loss) for _ in range(20)}) == 1


def test_the_made_up_rows_never_change() -> None:
    """A change would charge everybody's losses once more: raise the version of questions if it must be."""
    given, truth = probes("numbers", ())
    assert len(given) == 4096
    assert hashlib.sha256(given.tobytes() + truth.tobytes()).hexdigest()[:16] == "b56c5bc3cdd5b95a"


def test_a_loss_that_fails_on_some_rows_is_total() -> None:
    def picky(y: Any, p: Any) -> Any:
        if (y > 1).any():
            raise ValueError("too large")
        return np.zeros(len(y))

    assert _words(picky) == _words(lambda y, p: y > 1)
    assert _words(picky) != _words(lambda y, p: y > 2)


def test_labels_do_not_show_themselves() -> None:
    assert "7" not in repr(Labels(np.array([7, 8]), (8, 9)))


def test_missing_labels_have_the_largest_loss() -> None:
    numbers = np.array([1.0, np.nan, np.inf, 2.0])
    for loss in (Squared(clip=9), Absolute(clip=9), Pinball(clip=9), Custom(lambda y, p: p * 0, "none")):
        values = loss.rows(numbers[[0, 0, 0, 3]], Labels(numbers), slice(None))
        assert values.tolist() == [0, 1, 1, 0]
    names = np.array(["a", None, "b", "z"], dtype=object)
    labels = Labels(names, ("a", "b"))
    assert ZeroOne().rows(np.array([0, 0, 1, 1], np.int8), labels, slice(None)).tolist() == [False, True, False, True]
    chances = np.array([0.0, 0.0, 1.0, 1.0])
    assert Brier().rows(chances, labels, slice(None)).tolist() == [0, 1, 0, 1]
    assert Log().rows(chances, labels, slice(None)).tolist() == [0, 1, 0, 1]
    assert Cost(((0, 1), (2, 0))).rows(np.array([0, 0, 1, 1]), labels, slice(None)).tolist() == [0, 1, 0, 1]
    of_three = Labels(names, ("a", "b", "c"))
    certain = np.eye(3)[[0, 0, 1, 1]]
    for clip in (0.5, 5.0, 800.0):
        assert Log(clip=clip).rows(chances, labels, np.array([3, 1, 0])).tolist() == [1, 1, 0]
        assert Log(clip=clip).rows(certain, of_three, slice(None)).tolist() == [0, 1, 0, 1]
    assert Brier().rows(certain, of_three, slice(None)).tolist() == [0, 1, 0, 1]
    masked = np.ma.MaskedArray([0, 1, 0], mask=[False, True, False])
    assert Labels(masked).codes.tolist() == [0, -1, 0]
    assert Labels(masked, (0, 1)).codes.tolist() == [0, -1, 0]


@pytest.mark.parametrize(
    ("kind", "predictions", "said"),
    [
        ("classes", ["ant"] * 3, "4 rows and 3 predictions"),
        ("classes", "ant", "str are not an array"),
        ("classes", ["ant", "bee", "dog", "ant"], "row 2 is 'dog'"),
        ("classes", [0, 1, 2, 3], "not one of the classes 'ant', 'bee', 'cow'"),
        ("classes", ["ant", None, "bee", "ant"], "row 1 is None"),
        ("classes", [["ant", "bee"]] * 4, "one class per row"),
        ("numbers", [1, 2, np.nan, 4], "row 2 is nan"),
        ("numbers", [1, 2, np.inf, 4], "finite"),
        ("numbers", [1, -np.inf, np.inf, 4], "row 1 is -inf"),
        ("probabilities", [[0.2, 0.3, 0.5]] * 3 + [[0.5, np.nan, 0.5]], "row 3 is"),
        ("numbers", ["a", "b", "c", "d"], "not numbers"),
        ("numbers", np.ones((4, 2)), "one number per row"),
        ("probabilities", np.ones((4, 2)) / 2, "one probability per class"),
        ("probabilities", np.ones((4, 3)), "add up to 3"),
        ("probabilities", np.array([[1.5, -0.5, 0]] * 4), "not a probability"),
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
        (lambda: make_loss(lambda y, p: p), "Custom"),
        (lambda: Squared(clip=0), "clip == 0"),
        (lambda: Squared(clip=5e-324), "clip == 5e-324"),
        (lambda: Log(clip=float("inf")), "positive"),
        (lambda: Pinball(clip=1, quantile=1.0), "between 0 and 1"),
        (lambda: Cost(((1, 2, 3), (1, 2, 3))), "square"),
        (lambda: Pinball(clip=1, quantile="high"), "between 0 and 1"),  # type: ignore[arg-type]
        (lambda: Cost(((1, 1), (1, 1))), "at least two different values"),
        (lambda: Cost("ab"), "square"),  # type: ignore[arg-type]
        (lambda: Cost([[0, 1], [1]]), "square"),  # type: ignore[arg-type]
        (lambda: Cost(((-1e308, 1e308), (0, 1))), "other units"),
        (lambda: Pinball(clip=1e100, quantile=1e-300), "too close to 0"),
        (lambda: Pinball(clip=1e308, quantile=1 - 1e-16), "too close to 0"),
        (lambda: settle(Cost(((0, 1), (1, 0))), Labels(TRUTH)), "3 classes but 2 rows of costs"),
        (lambda: Custom(3, "x"), "callable"),  # type: ignore[arg-type]
        (lambda: Custom(max, " "), "text"),
        (lambda: Custom(lambda p, y: p, "x"), r"takes \(p, y\), but a loss is called with labels first"),
        (lambda: Custom(lambda y_pred, y_true: y_pred, "x"), r"\(y_true, y_pred\), like scikit-learn"),
        (lambda: Custom(lambda predictions, labels: labels, "x"), "labels first"),
        (lambda: make_loss("mse"), r"loss == 'mse', must be .*write afresh\.losses\.Squared\(clip=100\)"),
        (lambda: make_loss("neg_mean_absolute_error"), r"Absolute\(clip=100\)"),
        (lambda: make_loss("roc_auc"), r"holdout\.measure\(afresh\.statistics\.AUC\(\), model\)"),
        (lambda: make_loss("f1_score"), r"afresh\.statistics\.F1\(\)"),
        (lambda: make_loss("zero-ones"), r"'brier' \(did you mean 'zero-one'\?\), or"),
        (lambda: make_loss("acuracy"), "did you mean 'accuracy'"),
        (lambda: make_loss("mean_sqared_error"), "did you mean 'mean_squared_error'"),
        (lambda: make_loss("r2"), r"Squared\(clip=100\)"),
        (lambda: Custom(max, "x", version=""), "version == ''"),
        (lambda: Custom(max, "x", version=1.5), "version == 1.5"),  # type: ignore[arg-type]
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


@pytest.mark.parametrize("clip", [1e-300, 1e-17, 0.5, 5.0, 1e300])
def test_log_losses_of_certain_and_impossible_classes_are_exact(clip: float) -> None:
    """0 for a certain class, without a sign, and `clip` for an impossible one, without a warning at any setting."""
    with np.errstate(all="raise"):
        certain, impossible = (mean(Log(clip=clip), np.full(2, p), np.array([True, True])) for p in (1.0, 0.0))
    assert math.copysign(1.0, certain) == 1.0
    assert (certain, impossible) == (0.0, clip)


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
@pytest.mark.parametrize("label", [0, 1, 7, math.nan])
def test_no_label_makes_numpy_complain(loss: Loss, label: int) -> None:
    """A warning is an error here, as in a process that asked numpy for errors: it would depend on labels."""
    labels, given = Labels(np.full(4, label), (0, 1)), np.array([0.0, 1.0, 1e-200, 1 - 1e-16])
    query = VectorQuery("", "", lambda rows: loss.rows(check_predictions(given, loss.kind, labels), labels, rows))
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


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, -5e-324, -0.5, np.nextafter(1, 2), 2.0])
def test_every_probability_is_looked_at(bad: float) -> None:
    for place in (0, 1, 262_143, 262_144, N - 1):
        for chances in (np.full(N, 0.5), np.full((N, 2), 0.5)):
            chances[place] = bad
            said = "not a probability" if np.isfinite(bad) else f"the prediction of row {place} is"
            with pytest.raises(InvalidArgument, match=said):
                check_predictions(chances, "probabilities", Labels(np.zeros(N), (0, 1)))


def test_the_largest_and_smallest_probabilities_are_probabilities() -> None:
    given = np.array([0.0, 5e-324, 0.5, np.nextafter(1, 0), 1.0])
    for each in (given, np.stack([1 - given, given], axis=1)):
        assert (check_predictions(each, "probabilities", Labels(np.zeros(5), (0, 1))) == given).all()


def test_zero_has_no_sign() -> None:
    for kind in ("numbers", "probabilities"):
        given = np.array([-0.0, 1.0, 0.5])
        checked = check_predictions(given, kind, Labels(np.array([0, 1, 1])))
        assert not np.signbit(checked).any()
        assert np.signbit(given[0])


def test_every_row_is_summed_once() -> None:
    values = RNG.random(N)
    rows = RNG.permutation(N)
    for chosen in (None, rows, rows[:300_000], rows[:10]):
        one = VectorQuery("", "", values.__getitem__).moments(N, chosen)
        seen = values if chosen is None else values[chosen]
        assert one.n == len(seen)
        assert one.total == pytest.approx(math.fsum(seen), rel=1e-14)
        assert one.squares == pytest.approx(math.fsum(seen**2), rel=1e-13)


def test_digests_are_those_of_plain_hashes() -> None:
    """Put together by hand, in one thread."""
    array = np.random.default_rng(0).normal(size=(600_000, 1))
    key = blake3(bytes.fromhex("02" * 32), derive_key_context="afresh-vector-v1: names of questions").digest()
    data, size = array.tobytes(), 2 * 1024 * 1024
    message = b'["afresh-vector-v1", "a", 1]\n<f8 (600000, 1)\n'
    message += b"".join(blake3(data[at : at + size], key=key).digest() for at in range(0, len(data), size))
    assert keyed_digest("02" * 32, ["a", 1], [array]) == blake3(message, key=key).hexdigest()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_can_hash() -> None:
    array = np.zeros(600_000)
    digest = keyed_digest("02" * 32, [], [array])
    child = os.fork()
    if not child:
        os._exit(0 if keyed_digest("02" * 32, [], [array]) == digest else 1)
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
