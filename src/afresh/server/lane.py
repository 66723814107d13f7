"""A fast path to the most used door: what FastAPI does around a single question takes as long as a repeat."""

from __future__ import annotations

import json
import re
from typing import Any

from fastapi import Request
from pydantic import ValidationError

from afresh.errors import AfreshError
from afresh.server.api import ask
from afresh.server.bodies import Question
from afresh.server.problems import refusal

_ASK = re.compile(r"/v1/datasets/([^/]+)/ask")
_JSON = (b"content-type", b"application/json")


class _Route:
    """The name that the log and the metrics use."""

    path = "/v1/datasets/{name}/ask"


class Lane:
    """Takes plain questions to their door. Unusual requests take the normal way, which reports what is wrong."""

    def __init__(self, app: Any) -> None:
        """Stand before an application."""
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass a request on, or answer it."""
        found = _ASK.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None or _JSON not in scope["headers"]:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            message = await receive()
            body = _question(message)
            if body is None:
                await self._app(scope, _again(message, receive), send)
                return
            scope["route"] = _Route
            response = await ask(request, found[1], body)
        except AfreshError as error:
            response = refusal(request, error)
        await response(scope, receive, send)


def _question(message: dict[str, Any]) -> Question | None:
    """The question in a body, if it has arrived complete and asks one."""
    if message["type"] != "http.request" or message.get("more_body"):
        return None
    try:
        return Question.model_validate(json.loads(message["body"]))
    except (ValueError, RecursionError, ValidationError):
        return None


def _again(first: Any, receive: Any) -> Any:
    """A `receive` that first repeats what was received, and then receives the rest."""
    kept = [first]

    async def received() -> Any:
        return kept.pop() if kept else await receive()

    return received
