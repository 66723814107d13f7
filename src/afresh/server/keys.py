"""The published keys of an identity provider (JWKS): from a file, or from an address, where they may change."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from afresh.errors import InvalidArgument, Unreachable
from afresh.wire.addresses import on_this_machine

FRESH = 300.0
"""How many seconds keys from an address are kept."""
AGAIN = 10.0
"""How many seconds pass before an unknown key makes the service fetch the keys again, or a failure is retried."""
_LARGEST = 1_000_000  # the most bytes in a key set
_PATIENCE = 5.0  # seconds


class Keys:
    """Keys by their ids. Safe to use from several threads: one fetches while the others continue with the old keys."""

    def __init__(self, place: str, parse: Any) -> None:
        """Read a file now; an address is fetched when a key is needed. `parse` turns a document into keys by id."""
        self._place, self._parse, self._fetching = place, parse, threading.Lock()
        self._remote = "://" in place
        self._keys: dict[str | None, Any] = {}
        self._fresh_until = self._next = 0.0
        if not self._remote:
            try:
                self._keys = parse(json.loads(Path(place).read_text(encoding="utf-8")))
            except (OSError, ValueError):
                raise InvalidArgument(f"jwt.keys == {place!r}, must be a file with a JSON Web Key Set.") from None

    def find(self, id: str | None) -> Any:
        """Find the key with an id, or the only key if no id is given; raises `KeyError` if there is none."""
        if self._remote and (time.monotonic() > self._fresh_until or id not in self._keys):
            self._renew()
        return self._keys[id] if id is not None or len(self._keys) != 1 else next(iter(self._keys.values()))

    def _renew(self) -> None:
        """Fetch, unless a fetch was tried just now or is under way: presenting unknown ids cannot keep it busy."""
        if not self._fetching.acquire(blocking=not self._keys):
            return
        try:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + AGAIN
            self._keys = self._parse(json.loads(self._fetched()))
            self._fresh_until = time.monotonic() + FRESH
        except (OSError, ValueError):
            if not self._keys:
                raise Unreachable(
                    "the identity provider's keys cannot be fetched right now; ask again later. Nothing was charged."
                ) from None
        finally:
            self._fetching.release()

    def _fetched(self) -> bytes:
        import httpx

        try:
            with (
                httpx.Client(timeout=_PATIENCE, follow_redirects=False, trust_env=False) as client,
                client.stream("GET", self._place) as answer,
            ):
                answer.raise_for_status()
                began, found = time.monotonic(), b""
                for part in answer.iter_bytes():
                    found += part
                    if len(found) > _LARGEST or time.monotonic() - began > _PATIENCE:
                        raise ValueError("the key set is too large, or too slow to load")
                return found
        except httpx.HTTPError as error:
            raise OSError("the keys cannot be fetched") from error


def check_keys(place: str) -> str:
    """An address that keys may come from: over https, or on this machine."""
    parts = urlsplit(place)
    if parts.scheme == "https" and parts.hostname and not parts.username:
        return place
    if parts.scheme == "http" and on_this_machine(parts.hostname) and not parts.username:
        return place
    raise InvalidArgument(f"{place!r} must be a file, or an address such as https://id.example/keys.json.")
