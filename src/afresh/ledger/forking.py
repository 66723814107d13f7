"""Journals across a fork: neither SQLite nor PostgreSQL lets two processes share a connection.

Before a fork, every journal's lock is taken, so no transaction is in progress, and its connection is dropped; both
sides reconnect when they next need to.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """A lock that every transaction holds, and a connection that can be made again.

    The lock is reentrant: a signal handler that forks within a transaction drops the connection under it, so the
    transaction fails, on both sides, instead of waiting for itself.
    """

    lock: threading.RLock

    def drop(self) -> None:
        """Close the connection; the next transaction makes another."""
        ...


_REGISTRY = threading.Lock()
_JOURNALS: weakref.WeakSet[Forkable] = weakref.WeakSet()
_HELD: list[Forkable] = []  # between the two hooks


def register(journal: Forkable) -> None:
    """Make a journal safe to use on both sides of a fork."""
    with _REGISTRY:
        _JOURNALS.add(journal)


def _before() -> None:
    _REGISTRY.acquire()
    for journal in list(_JOURNALS):
        journal.lock.acquire()
        _HELD.append(journal)
        journal.drop()


def _after() -> None:
    while _HELD:
        _HELD.pop().lock.release()
    _REGISTRY.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
