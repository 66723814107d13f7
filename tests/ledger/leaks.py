"""What an error must not say, in any of the ways an error is shown or logged."""

from __future__ import annotations

import traceback


def assert_says_nothing_of(error: BaseException, secret: str) -> None:
    """Neither its own text nor that of any error behind it has the secret, even where tracebacks suppress those."""
    assert secret not in "".join(traceback.format_exception(error))
    behind: list[BaseException | None] = [error]
    while behind:
        each = behind.pop()
        if each is not None:
            assert secret not in f"{each!r} {each} {each.args} {getattr(each, '__notes__', '')}"
            behind += [each.__cause__, each.__context__]
