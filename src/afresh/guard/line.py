"""The line before a desk: whoever comes while nobody serves takes the questions of all who wait, and serves them.

Two durable commits and a scan cost the same for one question as for fifty. So callers who come together are served
together, by one of them: the first who finds nobody serving takes everybody who stands in line, itself included, and
the others wait. It serves one group, then leaves with its own answer, and the next who waits serves those who have
come meanwhile. Nobody ever waits for others to come: a caller without company is served at once, as if there were no
line.

Why it is safe.

- **Each caller keeps what it would have alone.** `serve` gives every request its own replies or its own refusal. If
  it raises instead (the storage or the engine failed, one of many questions cannot be evaluated), nobody is told so:
  everybody is sent to try again `alone`, each in its own thread, and finds out what concerns itself. A request
  remembers what was paid for it, and paying, recording and stating again are free, so nothing is charged twice.
- **Ctrl-C, anywhere, in whatever thread, leaves nothing locked.** There is no lock, condition or event here. What
  threads share changes by single steps of the interpreter: appending to a deque, `dict.setdefault`, setting an
  attribute, a SimpleQueue, which is written in C. The right to serve is a baton: a dictionary whose "holder" is set
  once, by `setdefault`, so exactly one gets it. A holder gives it up by `over = True`, the first step of a `finally`,
  before which CPython looks for no signal; from then on the right is that of the `next` baton, which `setdefault`
  makes once as well. There is no moment at which a right can be lost or two can have it.
- **A server that is interrupted harms nobody.** Whoever it had taken and not finished goes back into line. Bells are
  only hints: those who wait look again after a while even if none rang, and whoever has the right to serve always
  serves itself, in line or not.
- **A caller who is interrupted while waiting** leaves a place that is `left`, and is skipped. If it was taken just
  before, its question is paid for and answered like any other, and asking again is free.
- **One thread may stand for several callers**, as a service does, which has better use for threads than to wait: each
  keeps its own place. What cannot be served with others is left to whoever stands for it.
- **Nobody waits for itself.** What a signal handler or a finaliser asks in the thread that serves is served at once,
  apart.
- **A fork has none of the other threads**, so a caller that waits in the child is told so by `check`.
- **Rows have no say.** Who is served with whom, and when, depends on when callers come and how long serving takes, as
  it does for any two questions that share a machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, Generic, Protocol, TypeVar

_PATIENCE = 0.25  # seconds after which those who wait look for themselves
_MOST = 256  # requests in a group: others wait for its transactions


class Finishable(Protocol):
    """What stands in line."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do for it."""
        ...


Request = TypeVar("Request", bound=Finishable)


class _Place(Generic[Request]):
    """One caller's place in line."""

    def __init__(self, request: Request, bell: SimpleQueue[None]) -> None:
        self.request, self.bell, self.thread = request, bell, get_ident()
        self.over = self.alone = self.left = False

    @property
    def waits(self) -> bool:
        """Whether somebody else may still serve it."""
        return not (self.alone or self.left or self.request.finished)


class Line(Generic[Request]):
    """Serves requests of many threads in groups."""

    def __init__(self, serve: Callable[[list[Request]], None], check: Callable[[], None]) -> None:
        """How to serve requests (of several, those it can together) and what raises where waiting is in vain."""
        self._serve, self._check = serve, check
        self._waiting: deque[_Place[Request]] = deque()
        self._baton: dict[str, Any] = {}

    @property
    def busy(self) -> bool:
        """Whether somebody is serving."""
        return self._holder() is not None

    @property
    def mine(self) -> bool:
        """Whether this thread is serving."""
        holder = self._holder()
        return holder is not None and holder.thread == get_ident()

    def _holder(self) -> _Place[Request] | None:
        """Who has the baton now."""
        baton = self._baton
        while (holder := baton.get("holder")) is not None and holder.over:
            baton = baton.get("next") or {}
        return holder

    def stand(self, request: Request) -> None:
        """Have a request served, and return when it is."""
        if self.mine:
            self._serve([request])
            return
        place = _Place(request, SimpleQueue())
        try:
            self._waiting.append(place)
            while place.waits:
                if self._take_baton(place):
                    self._serve_all(place)
                else:
                    self._listen(place)
            if place.alone:
                self._serve([request])
        finally:
            place.over = True
            if place.waits:  # it was interrupted, and may have been called to serve
                place.left = True
                self._call_next()

    def stand_for(self, requests: Sequence[Request]) -> None:
        """Have requests of several callers served together, and return when each is finished or has to go alone.

        Not for a thread that signals reach: it stands for others.
        """
        bell: SimpleQueue[None] = SimpleQueue()
        places = [_Place(request, bell) for request in requests]
        self._waiting.extend(places)
        try:
            while (place := next((each for each in places if each.waits), None)) is not None:
                if self._take_baton(place):
                    with suppress(Exception):  # whoever goes alone finds out what concerns itself
                        self._serve_all(place)
                    place.alone = not place.request.finished
                else:
                    self._listen(place)
        finally:
            for place in places:
                place.left = place.waits  # if waiting is in vain
            self._call_next()

    def _take_baton(self, place: _Place[Request]) -> bool:
        """Whether it is this one's turn to serve."""
        baton = self._baton
        while (holder := baton.setdefault("holder", place)).over:
            baton = baton.setdefault("next", {})
        self._baton = baton  # another thread may put back an older one, which leads here as well
        return holder is place

    def _serve_all(self, first: _Place[Request]) -> None:
        """Serve all who wait, whoever has the baton among them; and give it up."""
        group: list[_Place[Request]] = []
        try:
            while len(group) < _MOST and (taken := self._next()) is not None:
                group.append(taken)
            if first not in group:  # it looked before it was called, or stands further back
                group.append(first)
            try:
                self._serve([place.request for place in group])
            except Exception:
                if len(group) == 1:
                    raise
            for place in group:
                place.alone = not place.request.finished
        finally:
            first.over = True
            for place in group:
                if place is not first:
                    if place.waits:  # this server was interrupted
                        self._waiting.append(place)
                    place.bell.put(None)
            self._call_next()

    def _next(self) -> _Place[Request] | None:
        """The first who waits, out of line."""
        while True:
            try:
                place = self._waiting.popleft()
            except IndexError:
                return None
            if place.waits:
                return place

    def _listen(self, place: _Place[Request]) -> None:
        """Wait until it is served, or may have to serve."""
        try:
            place.bell.get(timeout=_PATIENCE)
        except Empty:
            self._check()

    def _call_next(self) -> None:
        """Call the next who waits, to serve."""
        place = self._next()
        if place is not None:
            self._waiting.appendleft(place)
            place.bell.put(None)
