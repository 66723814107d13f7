"""Refusals as problem documents with a code."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from afresh.errors import AfreshError, TooMany
from afresh.wire import problems


def refusal(
    request: Request, error: AfreshError, status: int | None = None, more: Mapping[str, str] | None = None
) -> Response:
    """The response for an error, with additional headers if any are given."""
    request.state.code = error.code
    document = problems.to_problem(error)
    if status is not None:
        document["status"] = status
    headers = {**(more or {}), **({"WWW-Authenticate": "Bearer"} if document["status"] == 401 else {})}
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(math.ceil(error.after))
    return JSONResponse(document, document["status"], headers, media_type=problems.MEDIA_TYPE)
