"""Decides which questions make up a mean within a group: one, two suited to the group, or two halves (12, 14, 15).

Where features are public, an answer from dealt rows is about the features of these rows, so what is combined must be
answered by the same rows (21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import AimsInGroups, ClaimsInGroups, at_levels
from afresh.queries.group import GroupFirst, GroupMean, GroupSecond
from afresh.queries.renamed import together

if TYPE_CHECKING:
    from afresh.mechanisms.base import Mechanism
    from afresh.queries.asked import Asked


def arranged(asked: Sequence[Asked], mechanism: Mechanism, public: bool, *, exam: bool) -> list[Asked]:
    """Return questions as a desk asks them; those that are combined are asked together."""
    found = [_arranged(one, mechanism, public, exam=exam) for one in asked]
    if not public or exam:
        return found
    if mechanism.batch is not None:
        return _together(found)
    several = any(len(one.queries) > 1 or not one.own for one in found)
    if several and mechanism.spans(1, None) != mechanism.spans(2, None):
        raise InvalidArgument(
            "with public features every answer of this plan is about the features of its own rows, and this takes "
            'several answers, which cannot be combined; declare features="hidden". Nothing was charged.'
        )
    return found


def _together(asked: Sequence[Asked]) -> list[Asked]:
    """Return the same questions; those that make one number, or are parts of one statistic, are named after them all.

    So they are answered by one round, even if one of them was answered by an earlier one.
    """
    parts = iter(together([query for one in asked if not one.own for query in one.queries]))
    found = [(one, tuple(together(one.queries) if one.own else (next(parts) for _ in one.queries))) for one in asked]
    return [one if one.own and len(queries) == 1 else replace(one, queries=queries) for one, queries in found]


def _arranged(asked: Asked, mechanism: Mechanism, public: bool, *, exam: bool) -> Asked:
    """Return a question as a desk asks it: a mean within a group is one if the group's own rows answer or check it.

    Not if features are `public`: membership of the group is then not random, and the true value is a different one. For
    a number whose noise follows its deviation, the mean is two questions suited to the group.
    """
    if asked.rule != "within":
        return asked
    if not public and (exam or mechanism.exact_moments or _is_one_claim(asked, mechanism)):
        return replace(asked, queries=(GroupMean(asked.text, *asked.queries),), rule=None)
    if asked.where is None or exam or not (_of_numbers(asked) and isinstance(at_levels(mechanism, None), AimsInGroups)):
        return asked
    if not asked.own:  # part of a statistic, whose rules expect the two halves
        return asked
    first, second = (f"{which} of two answers about {asked.text}" for which in ("first", "second"))
    queries = GroupFirst(first, *asked.queries), GroupSecond(second, *asked.queries)
    return replace(asked, queries=queries, rule="group")


def _is_one_claim(asked: Asked, mechanism: Mechanism) -> bool:
    return isinstance(mechanism, ClaimsInGroups) and mechanism.groups and _of_numbers(asked)


def _of_numbers(asked: Asked) -> bool:
    return all(query.levels is None for query in asked.queries)
