"""Tokens of an identity provider: signed JWTs, checked with its published keys."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from afresh.errors import InvalidArgument, MissingExtra, NotAllowed
from afresh.server.config import Jwt
from afresh.server.tokens import ROLES, Caller

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_FRESH = 300.0  # seconds that keys from an address are kept


class Provider:
    """Checks JWTs. Only signatures with a public key are taken: a shared secret could be guessed."""

    def __init__(self, settings: Jwt) -> None:
        """Read the keys from a file now; from an address, when they are needed."""
        try:
            import jwt
        except ImportError:
            raise MissingExtra("PyJWT and cryptography", "server") from None

        self._jwt: Any = jwt
        self._settings, self._lock = settings, threading.Lock()
        self._keys: dict[str | None, Any] = {}
        self._read = 0.0
        if not settings.keys.startswith("https://"):
            try:
                self._keys = self._parsed(Path(settings.keys).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise InvalidArgument(
                    f"jwt.keys == {settings.keys!r}, must be a file with a JSON Web Key Set."
                ) from None

    def find(self, token: str) -> Caller:
        """Who presents a token, or `NotAllowed`."""
        try:
            header = self._jwt.get_unverified_header(token)
            key = self._key(header.get("kid"))
            told = self._jwt.decode(
                token,
                key.key,
                algorithms=[each for each in _ALGORITHMS if each == header.get("alg")],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={"require": ["exp", "sub"]},
            )
        except (self._jwt.PyJWTError, KeyError, AttributeError, TypeError, ValueError):
            raise NotAllowed("the token of the identity provider is not valid here, or has expired.") from None
        role, datasets = told.get(self._settings.role), told.get(self._settings.datasets, [])
        if role not in ROLES or not isinstance(datasets, list) or not all(isinstance(each, str) for each in datasets):
            raise NotAllowed(
                f"the identity provider says no role of this service in the claim {self._settings.role!r}; it must be "
                f"one of {', '.join(ROLES)}."
            )
        return Caller(str(told["sub"]), role, tuple(datasets), expires=float(told["exp"]))

    def _key(self, id: str | None) -> Any:
        with self._lock:
            old = self._settings.keys.startswith("https://") and time.monotonic() - self._read > _FRESH
            if old or (id not in self._keys and self._settings.keys.startswith("https://") and not self._read):
                import httpx

                try:
                    found = httpx.get(self._settings.keys, timeout=10, follow_redirects=False).raise_for_status()
                except httpx.HTTPError as error:
                    raise ValueError("the keys cannot be had") from error
                self._keys, self._read = self._parsed(found.text), time.monotonic()
            return self._keys[id] if id is not None or len(self._keys) != 1 else next(iter(self._keys.values()))

    def _parsed(self, text: str) -> dict[str | None, Any]:
        document = json.loads(text)
        try:
            return {each.key_id: each for each in self._jwt.PyJWKSet.from_dict(document).keys}
        except (self._jwt.PyJWTError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("no key set") from error
