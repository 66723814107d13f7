"""`afresh.holdout`: combines features, labels and a guard into a holdout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.errors import DataChanged, DataError, InvalidArgument
from afresh.guard.guard import Guard
from afresh.models.holdout import Holdout, Recipe
from afresh.models.labelled import LabelledRows, stacked
from afresh.wire.addresses import is_address, refuse_plan

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.scope import Features
    from afresh.ledger import Ledger
    from afresh.losses import Loss
    from afresh.queries.tree import Type


def holdout(
    data: Any,
    y: Any = None,
    *,
    label: str = "label",
    loss: Any = "zero-one",
    classes: Sequence[Any] | None = None,
    features: Features = "public",
    questions: int | EllipsisType | None = ...,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    method: str | None = None,
    answers: int | None = None,
    rounds: int | None = None,
    typical: float | Sequence[float] | None = None,
    disagreement: float | None = None,
    open: float | tuple[Any, Any] | None = None,
    exam: float | None = None,
    promise: bool = False,
    deviation: float | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    allow_wide: bool = False,
    new_rows: str | None = None,
    simulation_seed: int | None = None,
    made_up: bool = False,
) -> Holdout:
    """Put a guard in front of a holdout: features and labels (`X, y`), data with a `label` column, or a guard.

    Plan, ledger and budget are the guard's: `holdout.guard.ask("label = 1 AND x0 > 3")` spends from the same budget as
    a score.

    A process cannot hide anything from the code it runs: a model's `predict` can find the labels in the frames of its
    callers, or switch off the noise. Accept predictions from strangers, never model objects; see docs/models.md.

    Args:
        data: X, an array with one row per case (columns are named x0, x1, ...) or a frame; or anything `afresh.open`
            takes, with a column of labels; or a guard.
        y: The labels of X.
        label: The column of labels.
        loss: The loss that scores average; see `afresh.losses`.
        classes: The classes; by default the different labels, which makes them public: leave it
            out only if they are not secret.
        features: Who knows the rows' features. "public": the analyst may. Every answer is then about *these rows'
            features*, whatever predictions are made from them: the mean loss if the labels of these rows were drawn
            anew. It says nothing about new rows, and a question that does not read the label is refused. "hidden":
            only the guard does. You hand in models, which run here; predictions are not accepted, every new model is
            charged even if it predicts what another does; no error mentions a row. Answers are about the population.
        questions: As in `afresh.open`, like everything below.
        confidence: As in `afresh.open`.
        ledger: As in `afresh.open`.
        method: As in `afresh.open`.
        answers: As in `afresh.open`.
        rounds: As in `afresh.open`.
        typical: As in `afresh.open`.
        disagreement: With public features: the share of rows on which compared models will disagree. A comparison
            then costs one answer instead of two, and the less two models disagree, the narrower it is.
        open: As in `afresh.open`; `Holdout.open_rows` gives features and labels of these rows. Or your own development
            data, (X_dev, y_dev): answers are guessed from those, and all rows here confirm.
        exam: As in `afresh.open`; `Holdout.exam` scores and compares the final models.
        promise: As in `afresh.open`.
        deviation: As in `afresh.open`, for losses that are numbers.
        analyst: As in `afresh.open`.
        must_exist: As in `afresh.open`.
        allow_wide: As in `afresh.open`.
        new_rows: As in `afresh.open`.
        simulation_seed: As in `afresh.open`.
        made_up: As in `afresh.open`.

    Returns:
        A holdout. It is a context manager; closing it loses nothing.

    Raises:
        InvalidArgument: An argument is wrong, or the loss does not suit the labels; no plan was fixed.
        DataError: The data cannot be read, or its rows have no order.
        PlanMismatch: Another plan is in force for these rows.
    """
    from afresh.engines.embedded.rowwise import read_no_rows
    from afresh.guard.open import check_made_up, check_opening, open_desk, opened_engine
    from afresh.losses import make_loss
    from afresh.models.labels import Labels, check_classes

    checks.text("label", label, "the name of a column")
    if not isinstance(features, str) or features not in ("public", "hidden"):
        raise checks.wrong("features", features, "'public' or 'hidden'; the table itself comes first")
    if disagreement is not None and features == "hidden":
        raise InvalidArgument(
            "the features are hidden, so the disagreement of models cannot be seen in advance; leave out disagreement=."
        )
    made, declared = make_loss(loss), check_classes(classes)
    own = _own(open, label)
    opening = {
        "questions": questions,
        "confidence": confidence,
        "method": method,
        "answers": answers,
        "rounds": rounds,
        "typical": typical,
        "disagreement": disagreement,
        "open": open if own is None else None,
        "development": None if own is None else own[1].num_rows,
        "exam": exam,
        "promise": promise,
        "deviation": deviation,
        "analyst": analyst,
        "must_exist": must_exist,
        "allow_wide": allow_wide,
        "new_rows": new_rows,
        "simulation_seed": simulation_seed,
        "made_up": made_up,
    }
    if is_address(data):
        from afresh.client.connect import hold_address

        planned = (y, ledger, *opening.values())
        plain = all(value is None or value is False or value is ... for value in planned)
        refuse_plan(not plain or (label, loss, classes, features) != ("label", "zero-one", None, "public"))
        return hold_address(data)
    if isinstance(data, Guard):
        said = [value for name, value in opening.items() if name != "questions"]
        if (
            y is not None
            or ledger is not None
            or questions is not ...
            or any(value is not None and value is not False for value in said)
        ):
            raise InvalidArgument("a guard already has its labels in a column, and its plan; give label= only.")
        return _hold(data, label, declared, made, features)
    if y is not None and isinstance(data, str | os.PathLike):
        raise InvalidArgument("the labels of a file are in a column; leave out y and name the column with label=.")
    if y is None and isinstance(data, np.ndarray | list | tuple):
        raise InvalidArgument(f"data of type {type(data).__name__} has no columns; pass the labels too: holdout(X, y).")
    if isinstance(y, str):
        raise checks.wrong("y", y, f"the labels, one per row; to name a column, use label={checks.shown(y)}")
    if y is not None and hasattr(type(data), "columns"):  # it is a table in memory from here on
        check_made_up(data, simulation_seed, made_up)
    given, table = (None, data) if y is None else (data, _with_label(data, y, label))

    wanted = check_opening(table, ledger=ledger, **opening)  # type: ignore[arg-type]
    with opened_engine(table, opening=wanted) as engine:
        # A wrong label, or a loss that does not suit it, is reported before a ledger fixes a plan for the data.
        Labels(read_no_rows(engine, _column(label, engine.schema)), declared).suit(made.kind)
        with _beside(own, engine.schema) as development:
            if development is not None and _same(development, engine):
                raise InvalidArgument(
                    "the development rows are the guarded rows themselves, so nothing would be checked; give "
                    "other rows, or open some of these with open=0.5."
                )
            if development is not None and features == "public":
                _check_apart(development, engine, label)
            guard = Guard(open_desk(engine, wanted, development), wanted.analyst)
    try:
        recipe = None
        if (place := _place(ledger)) and simulation_seed is None:
            told = {"label": label, "loss": made, "classes": declared, "features": features, "analyst": guard.analyst}
            # Another process may be in another directory.
            found = os.path.abspath(os.path.expanduser(data)) if isinstance(data, str | os.PathLike) else data
            brought = {} if own is None else {"open": own[0]}
            recipe = Recipe(reopen, {"data": found, "y": y, "ledger": place, **told, **brought})
        return _hold(guard, label, declared, made, features, given, recipe, None if own is None else own[0])
    except BaseException:
        guard.close()
        raise


def _hold(
    guard: Guard,
    label: str,
    declared: tuple[Any, ...] | None,
    loss: Loss,
    features: Features,
    given: Any = None,
    recipe: Recipe | None = None,
    own: tuple[Any, Any] | None = None,
) -> Holdout:
    from afresh.engines.embedded.rowwise import order_of, read_column
    from afresh.guard.scope import Scope
    from afresh.models.hidden import is_table
    from afresh.models.labels import Labels

    desk = guard.desk
    engine, column = desk.engine, _column(label, desk.engine.schema)
    scope = Scope(features, column if features == "public" else None)
    desk.scope.joined(scope)  # refused before anything is read
    if features == "hidden" and not is_table(given):
        given = None  # a frame of pandas is read from the guard
    values = read_column(engine, column)
    if desk.development is not None:
        values = stacked(read_column(desk.development, column), values)
    labelled = LabelledRows(desk, column, Labels(values, declared), order_of(engine), features, given, own)
    labelled.settle(loss)
    desk.declare(scope)
    return Holdout(guard, labelled, loss, recipe)


def _own(given: Any, label: str) -> tuple[tuple[Any, Any], Any] | None:
    """The analyst's own development data, as passed and as a table; None if `open` is a share or nothing."""
    if not isinstance(given, tuple | list):
        return None
    if len(given) != 2:
        raise checks.wrong("open", f"{len(given)} things", "a share of the rows, such as 0.5, or (X_dev, y_dev)")
    features, y = given
    return (features, y), _with_label(features, y, label)


@contextmanager
def _beside(own: tuple[Any, Any] | None, schema: Mapping[str, Type | None]) -> Iterator[Engine | None]:
    """An engine over development data that has the same columns as the guarded data."""
    from afresh.guard.open import opened_engine

    if own is None:
        yield None
        return
    with opened_engine(own[1]) as engine:
        if dict(engine.schema) != dict(schema):
            mine, theirs = (", ".join(f"{n} ({t})" for n, t in s.items()) for s in (engine.schema, schema))
            raise InvalidArgument(f"the development data has the columns {mine}, but the guarded data has {theirs}.")
        yield engine


def _same(development: Engine, guarded: Engine) -> bool:
    """Whether two engines have the same rows."""
    if development.rows != guarded.rows:
        return False  # a scan less: the ledger will want the identity by its own key
    return development.identity().fingerprint == guarded.identity().fingerprint


def _check_apart(development: Engine, guarded: Engine, label: str) -> None:
    """Refuse development data that shares rows with the guarded data, as far as public features show.

    Labels are left out, and hidden features are not read: a refusal based on them would reveal guarded rows.
    Where guarded rows have twins among themselves, other rows may well have the same features.
    """
    from afresh.engines.embedded.rowwise import hashes_of

    own = _column(label, guarded.schema)
    names = sorted(name for name, type in guarded.schema.items() if type is not None and name != own)
    if not names:
        return
    brought, (kept, counts) = hashes_of(development, names), np.unique(hashes_of(guarded, names), return_counts=True)
    shared, twins = int(np.isin(brought, kept).sum()), 1 - int((counts == 1).sum()) / int(counts.sum())
    if shared > (3 * twins * len(brought) + 10 if twins else 0):
        raise InvalidArgument(
            f"{shared:,} of the {len(brought):,} development rows have the features of guarded rows, which may not be "
            "known to the person they check; leave these rows out of the development data, or give "
            "open=0.5 to open a part of the guarded ones."
        )


def _column(label: str, schema: Mapping[str, Type | None]) -> str:
    """The column with this name in any case; data is known by the columns that questions can use."""
    names = {name.lower(): name for name, type in schema.items() if type is not None}
    if label.lower() not in names:
        listed = ", ".join(names.values())
        raise InvalidArgument(f"label == {label!r}, must be one of the columns {listed}, which questions can use.")
    return names[label.lower()]


_REOPENED: dict[tuple[str, ...], Holdout] = {}  # in another process, for as long as it lives


def reopen(arguments: dict[str, Any], fingerprint: str, order: str, loss: str) -> Holdout:
    """Reopen the holdout of another process, on the same ledger, with the plan in force."""
    told = (arguments[name] for name in ("ledger", "label", "classes", "features", "analyst"))
    key = (fingerprint, order, loss, *map(repr, told))
    if key not in _REOPENED or _REOPENED[key].guard.desk.closed:
        opened = holdout(**arguments, must_exist=True)
        if (opened.guard.desk.terms.data, opened.labelled.order) != (fingerprint, order):
            opened.close()
            raise DataChanged("the data changed in place after the holdout was opened; open it again.")
        _REOPENED[key] = opened
    return _REOPENED[key]


def _place(ledger: Any) -> str | None:
    """Where another process finds the ledger; None if it cannot."""
    from afresh.ledger import default_place, is_server

    if not isinstance(ledger, str | os.PathLike | None):
        return None
    place = default_place() if ledger is None else os.fspath(ledger)
    if place == ":memory:" or is_server(place):
        return None if place == ":memory:" else place
    return os.path.abspath(os.path.expanduser(place))


def _with_label(features: Any, y: Any, label: str) -> Any:
    """Features and labels as one Arrow table."""
    import pyarrow as pa  # on demand: `import afresh` stays fast

    from afresh.engines.embedded.sources import as_arrow

    if hasattr(features, "toarray"):
        raise DataError("sparse features cannot be opened; pass X.toarray().")
    if hasattr(type(features), "columns"):  # a frame of any kind
        table = as_arrow(features)
    else:
        array = _as_array(features)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError(
                f"features of shape {array.shape} and type {array.dtype} cannot be opened: pass a frame, "
                "or an array of numbers with one row per case."
            )
        table = pa.table({f"x{i}": np.asanyarray(array[:, i], order="C") for i in range(array.shape[1])})
    values = _as_array(y)
    if values.ndim != 1 or len(values) != table.num_rows:
        raise DataError(
            f"there are {table.num_rows:,} rows and labels of shape {values.shape}; there must be one label per row."
        )
    if label.lower() in (name.lower() for name in table.column_names):
        raise InvalidArgument(f"label == {label!r} is also a column of the features; give the labels another name.")
    try:
        return table.append_column(label, pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError):
        pass  # pyarrow's message would quote labels
    raise DataError("the labels mix values of several types; convert them to one type first.")


def _as_array(values: Any) -> Any:
    """Masked values stay masked: they are missing."""
    return values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
