"""Requests to a service. They are repeated until one is answered: a question asked twice is free and identical."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from afresh.errors import InvalidArgument, MissingExtra, NotAllowed, ServiceError, Unreachable
from afresh.wire.addresses import is_address, on_this_machine
from afresh.wire.problems import from_problem

try:
    import httpx
except ImportError:
    raise MissingExtra("httpx", "client") from None

_TRIES = 5
_PAUSE = 0.2  # seconds before the second try, doubled before each further one
_LATER = (429, 502, 503, 504)  # statuses after which a request is tried again


class Connection:
    """One service, and the token that identifies the analyst. Safe to use from several threads."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 120.0) -> None:
        """Connect when the first request is made."""
        self.url = check_url(url)
        self._given = token
        self._client = httpx.Client(
            base_url=self.url,
            timeout=timeout,
            headers={"Authorization": f"Bearer {_check_token(find_token() if token is None else token)}"},
        )

    @property
    def own_token(self) -> bool:
        """Whether another process would find the same token on its own."""
        return self._given is None

    def get(self, path: str, **query: Any) -> Any:
        """Get the document at a path."""
        return _document(self._sent("GET", path, params=query))

    def post(self, path: str, body: Any) -> Any:
        """Send a JSON document to a door, and return its response."""
        try:
            content = json.dumps(body)
        except (TypeError, ValueError):
            raise InvalidArgument(
                "the arguments contain something that JSON cannot represent; use text and numbers."
            ) from None
        return self.send(path, content.encode(errors="surrogatepass"), "application/json")

    def send(self, path: str, content: bytes, media: str, **query: Any) -> Any:
        """Send a document of any kind to a door, and return its response."""
        told = {name: json.dumps(value) for name, value in query.items() if value is not None}
        return _document(self._sent("POST", path, content=content, headers={"Content-Type": media}, params=told))

    def upload(self, path: str, content: bytes, media: str, named: dict[str, str]) -> Any:
        """Send a file to a door, with its names in the address, and return the response."""
        return _document(self._sent("POST", path, content=content, headers={"Content-Type": media}, params=named))

    def download(self, path: str) -> bytes:
        """Get a file."""
        return bytes(self._sent("GET", path).content)

    def _sent(self, method: str, path: str, **more: Any) -> httpx.Response:
        for attempt in range(1, _TRIES + 1):
            try:
                found = self._client.request(method, path, **more)
            except httpx.TransportError as error:
                if attempt == _TRIES:
                    kind = type(error).__name__
                    raise Unreachable(
                        f"no answer came from {self.url} after {_TRIES} tries ({kind}); asking again is safe."
                    ) from None
            else:
                if found.is_success:
                    return found
                if found.status_code not in _LATER or attempt == _TRIES:
                    raise _refused(found)
            time.sleep(_PAUSE * 2 ** (attempt - 1))
        raise AssertionError

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __repr__(self) -> str:
        """The address, without the token."""
        return f"Connection({self.url!r})"


def _document(found: httpx.Response) -> Any:
    """The received document; a proxy in front of a service may send something else."""
    try:
        return found.json()
    except ValueError:
        raise ServiceError(
            "the response is not JSON, so it did not come from an afresh service; check the address."
        ) from None


def _refused(found: httpx.Response) -> Exception:
    try:
        document = found.json()
    except ValueError:
        document = None
    return from_problem(document, found.status_code)


def check_url(url: str) -> str:
    """The address of a service. Over http a token travels in clear text, so http is allowed only to this machine."""
    parts = urlsplit(url) if is_address(url) else None
    if parts is None or not parts.hostname:
        raise InvalidArgument(f"url == {url!r}, must be the address of a service, such as https://host.")
    if parts.username or parts.password:
        raise InvalidArgument("the address must not contain a password; pass the token in token= or AFRESH_TOKEN.")
    if parts.scheme == "http" and not on_this_machine(parts.hostname):
        raise InvalidArgument(f"http://{parts.hostname} would expose your token to the network; use https://.")
    return url.rstrip("/")


def _check_token(token: str) -> str:
    """Check that a header can carry the token."""
    found = token.strip() if isinstance(token, str) else ""
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise InvalidArgument(
            "token= must be the text that `afresh token new` printed, or a token from your identity provider."
        )
    return found


def find_token() -> str:
    """Find the token in $AFRESH_TOKEN, or in the file $AFRESH_TOKEN_FILE, which nobody else may be able to read."""
    if found := os.environ.get("AFRESH_TOKEN", "").strip():
        return found
    import platformdirs

    chosen = os.environ.get("AFRESH_TOKEN_FILE")
    place = Path(chosen or os.path.join(platformdirs.user_config_dir("afresh"), "token")).expanduser()
    try:
        mode = place.stat().st_mode
        if stat.S_IMODE(mode) & 0o077:
            raise NotAllowed(f"others can read {place}, which holds a token; run: chmod 600 {place}")
        return place.read_text(encoding="utf-8").strip()
    except OSError:
        raise NotAllowed(f"there is no token: set AFRESH_TOKEN, or put the token into {place} with mode 600.") from None
