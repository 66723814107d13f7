"""Long work shows a sign of life to people, and nothing to logs and pipes."""

import io
import sys

import pytest

from afresh.results import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_stays_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    assert not progress.watched()
    with progress.waiting("Reading"):
        pass
    pipe.close()
    assert not progress.watched()  # and a closed one is no reason to fail
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.watched()


def test_a_terminal_is_told_what_takes_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    shown = progress._Shown("Reading 5 [rows]")
    shown.start()
    shown.stop()
    assert "Reading 5 [rows]" in terminal.getvalue()
    late = progress._Shown("Never")
    late.stop()
    late.start()  # the timer fired as the work ended
    assert "Never" not in terminal.getvalue()


def test_a_bar_fills_as_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    shown = progress._Shown("Following the chain", 4)
    shown.advance(1)  # before anything is shown
    shown.start()
    shown.advance(2)
    shown.stop()
    assert "75%" in terminal.getvalue()
    assert list(progress.counted(range(3), "Counting")) == [0, 1, 2]


def test_what_is_quick_says_nothing_and_only_the_outermost_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for _ in range(2):
        with progress.waiting("outer"), progress.waiting("inner"):
            pass
        with pytest.raises(ValueError, match="work"), progress.waiting("fails"):
            raise ValueError("work")
    assert terminal.getvalue() == ""
