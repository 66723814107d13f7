"""A page where anyone can drop a receipt, signed in or not.

Anyone may send one, and the document may be anything, so it is checked in a separate process with little memory and
time, and only a few at once.

    python -m afresh.server.pages.verify < receipt.json > blocks
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from afresh.errors import AfreshError, InvalidArgument, TooLarge, TooMany
from afresh.server.pages import forms
from afresh.server.pages.frame import PageRoute, fragment, is_part, render, visitor

if TYPE_CHECKING:
    from afresh.server.pages.sessions import Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_MEMORY, _SECONDS = 2 << 30, 30
_AT_ONCE, _WAITING = 1, 8
_checking, _waiting = asyncio.Semaphore(_AT_ONCE), 0


@router.get("/verify")
async def form(request: Request) -> Response:
    """Where to drop a receipt."""
    return render(request, "verify.html", await _anybody(request), found=None, error=None)


@router.post("/verify")
async def verify(request: Request) -> Response:
    """The result of checking a receipt."""
    global _waiting
    if _waiting >= _WAITING:  # before any of it is read
        raise TooMany("many receipts are being checked; try again later, or run afresh verify.")
    _waiting += 1
    try:
        _, _, body = await forms.uploaded(request)
        async with _checking:
            found = await asyncio.to_thread(checked, body)  # anyone may send one: it holds up no analyst
    except AfreshError as error:
        if is_part(request):
            raise
        return render(request, "verify.html", await _anybody(request), status=error.status, found=None, error=error)
    finally:
        _waiting -= 1
    if is_part(request):
        return fragment(found)
    return render(request, "verify.html", await _anybody(request), found=found, error=None)


async def _anybody(request: Request) -> Visitor | None:
    try:
        return await visitor(request)
    except AfreshError:
        return None


def checked(body: bytes) -> str:
    """The result of checking a receipt in a separate process, as part of a page."""
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(command, input=body, capture_output=True, timeout=3 * _SECONDS, check=False)
    except subprocess.TimeoutExpired:
        done = None
    if done is not None and done.returncode == 2:
        raise InvalidArgument(done.stdout.decode(errors="replace"))
    if done is None or done.returncode != 0:
        raise TooLarge("the receipt takes more memory or time to check than the service allows; run afresh verify.")
    return done.stdout.decode()


def main() -> int:
    """Check what is on stdin."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    from afresh.receipts import verify as check
    from afresh.results import html

    try:
        text = sys.stdin.buffer.read().decode()
        print(html.part(check(text).blocks()))
    except AfreshError as error:
        print(error, end="")
        return 2
    except UnicodeDecodeError:
        print("the file is not UTF-8 text, so it is not a receipt.", end="")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
