"""Sessions of the pages' visitors: a cookie stands for a token, which is presented only once.

The cookie is 256 random bits, stored as a hash beside the tokens, so that all workers know it. The token is looked up
again with every request: revoking it ends its sessions at once. The key that a form must carry is derived from the
cookie; other sites cannot read the cookie, so they cannot make the key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from afresh.errors import Forbidden, NotAllowed
from afresh.server.tokens import Caller

if TYPE_CHECKING:
    from afresh.server.house import House

COOKIE = "afresh_session"
HOURS = 12
"""How long a session lasts."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who has signed in."""

    caller: Caller
    form_key: str
    """What every form of this visitor must carry."""


def new_cookie() -> str:
    """A new cookie that nobody has."""
    return secrets.token_urlsafe(32)


def form_key(cookie: str) -> str:
    """What the forms of this cookie's holder must carry."""
    return hmac.new(cookie.encode(errors="replace"), b"afresh form", hashlib.sha256).hexdigest()


def check_form(cookie: str, given: str | None) -> None:
    """Refuse a form that does not come from one of our pages."""
    if not cookie or not hmac.compare_digest(form_key(cookie).encode(), (given or "").encode(errors="replace")):
        raise Forbidden("this form did not come from a page of this service, or it is too old; reload the page.")


class Sessions:
    """The sessions of a service."""

    def __init__(self, house: House) -> None:
        """Keep sessions in the store that all workers share."""
        self._store, self._tokens = house.store, house.tokens

    def start(self, caller: Caller, old: str) -> tuple[str, int]:
        """Return a cookie for a person whose token was valid, and its lifetime in seconds; the old session ends."""
        now, cookie = time.time(), new_cookie()
        self.end(old)
        ends = min(now + HOURS * 3600, caller.expires or float("inf"))
        self._store.run("DELETE FROM afresh_sessions WHERE expires <= ?", (int(now),))
        self._store.run(
            "INSERT INTO afresh_sessions (hash, caller, expires) VALUES (?, ?, ?)",
            (_hash(cookie), json.dumps(asdict(caller)), int(ends)),
        )
        return cookie, max(int(ends - now), 0)

    def find(self, cookie: str) -> Visitor:
        """Find the visitor whom a cookie stands for, or raise `NotAllowed`."""
        rows = self._store.run("SELECT caller, expires FROM afresh_sessions WHERE hash = ?", (_hash(cookie),))
        if not cookie or not rows or time.time() >= rows[0][1]:
            raise NotAllowed("sign in first.")
        found = json.loads(rows[0][0])
        if found["id"] is not None:
            return Visitor(self._tokens.again(found["id"]), form_key(cookie))
        return Visitor(Caller(**{**found, "datasets": tuple(found["datasets"])}), form_key(cookie))

    def end(self, cookie: str) -> None:
        """Sign out."""
        self._store.run("DELETE FROM afresh_sessions WHERE hash = ?", (_hash(cookie),))


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode(errors="replace")).hexdigest()
