"""Tokens: who may ask, in which role, about which datasets, until when, and for how many answers.

A token is 256 random bits. It is shown once and stored as a hash; every request looks it up, so revoking it takes
effect at once on all workers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from afresh import checks
from afresh.errors import NotAllowed, NotFound
from afresh.server.store import Store

ROLES = ("viewer", "analyst", "steward")
"""Each role may do everything that the roles before it may."""
ALL = "*"
_PREFIX = "afresh_"
_UNKNOWN = "the token is unknown here, has expired or was revoked; ask the steward for another."


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a token."""

    name: str
    role: str
    datasets: tuple[str, ...]
    cap: int | None = None
    id: str | None = None
    """The id of this service's token; None for an identity provider's token."""
    expires: float | None = None
    """When it expires; None if it is valid until it is revoked."""

    def may(self, role: str) -> bool:
        """Whether the caller has this role or a stronger one."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def sees(self, dataset: str) -> bool:
        """Whether a dataset exists for the caller."""
        return self.role == "steward" or ALL in self.datasets or dataset in self.datasets


class Tokens:
    """The tokens of a service."""

    def __init__(self, store: Store) -> None:
        """Keep tokens in a store that all workers share."""
        self._store = store

    def new(
        self,
        name: str,
        role: str = "analyst",
        datasets: Sequence[str] = (ALL,),
        days: float | None = None,
        cap: int | None = None,
    ) -> str:
        """Make a new token. This is the only time it is shown."""
        checks.analyst(name, "name")
        checks.one_of("role", role, ROLES)
        listed = [checks.text("datasets", each, "names of datasets, or *") for each in datasets]
        if days is not None:
            days = checks.number("days", days, "a number of days above 0", above=0, most=36500)
        if cap is not None:
            cap = checks.whole("cap", cap, 0)
        token = _PREFIX + secrets.token_urlsafe(32)
        now = time.time()
        expires = None if days is None else int(now + days * 86400)
        self._store.run(
            "INSERT INTO afresh_tokens (id, hash, name, role, datasets, expires, cap, made) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (secrets.token_hex(4), _hash(token), name, role, json.dumps(listed), expires, cap, int(now)),
        )
        return token

    def all(self) -> list[dict[str, Any]]:
        """All tokens, without their secrets, in order of creation."""
        rows = self._store.run(
            "SELECT id, name, role, datasets, expires, cap, spent, made, revoked FROM afresh_tokens ORDER BY made, id"
        )
        names = ("id", "name", "role", "datasets", "expires", "cap", "spent", "made", "revoked")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**each, "datasets": json.loads(each["datasets"])} for each in found]

    def valid(self) -> int:
        """How many are valid now."""
        now = time.time()
        return sum(each["revoked"] is None and (each["expires"] or now + 1) > now for each in self.all())

    def revoke(self, which: str) -> list[str]:
        """Revoke the token with this id, or all with this name; returns the ids that were valid until now."""
        found = [each["id"] for each in self.all() if which in (each["id"], each["name"]) and each["revoked"] is None]
        if not found:
            raise NotFound(f"there is no token with the id or name {checks.shown(which)} that could be revoked.")
        for id in found:
            self._store.run("UPDATE afresh_tokens SET revoked = ? WHERE id = ?", (int(time.time()), id))
        return found

    def find(self, token: str) -> Caller:
        """Find the caller who presents a token, or raise `NotAllowed`, the same error for every invalid token."""
        return self._good("hash", _hash(token))

    def again(self, id: str) -> Caller:
        """The caller who presented the token with this id before, if it is still valid."""
        return self._good("id", id)

    def _good(self, key: str, wanted: str) -> Caller:
        rows = self._store.run(
            f"SELECT id, {key}, name, role, datasets, expires, cap, revoked FROM afresh_tokens WHERE {key} = ?",
            (wanted,),
        )
        for id, found, name, role, datasets, expires, cap, revoked in rows:
            good = hmac.compare_digest(found, wanted)
            if good and revoked is None and (expires is None or time.time() < expires):
                return Caller(name, role, tuple(json.loads(datasets)), cap, id, expires)
        raise NotAllowed(_UNKNOWN)


def check_datasets(wanted: Sequence[str], there: Collection[str]) -> None:
    """Refuse a token for something that is not served: a typo would otherwise surface much later."""
    for name in wanted:
        if name != ALL:
            checks.one_of("datasets", name, there)


class Freezer:
    """Which datasets the steward has frozen."""

    def __init__(self, store: Store) -> None:
        """Keep what is frozen in a store that all workers share."""
        self._store = store

    def freeze(self, dataset: str, why: str) -> None:
        """Answer nothing new."""
        self._store.run(
            "INSERT INTO afresh_frozen (dataset, why) VALUES (?, ?) "
            "ON CONFLICT (dataset) DO UPDATE SET why = excluded.why",
            (dataset, why),
        )

    def thaw(self, dataset: str) -> None:
        """Answer again."""
        self._store.run("DELETE FROM afresh_frozen WHERE dataset = ?", (dataset,))

    def why(self, dataset: str) -> str | None:
        """Why it is frozen; None if it is not."""
        rows = self._store.run("SELECT why FROM afresh_frozen WHERE dataset = ?", (dataset,))
        return str(rows[0][0]) if rows else None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
