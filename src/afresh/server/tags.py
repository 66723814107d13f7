"""ETags: what a client already has is not sent again."""

from __future__ import annotations

import hashlib

from fastapi import Request, Response


def known(request: Request, tag: str) -> bool:
    """Whether the client says that it already has what a tag names."""
    given = request.headers.get("if-none-match", "").split(",")
    return any(each.strip().removeprefix("W/") in (f'"{tag}"', "*") for each in given)


def tagged(request: Request, content: bytes, media: str, tag: str | None = None) -> Response:
    """A response with a tag, by default the tag of its bytes; without a body if the client already has it."""
    tag = hashlib.sha256(content).hexdigest() if tag is None else tag
    return not_modified(tag) if known(request, tag) else Response(content, media_type=media, headers=_headers(tag))


def not_modified(tag: str) -> Response:
    """The response to a client that already has it."""
    return Response(status_code=304, headers=_headers(tag))


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
