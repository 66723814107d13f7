"""Decides which questions make up a mean within a group: one, two suited to the group, or two halves (12, 14, 15)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.mechanisms.base import AimsInGroups, ClaimsInGroups, at_levels
from afresh.queries.group import GroupFirst, GroupMean, GroupSecond

if TYPE_CHECKING:
    from afresh.mechanisms.base import Mechanism
    from afresh.queries.asked import Asked


def arranged(asked: Asked, mechanism: Mechanism, public: bool, *, exam: bool) -> Asked:
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
