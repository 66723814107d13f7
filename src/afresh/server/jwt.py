"""Tokens of an identity provider: signed JWTs, checked with its published keys."""

from __future__ import annotations

from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument, MissingExtra, NotAllowed
from afresh.server.config import Jwt
from afresh.server.keys import Keys
from afresh.server.tokens import ROLES, Caller

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class Provider:
    """Checks JWTs. Only public-key signatures are accepted: a shared secret could be guessed."""

    def __init__(self, settings: Jwt) -> None:
        """Use the keys in a file or at an address."""
        try:
            import jwt
        except ImportError:
            raise MissingExtra("PyJWT and cryptography", "server") from None

        self._jwt: Any = jwt
        self._settings, self._keys = settings, Keys(settings.keys, self._parsed)

    def find(self, token: str) -> Caller:
        """Find the caller who presents a token, or raise `NotAllowed`."""
        try:
            header = self._jwt.get_unverified_header(token)
            told = self._jwt.decode(
                token,
                self._keys.find(header.get("kid")).key,
                algorithms=[each for each in _ALGORITHMS if each == header.get("alg")],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={"require": ["exp", "sub"]},
            )
        except (self._jwt.PyJWTError, KeyError, AttributeError, TypeError, ValueError):
            raise NotAllowed("the identity provider's token is not valid here, or has expired.") from None
        role, datasets = told.get(self._settings.role), told.get(self._settings.datasets, [])
        if role not in ROLES or not isinstance(datasets, list) or not all(isinstance(each, str) for each in datasets):
            raise NotAllowed(
                f"the identity provider names no role of this service in the claim {self._settings.role!r}; it must be "
                f"one of {', '.join(ROLES)}."
            )
        try:
            name = checks.analyst(told["sub"], "sub")
        except InvalidArgument as error:
            raise NotAllowed(f"the identity provider's token names nobody: {error}") from None
        return Caller(name, role, tuple(datasets), expires=float(told["exp"]))

    def _parsed(self, document: Any) -> dict[str | None, Any]:
        """Keys by their ids; raises `ValueError` if this is not a key set."""
        try:
            return {each.key_id: each for each in self._jwt.PyJWKSet.from_dict(document).keys}
        except (self._jwt.PyJWTError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("no key set") from error
