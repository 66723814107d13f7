"""The line in front of a desk: a caller who arrives when nobody is serving serves everyone who is waiting.

Two durable commits and a scan cost the same for one question as for fifty. So callers who arrive together are served
together, by one of them: the first to find nobody serving takes everyone in line, itself included, while the others
wait. It serves one group and leaves with its own answer; the next caller waiting then serves those who have arrived
in the meantime. A lone caller is served at once, as if there were no line.

Callers who were answered together often ask again together. The first of them to arrive would be served almost alone,
slowly, as its thread competes with all the others for Python's lock, and they would have to wait for it. So after a
group of many, if some of its callers have not left yet, the next server pauses until they have and a short pause brings
nobody else, but not for longer than `_GRACE`. Otherwise nobody ever waits for others to arrive.

Why this is safe:

- **Each caller gets what it would get alone.** `serve` gives every request its own replies or its own refusal. If it
  raises instead (the storage or the engine failed, or one of many questions cannot be evaluated), that error reaches
  nobody: all callers are sent to try again `alone`, each in its own thread, and each sees only its own error. A
  request remembers what was paid for it, and paying, recording and stating again are free, so nothing is charged
  twice.
- **Ctrl-C leaves nothing locked, wherever and in whichever thread it arrives.** There is no lock, condition or event
  here. State that threads share changes in single interpreter steps: appending to a deque, `dict.setdefault`, setting
  an attribute, and a SimpleQueue, which is written in C. The right to serve is a baton: a dictionary whose "holder" is
  set once, by `setdefault`, so exactly one caller gets it. The holder gives it up with `over = True`, the first step
  of a `finally`, and CPython checks for no signal before that step; from then on the right belongs to the `next`
  baton, which `setdefault` also makes only once. At no moment can the right be lost or held by two callers.
- **An interrupted server harms nobody.** Callers it had taken but not finished go back into line. Bells are only
  hints: waiting callers check again after a while even if none rang, and the holder of the right always serves itself,
  in line or not.
- **Callers leave one after the other.** Woken all at once, they would all compete for Python's lock. So each wakes the
  next when it leaves, also if it is interrupted; one who left before it knew whom to wake is passed over. If a bell is
  lost all the same, the others check for themselves.
- **A caller interrupted while waiting** leaves a place that is marked `left` and skipped. If it was taken just before,
  its question is paid for and answered like any other, and asking again is free.
- **One thread may stand for several callers**, as in a service, which has better uses for threads than waiting: each
  caller keeps its own place. A request that cannot be served with others is left to the thread that stands for it.
- **Nobody waits for itself.** A question that a signal handler or a finalizer asks in the serving thread is served
  at once, separately.
- **A forked process has none of the other threads**, so `check` raises an error for a caller waiting in the child.
- **Rows have no influence.** Who is served with whom, and when, depends on when callers arrive and how long serving
  takes, as it does for any two questions that share a machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import get_ident
from time import monotonic, sleep
from typing import Any, Generic, Protocol, TypeVar
from weakref import ref

_PATIENCE = 0.25  # seconds after which waiting callers check for themselves
_GRACE = 0.03  # seconds that callers who were answered together may take to leave and to ask again
_CROWD = 8  # callers; fewer hardly compete with one another
_BLINK = 0.0005  # a pause: on a busy machine, less would often bring nobody though many are on their way
_MOST = 256  # requests in a group, because others wait for its transactions


class Finishable(Protocol):
    """Something that can stand in line."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do for it."""
        ...


Request = TypeVar("Request", bound=Finishable)


class _Place(Generic[Request]):
    """One caller's place in line."""

    def __init__(self, request: Request, bell: SimpleQueue[None], *, leaves: bool = True) -> None:
        self.request, self.bell, self.thread = request, bell, get_ident()
        self.leaves = leaves  # whether its thread leaves as soon as it is finished
        self.over = self.alone = self.left = False
        self.after: _Place[Request] | None = None  # whom to wake when leaving

    def pass_on(self) -> None:
        """Wake the next of those who were served together."""
        if (after := self.after) is not None:
            after.bell.put(None)

    @property
    def waits(self) -> bool:
        """Whether another caller may still serve it."""
        return not (self.alone or self.left or self.request.finished)


class Line(Generic[Request]):
    """Serves requests of many threads in groups."""

    def __init__(self, serve: Callable[[list[Request]], None], check: Callable[[], None]) -> None:
        """Take `serve`, which finishes the requests it can together, and `check`, which raises if waiting is futile."""
        self._serve, self._check = serve, check
        self._waiting: deque[_Place[Request]] = deque()
        self._baton: dict[str, Any] = {}
        self._leaving: list[ref[_Place[Request]]] = []  # weakly, since a request may hold much

    @property
    def busy(self) -> bool:
        """Whether a caller is serving."""
        return self._holder() is not None

    @property
    def mine(self) -> bool:
        """Whether this thread is serving."""
        holder = self._holder()
        return holder is not None and holder.thread == get_ident()

    def _holder(self) -> _Place[Request] | None:
        """Return the place that holds the baton now."""
        baton = self._baton
        while (holder := baton.get("holder")) is not None and holder.over:
            baton = baton.get("next") or {}
        return holder

    def stand(self, request: Request) -> None:
        """Have a request served, and return once it is."""
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
                place.pass_on()
                self._serve([request])
        finally:
            place.over = True
            place.pass_on()
            if place.waits:  # this caller was interrupted, and may have been called to serve
                place.left = True
                self._call_next()

    def stand_for(self, requests: Sequence[Request]) -> None:
        """Have requests of several callers served together, and return when each is finished or must be served alone.

        Not for a thread that receives signals, because it stands for others.
        """
        bell: SimpleQueue[None] = SimpleQueue()
        places = [_Place(request, bell, leaves=False) for request in requests]
        self._waiting.extend(places)
        try:
            while (place := next((each for each in places if each.waits), None)) is not None:
                if self._take_baton(place):
                    with suppress(Exception):  # each caller that is then served alone sees its own error
                        self._serve_all(place)
                    place.alone = not place.request.finished
                else:
                    self._listen(place)
        finally:
            for place in places:
                place.left = place.waits  # if waiting is futile
            self._call_next()

    def _take_baton(self, place: _Place[Request]) -> bool:
        """Take the baton if it is free, and say whether this place holds it."""
        baton = self._baton
        while (holder := baton.setdefault("holder", place)).over:
            baton = baton.setdefault("next", {})
        self._baton = baton  # another thread may put back an older one, which also leads here
        return holder is place

    def _serve_all(self, first: _Place[Request]) -> None:
        """Serve everyone who is waiting, including the holder of the baton, then give the baton up."""
        group: list[_Place[Request]] = []
        try:
            self._see_off()
            while len(group) < _MOST and (taken := self._next()) is not None:
                group.append(taken)
            if first not in group:  # it checked before it was called, or stands further back
                group.append(first)
            try:
                self._serve([place.request for place in group])
            except Exception:
                if len(group) == 1:
                    raise
            for place in group:
                place.alone = not place.request.finished
            served = [place for place in group if place is not first and place.leaves and not place.alone]
            self._leaving = [ref(place) for place in served] if len(served) >= _CROWD else []
        finally:
            first.over = True
            self._wake([place for place in group if place is not first])
            self._call_next()

    def _wake(self, group: Sequence[_Place[Request]]) -> None:
        """Wake those who were served: the first one, who wakes the next when it leaves, and so on."""
        self._waiting.extend([place for place in group if place.waits])  # if this server was interrupted
        after: _Place[Request] | None = None
        for place in reversed(group):
            if not place.leaves:  # its thread stands for others, too
                place.bell.put(None)
                continue
            place.after = after
            if place.over:  # it may have left before it knew whom to wake
                place.pass_on()
            after = place
        if after is not None:
            after.bell.put(None)

    def _see_off(self) -> None:
        """Let the callers of the last group leave with their answers, and those who ask again at once arrive."""
        leaving, self._leaving = self._leaving, []
        until, more = monotonic() + _GRACE, False
        while (more or any(map(_is_here, leaving))) and monotonic() < until:
            before = len(self._waiting)
            sleep(_BLINK)
            more = len(self._waiting) > before

    def _next(self) -> _Place[Request] | None:
        """Take the first waiting place out of line."""
        while True:
            try:
                place = self._waiting.popleft()
            except IndexError:
                return None
            if place.waits:
                return place

    def _listen(self, place: _Place[Request]) -> None:
        """Wait until this place is served or may have to serve."""
        try:
            place.bell.get(timeout=_PATIENCE)
        except Empty:
            self._check()

    def _call_next(self) -> None:
        """Call the next waiting place to serve."""
        place = self._next()
        if place is not None:
            self._waiting.appendleft(place)
            place.bell.put(None)


def _is_here(place: ref[_Place[Any]]) -> bool:
    """Whether a caller has not left yet."""
    found = place()
    return found is not None and not found.over
