"""Whose failure is whose: what a machine does to a run is never a score, and what a candidate does always counts."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import EvaluatorFailed, NotScored
from afresh.judging import room
from afresh.judging.files import Files
from afresh.judging.judge import Judge, open_judge
from afresh.judging.promising import promised, promised_alone
from afresh.judging.settings import read_settings
from judging.made import PERFECT, candidate, interpreter, make

ROOT = os.geteuid() == 0
LIBC = ctypes.CDLL(None, use_errno=True)


def known(judge: Judge) -> str:
    """The ids of open items, for a candidate that behaves differently on others."""
    return f"KNOWN = set({[item['id'] for item in judge.open_items()]!r})\n"


def on_guarded(judge: Judge, body: str) -> str:
    """A candidate that is perfect on open items, and does something before it scores others."""
    inner = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"{known(judge)}import os, time\ndef everything(items):\n    if items[0]['id'] not in KNOWN:\n{inner}\n"
        + PERFECT
    )


@contextmanager
def small_disk(place: Path, size: int = 500_000_000) -> Iterator[Path]:
    """A disk with room for little more than a run is promised."""
    place.mkdir(parents=True)
    assert LIBC.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, f"size={size},mode=1777".encode()) == 0
    try:
        yield place
    finally:
        assert LIBC.umount2(str(place).encode(), 2) == 0


def fill(place: Path) -> None:
    with contextlib.suppress(OSError), (place / "filled").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()


@contextmanager
def meanwhile(work: Callable[[], bool]) -> Iterator[None]:
    """Try something in another thread until it has worked, while the block runs."""
    finished = threading.Event()

    def trying() -> None:
        while not work() and not finished.wait(0.01):
            pass

    thread = threading.Thread(target=trying)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def having(mark: str) -> list[int]:
    """Processes whose command line has a mark."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class Case:
    """A judge, a perfect candidate that ran well on the open items, and somewhere to break things."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.folder, self.monkeypatch, self.stack = folder, monkeypatch, stack
        place = make(folder / "steward")
        self.program = folder / "steward" / "run.py"
        self.program.write_text(f"#!{interpreter()}\n{self.program.read_text()}")
        self.program.chmod(0o755)
        text = place.read_text().replace(f'"{interpreter()}", "run.py"', '"./run.py"')
        place.write_text(text.replace("seconds = 20", "seconds = 3"))
        self.judge = stack.enter_context(open_judge(read_settings(place)))
        self.judge.check()
        self.judge.try_open(self.files(""))

    def files(self, body: str, name: str = f"candidate-{os.getpid()}.py") -> Files:
        found = self.judge.read(candidate(self.folder, on_guarded(self.judge, body or "pass"), name))
        self.judge.try_open(found)
        return found

    def limit(self, **limits: Any) -> None:
        """Change a limit of the evaluator."""
        settings = self.judge.settings
        self.judge.settings = replace(settings, evaluator=replace(settings.evaluator, **limits))

    def other_disk(self) -> Path:
        """Have temporary folders on a small disk from now on."""
        place = self.stack.enter_context(small_disk(self.folder / "small"))
        self.monkeypatch.setattr("tempfile.tempdir", str(place))
        return place

    @property
    def recorded(self) -> tuple[int, int]:
        found = self.judge.evaluation
        return len(found.guard.transcript.records), found.budget.spent

    @property
    def last(self) -> dict[str, Any]:
        """What the steward has about the last run."""
        runs = sorted(Path(self.judge.settings.state, "runs").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return dict(json.loads(runs[-1].read_text()))


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    with ExitStack() as stack:
        yield Case(tmp_path, monkeypatch, stack)


def memory(case: Case, files: Files) -> None:
    case.limit(memory=int(room.free_memory()) * 2)


def processes_(case: Case, files: Files) -> None:
    case.limit(processes=10**8)


def memory_of_others(case: Case, files: Files) -> None:
    """Another run was promised most of the memory, and has not used it yet."""
    most = int(room.free_memory() * 0.6)
    case.stack.enter_context(promised(room.Needs(most, 1, 1), {}, 0))
    case.limit(memory=most, seconds=0.2)


def disk(case: Case, files: Files) -> None:
    fill(case.other_disk())


def state_disk(case: Case, files: Files) -> None:
    place = case.stack.enter_context(small_disk(case.folder / "small"))
    runs = Path(case.judge.settings.state, "runs")
    runs.rename(case.folder / "runs")
    runs.symlink_to(place)
    fill(place)


def disk_later(case: Case, files: Files) -> None:
    place = case.other_disk()

    def filled() -> bool:
        began = bool(list(place.glob("*/run-*/run/began")))
        if began:
            fill(place)
        return began

    case.stack.enter_context(meanwhile(filled))


def no_evaluator(case: Case, files: Files) -> None:
    case.program.chmod(0o644)


def no_confinement(case: Case, files: Files) -> None:
    def killed() -> bool:
        confining = {parent(parent(each)) for each in having(files.name)} - {0, 1}
        for each in confining:
            os.kill(each, signal.SIGKILL)
        return bool(confining)

    case.stack.enter_context(meanwhile(killed))


WAIT = "open('began', 'w')\ntime.sleep(60)"
MACHINE = {
    "memory": (memory, "pass", "of memory are left"),
    "processes": (processes_, "pass", "processes may be started"),
    "memory of other runs": (memory_of_others, "pass", "other runs hold"),
    "full disk": (disk, "pass", "on the disk of temporary folders"),
    "full disk of the state": (state_disk, "pass", "on the disk of the state folder"),
    "disk filled by others while it runs": (disk_later, WAIT, "on the disk of temporary folders"),
    "no evaluator": (no_evaluator, "pass", "Permission denied"),
    "confinement killed": (no_confinement, WAIT, "something ended"),
}
FOR_ROOT = ("full disk", "full disk of the state", "disk filled by others while it runs", "confinement killed")


@pytest.mark.parametrize("what", MACHINE)
def test_what_a_machine_does_is_never_a_score(case: Case, what: str) -> None:
    """Nothing is charged or recorded, and the message says what happened."""
    if what in FOR_ROOT and not ROOT:
        pytest.skip("this takes root")
    broken, body, said = MACHINE[what]
    files, before = case.files(body), case.recorded
    broken(case, files)
    with pytest.raises(NotScored, match=said) as refused:
        case.judge.propose(files)
    assert case.recorded == before
    assert "Nothing was charged or recorded" in str(refused.value)


def test_whatever_is_asked_is_refused_and_the_same_is_answered_later(case: Case) -> None:
    files, other = case.files(""), case.files("pass\npass")
    judge, before = case.judge, case.recorded
    no_evaluator(case, files)
    with pytest.raises(NotScored):
        judge.propose(files)
    with pytest.raises(NotScored):
        judge.score(files)
    with pytest.raises(NotScored):
        judge.compare(other, files)
    with pytest.raises(NotScored):
        judge.exam(files)
    assert case.recorded == before
    case.program.chmod(0o755)
    assert judge.propose(files).accepted
    assert judge.score(files).confirmed
    assert judge.compare(other, files).value == 0
    assert judge.exam(files).score.value == 1


def test_a_run_that_others_ended_is_run_again(case: Case) -> None:
    files, seen = case.files("time.sleep(0.5)", f"again-{os.getpid()}.py"), list[int]()

    def killed() -> bool:
        seen.extend(having(files.name))
        for each in seen:
            os.kill(each, signal.SIGKILL)
        return bool(seen)

    with meanwhile(killed):
        assert case.judge.propose(files).accepted
    assert seen
    assert case.last["unclear"] == ""


def test_a_run_is_not_blamed_for_what_another_run_does(case: Case) -> None:
    """Whenever another run is admitted it harms this one, which gets its turn without others in the end."""
    files, harmed = case.files("time.sleep(0.5)", f"harmed-{os.getpid()}.py"), list[int]()

    def harm() -> bool:
        with contextlib.suppress(NotScored), promised(room.Needs(1, 1, 1), {}, 0):
            for each in having(files.name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
                harmed.append(each)
        return False

    with meanwhile(harm):
        assert case.judge.propose(files).accepted
    assert len({*harmed}) >= 2


def test_alone_means_that_no_other_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    needs = room.Needs(1, 1, 1)
    with ExitStack() as stack:
        before = stack.enter_context(promised(needs, {}, 0))

        def waits() -> bool:
            if len(list(before.parent.glob("run-*"))) == 2:  # it stands in line, and nobody comes in between
                with pytest.raises(NotScored, match="other runs"), promised(needs, {}, 0):
                    pass
                stack.close()
                return True
            return False

        with meanwhile(waits), promised_alone(needs, {}):
            assert not before.exists()
            with pytest.raises(NotScored, match="other runs"), promised(needs, {}, 0):
                pass
    with promised(needs, {}, 0):
        pass


OWN = {
    "exit code": ("os._exit(1)", {"exit"}),
    "signal of its own": ("os.kill(os.getpid(), 9)", {"signal"}),
    "time": ("time.sleep(60)", {"time"}),
    "processes": ("while True:\n    if not os.fork():\n        time.sleep(60)", {"exit", "processes"}),
    "threads": (
        "import threading\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        {"exit", "processes"},
    ),
    "memory": ("x = [bytearray(b'x') * 10**7 for _ in range(10**5)]", {"exit", "memory"}),
    "memory of many": (
        "for _ in range(12):\n    if not os.fork():\n        x = bytearray(b'x') * 50_000_000\n        time.sleep(60)\n"
        "time.sleep(60)",
        {"memory"},
    ),
    "disk": (
        "for i in range(5):\n    with open(f'{i}', 'wb') as file:\n        for _ in range(150):\n"
        "            file.write(bytes(1 << 20))",
        {"exit", "stopped"},
    ),
    "output": ("while True: os.write(1, bytes(1 << 20))", {"exit"}),
    "no results": ("os._exit(0)", {"exit"}),
}


@pytest.mark.parametrize("confined", [True, False] if ROOT else [False])
@pytest.mark.parametrize("what", OWN)
def test_what_a_candidate_does_counts(case: Case, what: str, confined: bool) -> None:
    """It is charged and is not accepted, as perfect as it is on the open items; the steward sees how it ended."""
    body, ends = OWN[what]
    if not confined:
        case.monkeypatch.setattr("afresh.judging.running.user_of", lambda name: None)
    case.limit(processes=20, seconds=1.5)
    files, (records, spent) = case.files(body), case.recorded
    if what == "disk":
        if not ROOT:
            pytest.skip("only root can make a small disk")
        case.other_disk()
    found = case.judge.propose(files)
    assert (found.accepted, found.charged) == (False, 1)
    assert case.recorded == (records + 1, spent + 1)
    assert case.last["ended"] in ends
    assert case.last["wrong"]
    assert sum(path.stat().st_size for path in Path(case.judge.settings.state, "runs").iterdir()) < 2_000_000


@pytest.mark.skipif(not ROOT, reason="only root can run candidates as another user")
def test_no_run_takes_the_processes_of_another(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An honest candidate that starts a process for each item scores the same while another has all it is allowed."""
    limit = 64
    case.limit(processes=limit, seconds=20)
    honest = (
        "import os\ndef solve(item):\n    child = os.fork()\n    if not child:\n"
        "        os._exit(int(item['hard'] < 0.65))\n"
        "    return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    files = case.judge.read(candidate(case.folder, honest))
    mark = f"sleeper-{os.getpid()}.py"
    greedy = "import os, time\ntry:\n    while os.fork(): pass\nexcept OSError: pass\ntime.sleep(600)\n"
    other = open_judge(read_settings(make(tmp_path_factory.mktemp("other"), evaluator=f"processes = {limit}")))
    sleeper = other.read(candidate(case.folder, greedy + PERFECT, mark))
    ended: list[Exception] = []

    def asleep() -> None:
        try:
            other.try_open(sleeper)
        except EvaluatorFailed as error:
            ended.append(error)

    thread = threading.Thread(target=asleep)
    thread.start()
    try:
        while len(having(mark)) < limit and thread.is_alive():
            time.sleep(0.01)
        found = case.judge.score(files)
        assert not ended
        assert thread.is_alive()
    finally:
        for each in having(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGABRT)  # not one of those after which it is run again
        thread.join()
        other.close()
    assert found.open_score == pytest.approx(0.65, abs=0.1)
    assert found.low < 0.65 < found.high
    assert found.confirmed


def test_memory_that_processes_share_counts_once(case: Case) -> None:
    case.limit(memory=200_000_000)
    shared = "x = bytearray(b'x') * 60_000_000\nfor _ in range(8):\n    if not os.fork():\n        time.sleep(60)\n"
    assert case.judge.propose(case.files(f"{shared}time.sleep(0.5)")).accepted


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors are chosen only on Linux")
def test_time_that_others_took_does_not_count(case: Case) -> None:
    """The candidate needs 1 second of a processor that it shares with four others, and is allowed 3 seconds."""
    busy = "import time\nwhile time.process_time() < 1: pass\n"
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(4)]
    try:
        files = case.judge.read(candidate(case.folder, busy + PERFECT))
        assert case.judge.try_open(files).open_score == 1
        with pytest.raises(EvaluatorFailed, match="more than 3 seconds"):
            case.judge.try_open(case.judge.read(candidate(case.folder, f"import time\ntime.sleep(60)\n{PERFECT}")))
    finally:
        os.sched_setaffinity(0, every)
        for each in others:
            each.kill()
            each.wait()


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_processes_that_a_user_has_left_are_counted() -> None:
    """Where candidates run as the service's own user, its other processes may leave them too few."""
    heard, told = os.pipe()
    child = os.fork()
    if not child:
        said = "nothing"
        try:
            os.setgid(54321)
            os.setuid(54321)
            resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
            room_before = room.free_processes()
            others = [subprocess.Popen(["/bin/sleep", "600"]) for _ in range(60)]
            said = f"{room_before:.0f} {room.free_processes():.0f} {room.lacking(room.Needs(1, 64, 1), {})}"
            for each in others:
                each.kill()
        finally:
            os.write(told, said.encode())
            os._exit(0)
    os.waitpid(child, 0)
    os.close(told)
    with open(heard) as report:
        before, after, why = report.read().split(" ", 2)
    assert (before, after) == ("99", "39")
    assert why.startswith("39 processes may be started of the 64")
