"""Per-item results as every reader returns them: an id, a score, and the trial of the item."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

from afresh import checks
from afresh.errors import DataError, InvalidArgument

MOST_TRIALS = 10_000


class Results(NamedTuple):
    """Scores by item. Several with one id are its trials, distinguished by `trials`; their mean counts."""

    ids: list[str]
    scores: list[float]
    """NaN if there is no number."""
    trials: list[object]
    key: str = ""
    """The digest of what was run, if whoever ran it has one: it identifies a candidate, whatever its scores are."""

    @staticmethod
    def of(rows: Iterable[tuple[object, object, object]]) -> Results:
        """Make results from triples of id, score and trial.

        Args:
            rows: One triple for every score.

        Returns:
            The results, ids as text.
        """
        found = Results([], [], [])
        for id, score, trial in rows:
            found.ids.append(id_text(id))
            found.scores.append(as_score(score))
            found.trials.append(trial)
        return found


def from_mapping(given: Mapping[Any, Any]) -> Results:
    """Make results from a mapping of ids to a score, or to the scores of several trials."""
    rows: list[tuple[object, object, object]] = []
    for id, score in given.items():
        several = None if isinstance(score, str | bytes | Mapping) else checks.iterated(score)
        if several is None:
            rows.append((id, score, 0))
            continue
        try:
            trials = list(itertools.islice(several, MOST_TRIALS + 1))
        except Exception:  # an object whose own code fails
            trials = []
        if not 0 < len(trials) <= MOST_TRIALS:
            raise InvalidArgument(f"the scores of item {checks.shown(id)} must be 1 to {MOST_TRIALS:,} numbers.")
        rows += [(id, each, trial) for trial, each in enumerate(trials)]
    return Results.of(rows)


def id_text(value: object) -> str:
    """An id as text: 7, 7.0 and "7" are one id, since a CSV file or a frame may turn one into another."""
    if isinstance(value, str):
        return checks.text("id", value, "the name of an item")
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(number := int(value)) < 10**30:
        return str(number)
    if isinstance(value, float) and math.isfinite(value) and value == math.floor(value):
        return str(int(value))
    raise checks.wrong("id", value, "a string or a whole number")


def are_scores(values: Iterable[object]) -> bool:
    """Whether at least half of these are scores, or missing, by their types.

    A candidate may have left words for some items. Where half of them are open, no guarded score decides this.
    """
    found = [each in (None, "") or isinstance(each, float) or not math.isnan(as_score(each)) for each in values]
    return bool(found) and 2 * sum(found) >= len(found)


def as_score(value: object) -> float:
    """A score, or NaN: true and false count as 1 and 0, and text as the number it spells."""
    if isinstance(value, str):
        said = value.strip().lower()
        if said in _WORDS:
            return _WORDS[said]
        try:
            return float(said)
        except ValueError:
            return math.nan
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy has one of its own
        return float(bool(value))
    try:
        return float(value) if isinstance(value, Real | Decimal) else math.nan
    except Exception:  # too large, or an object whose own code fails
        return math.nan


_WORDS = {"true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0, "passed": 1.0, "failed": 0.0}


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file; a name that cannot be one has none."""
    try:
        return os.path.isfile(path)
    except ValueError:  # a NUL, or a lone surrogate
        return False


def two_names(names: object) -> tuple[str, str]:
    """Two different names, or an error."""
    found = checks.listed("names", names, "two different names")
    if len(found) != 2:
        raise checks.wrong("names", names, "two different names")
    first, second = (checks.text("names", each, "two different names") for each in found)
    if first == second:
        raise checks.wrong("names", names, "two different names")
    return first, second


def shown_path(path: str | os.PathLike[str]) -> str:
    """The name of a file, for messages."""
    return os.path.basename(os.fspath(path))


def unreadable(path: str | os.PathLike[str], what: str, remedy: str) -> DataError:
    """The error to raise for a file; it quotes no score."""
    return DataError(f"{shown_path(path)} {what}; {remedy}.")


def choose(path: str | os.PathLike[str], what: str, choices: Iterable[str], wanted: str | None) -> str:
    """The named choice, or the only one.

    Args:
        path: The file that has them.
        what: The argument of `afresh.evaluations.read` that names it.
        choices: All choices.
        wanted: The given name, if any.

    Returns:
        One of the choices.

    Raises:
        DataError: There are none, or several and none was named.
    """
    found = list(dict.fromkeys(choices))
    if wanted is not None:
        if wanted in found:
            return wanted
        raise unreadable(path, f"has no {what} {checks.shown(wanted)}", f"it has {_listed(found)}")
    if len(found) == 1:
        return found[0]
    if not found:
        raise unreadable(path, f"has no {what}", "score the items first")
    first = checks.shown(found[0])
    raise unreadable(
        path,
        f"has several {what}s: {_listed(found)}",
        f"name one with afresh.evaluations.read(path, {what}={first})",
    )


def _listed(found: list[str]) -> str:
    return checks.shown(found) if found else "none"
