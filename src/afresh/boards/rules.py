"""What a board reveals, when, and how often an entrant may enter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from afresh import checks

Reveal = Literal["at once", "rounds", "improvements"]
RULES = ("reveal", "against", "limit", "per", "every")
AGAINST = 3
_UNITS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a board."""

    reveal: Reveal = "at once"
    against: int = AGAINST
    """The most entries a new one is compared with."""
    limit: int | None = None
    """The most entries an entrant may submit, in total or in every `per`."""
    per: timedelta | None = None
    every: timedelta | None = None
    """With rounds, the length of one; None: until someone reveals it."""

    @property
    def words(self) -> str:
        """In a sentence."""
        said = {
            "at once": f"Every entry is scored at once and compared with at most {self.against:,} others.",
            "rounds": "Entries are sealed until their round is revealed, each round on fresh rows.",
            "improvements": "Only improvements are revealed: an entry is accepted if it certainly beats the last.",
        }[self.reveal]
        if self.every is not None:
            said += f" A round lasts {in_words(self.every)}."
        if self.limit is not None:
            often = "" if self.per is None else f" in {in_words(self.per)}"
            said += f" An entrant may submit {self.limit:,}{often}."
        return said

    def next_time(self, times: list[datetime]) -> datetime | None:
        """When someone who entered at these times may enter again; None: now, or never if no `per` is given."""
        if self.limit is None or len(times) < self.limit or self.per is None:
            return None
        return sorted(times)[-self.limit] + self.per


def check_rules(
    reveal: Any = "at once", against: Any = AGAINST, limit: Any = None, per: Any = None, every: Any = None
) -> Rules:
    """The rules given by these arguments, or an error that names the wrong one."""
    found: Any = checks.one_of("reveal", reveal, get_args(Reveal))
    most = checks.whole("against", against, 0, 1000)
    often = None if limit is None else checks.whole("limit", limit, 1)
    if per is not None and limit is None:
        raise checks.wrong("per", per, "left out where there is no limit")
    if every is not None and found != "rounds":
        raise checks.wrong("every", every, 'left out unless reveal is "rounds"')
    return Rules(found, most, often, duration("per", per), duration("every", every))


def duration(name: str, value: Any) -> timedelta | None:
    """A length of time: a timedelta, or words such as "7 days"."""
    must_be = 'a timedelta, or words such as "7 days", "12 hours" or "1 week"'
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d{1,6})\s*(minute|hour|day|week)s?\s*", value)
        if found is None:
            raise checks.wrong(name, value, must_be)
        value = timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    if not isinstance(value, timedelta) or value <= timedelta(0):
        raise checks.wrong(name, value, must_be)
    return value


def in_words(length: timedelta) -> str:
    """7 days, 12 hours."""
    seconds = round(length.total_seconds())
    for unit in ("week", "day", "hour", "minute"):
        if seconds % _UNITS[unit] == 0:
            count = seconds // _UNITS[unit]
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:,} seconds"
