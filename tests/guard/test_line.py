"""The line before a desk: served together, whoever fails or is interrupted, and never by two at once."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from afresh.guard import line as lines
from afresh.guard.line import Line
from interrupts import interrupt_at

OURS = ("line.py", "test_line.py")


class Request:
    def __init__(self, bad: bool = False) -> None:
        self.finished, self.bad, self.thread = False, bad, 0


class Holder:
    """Somebody who serves until told otherwise."""

    over, thread = False, 0


class Served:
    """Counts groups, and sees to it that none is served while another is."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.within: list[int] = []
        self.line: Line[Request] = Line(self.serve, lambda: None)
        self.holder, self.seconds = Holder(), 0.0
        self.line._baton = {"holder": self.holder}

    def serve(self, requests: list[Request]) -> None:
        if len(requests) > 1:  # those who failed together try alone, at once
            self.within.append(1)
            assert len(self.within) == 1, "two serve at once"
        try:
            self.groups.append(len(requests))
            if self.seconds:
                time.sleep(self.seconds)
            for request in requests:
                if request.bad:
                    raise ValueError("this one is bad")
            for request in requests:
                request.finished, request.thread = True, threading.get_ident()
        finally:
            if len(requests) > 1:
                self.within.clear()


def waiting_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_those_who_wait_are_served_together_by_one_of_them() -> None:
    served = Served()
    requests = [Request() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(served.line.stand, request) for request in requests]
        waiting_for(lambda: len(served.line._waiting) == 8)
        served.holder.over = True
        for each in done:
            each.result(30)
    assert sum(served.groups) == 8
    assert max(served.groups) >= 7  # the first to look takes all who are there
    assert not served.line._waiting


def test_one_alone_is_served_at_once() -> None:
    served = Served()
    served.holder.over = True
    for _ in range(3):
        served.line.stand(Request())
    assert served.groups == [1, 1, 1]


def test_whoever_fails_fails_alone() -> None:
    served = Served()
    requests = [Request(bad=number == 3) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(served.line.stand, request) for request in requests]
        waiting_for(lambda: len(served.line._waiting) == 6)
        served.holder.over = True
        for number, each in enumerate(done):
            if number == 3:
                with pytest.raises(ValueError, match="this one is bad"):
                    each.result(30)
            else:
                each.result(30)
    assert [request.finished for request in requests] == [number != 3 for number in range(6)]


def test_what_the_serving_thread_asks_is_not_waited_for() -> None:
    inner = Request()

    def serve(requests: list[Request]) -> None:
        if inner not in requests:
            assert line.mine
            line.stand(inner)  # as a signal handler does
        for request in requests:
            request.finished = True

    line = Line(serve, lambda: None)
    line.stand(Request())
    assert inner.finished
    assert not line.mine


@pytest.mark.parametrize("several", [False, True])
def test_waiting_in_vain_is_told_and_leaves_the_line(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PATIENCE", 0.001)

    def check() -> None:
        raise RuntimeError("a fork has none of the threads")

    served = Served()
    served.line._check = check
    with pytest.raises(RuntimeError, match="none of the threads"):
        served.line.stand_for([Request(), Request()]) if several else served.line.stand(Request())
    served.holder.over = True
    served.line.stand(last := Request())
    assert last.finished
    assert served.groups == [1]


@pytest.mark.parametrize("leaving", [False, True])
def test_an_interrupt_anywhere_in_who_serves_harms_nobody(leaving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PATIENCE", 0.02)
    before: lines._Place[Request] = lines._Place(Request(), SimpleQueue())
    monkeypatch.setattr(lines, "sleep", lambda seconds: setattr(before, "over", True))
    for place in itertools.count():
        served, mine, other = Served(), Request(), Request()
        before.over, served.line._leaving = False, [weakref.ref(before)] if leaving else []
        waiter = threading.Thread(target=served.line.stand, args=(other,), daemon=True)
        waiter.start()
        waiting_for(partial(bool, served.line._waiting))
        served.holder.over = True
        interrupted = interrupt_at(place, partial(served.line.stand, mine), OURS)
        served.within.clear()  # the interrupt may have come within `serve` itself
        _is_sound(served, waiter, f"interrupted at {place}")
        assert other.finished
        if not interrupted:
            assert mine.finished
            break
    assert place > 40  # it was interrupted everywhere, not nowhere


class Pauses:
    """In place of sleeping: what happens in every pause."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.events = list(events)

    def __call__(self, seconds: float) -> None:
        self.events.pop(0)()


def test_who_comes_after_a_group_lets_its_callers_leave_and_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_GRACE", 60.0)
    served, again, late = Served(), Request(), Request()
    with ThreadPoolExecutor(4) as pool:
        two = [pool.submit(served.line.stand, Request()) for _ in range(2)]
        waiting_for(lambda: len(served.line._waiting) == 2)
        served.holder.over = True
        for each in two:
            each.result(30)
        assert served.groups == [2]
        first: lines._Place[Request] = lines._Place(Request(), SimpleQueue())
        served.line._leaving = [weakref.ref(first)]

        def leave_and_ask() -> None:
            first.over = True
            two.append(pool.submit(served.line.stand, again))
            waiting_for(lambda: len(served.line._waiting) == 2)

        def ask_too() -> None:
            two.append(pool.submit(served.line.stand, late))
            waiting_for(lambda: len(served.line._waiting) == 3)

        pauses = Pauses(lambda: None, leave_and_ask, ask_too, lambda: None)
        monkeypatch.setattr(lines, "sleep", pauses)
        served.line.stand(Request())
        for each in two:
            each.result(30)
    assert served.groups == [2, 3]
    assert not pauses.events  # one more than it takes for nobody else to come
    assert again.finished
    assert late.finished


def test_nobody_waits_long_for_those_who_do_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_GRACE", 0.001)
    served = Served()
    stays: lines._Place[Request] = lines._Place(Request(), SimpleQueue())
    served.holder.over, served.line._leaving = True, [weakref.ref(stays)]
    served.line.stand(last := Request())
    assert last.finished


def test_nobody_pauses_for_those_who_have_left_or_were_stood_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "sleep", Pauses())  # a pause would be an error
    served = Served()
    served.holder.over = True
    served.line.stand_for([Request(), Request(), Request()])
    gone: lines._Place[Request] = lines._Place(Request(), SimpleQueue())
    freed: weakref.ref[lines._Place[Request]] = weakref.ref(lines._Place(Request(), SimpleQueue()))
    gone.over, served.line._leaving = True, [weakref.ref(gone), freed]
    for _ in range(3):
        served.line.stand(Request())
    assert served.groups == [3, 1, 1, 1]


def test_an_interrupt_anywhere_in_who_waits_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PATIENCE", 0.02)
    for place in itertools.count():
        served, mine, other = Served(), Request(), Request()
        ended = threading.Event()

        def serve_later(served: Served = served, other: Request = other, ended: Any = ended) -> None:
            waiting_for(lambda: served.line._waiting or ended.is_set())
            served.holder.over = True
            served.line.stand(other)

        server = threading.Thread(target=serve_later, daemon=True)
        server.start()
        interrupted = interrupt_at(place, partial(served.line.stand, mine), OURS)
        ended.set()
        _is_sound(served, server, f"interrupted at {place}")
        assert other.finished
        if not interrupted:
            assert mine.finished
            break
    assert place > 5


def _is_sound(served: Served, other: threading.Thread, when: str) -> None:
    """The other thread ends, and so does whoever comes next."""
    other.join(30)
    assert not other.is_alive(), when
    last = Request()
    after = threading.Thread(target=served.line.stand, args=(last,), daemon=True)
    after.start()
    after.join(30)
    assert last.finished, when


@pytest.mark.parametrize("failing", [False, True])
def test_no_bell_is_lost_among_many_threads_with_many_requests_each(
    failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would check for himself before the test ends."""
    monkeypatch.setattr(lines, "_PATIENCE", 600)
    served = Served()
    served.holder.over, served.seconds = True, 0.0005

    def work() -> None:
        for number in range(200):
            request = Request(bad=failing and number % 7 == 0)
            with suppress(ValueError):
                served.line.stand(request)
            assert request.finished != request.bad

    with ThreadPoolExecutor(16) as pool:
        for each in [pool.submit(work) for _ in range(16)]:
            each.result(60)
    assert max(served.groups) > 8
    assert failing or sum(served.groups) == 16 * 200


def test_one_thread_stands_for_several_together_with_others() -> None:
    served = Served()
    requests, other = [Request() for _ in range(5)], Request()
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(served.line.stand_for, requests), pool.submit(served.line.stand, other)]
        waiting_for(lambda: len(served.line._waiting) == 6)
        served.holder.over = True
        for each in done:
            each.result(30)
    assert served.groups == [6]
    assert all(request.finished for request in (*requests, other))
    assert not served.line._waiting


@pytest.mark.parametrize("alone", [True, False])
def test_what_one_thread_stands_for_and_cannot_be_served_is_left_to_it(alone: bool) -> None:
    served, bad = Served(), Request(bad=True)
    requests = [bad] if alone else [Request(), bad, Request()]
    served.holder.over = True
    served.line.stand_for(requests)
    assert served.groups == [len(requests)]
    assert not any(request.finished for request in requests)  # each goes alone now
    served.line.stand(last := Request())
    assert last.finished


def test_more_than_a_group_takes_are_served_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_MOST", 4)
    served, requests = Served(), [Request() for _ in range(10)]
    served.holder.over = True
    served.line.stand_for(requests)
    assert served.groups == [4, 4, 2]
    assert all(request.finished for request in requests)
