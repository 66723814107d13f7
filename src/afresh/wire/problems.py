"""Errors as problem documents (RFC 9457) and back, so a client raises what the guard raised."""

from __future__ import annotations

from typing import Any

from afresh.errors import KINDS, AfreshError, BudgetExhausted, EvaluatorFailed, ServiceError

MEDIA_TYPE = "application/problem+json"
_TITLES = {kind: (kind.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".") for kind in KINDS.values()}


def to_problem(error: AfreshError) -> dict[str, Any]:
    """The document of an error; `code` is its stable name, and the error's attributes keep their own names."""
    known = KINDS.get(error.code, ServiceError)
    carried = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {
        "type": f"urn:afresh:error:{error.code}",
        "title": _TITLES[known],
        "status": error.status,
        "detail": str(error),
        "code": error.code,
        **carried,
    }


def from_problem(document: Any, status: int) -> AfreshError:
    """The error that a document describes, to be raised; for any other response, an error that describes it."""
    code = document.get("code") if isinstance(document, dict) else None
    kind = KINDS.get(code) if isinstance(code, str) else None
    if kind is None:
        return ServiceError(
            f"the service answered with status {status}, which is not an answer from afresh; check the address."
        )
    said = str(document.get("detail", ""))
    if kind is BudgetExhausted:
        numbers = {name: int(document.get(name) or 0) for name in ("asked", "spent", "questions")}
        return BudgetExhausted(**numbers, analyst=document.get("analyst"), message=said)
    if kind is EvaluatorFailed:
        return EvaluatorFailed(said, str(document.get("output", "")))
    found = kind.__new__(kind, said)
    found.args = (said,)
    return found
