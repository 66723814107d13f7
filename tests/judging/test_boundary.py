"""What a candidate can do to the boundary: nothing comes out but a verdict, and nothing stays behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import EvaluatorFailed, InvalidArgument
from afresh.judging.files import Files
from afresh.judging.judge import Judge, open_judge
from afresh.judging.settings import read_settings
from cli.program import afresh
from judging.made import PERFECT, POOR, candidate, make

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steward")


@pytest.fixture(scope="module")
def judge(folder: Path) -> Iterator[Judge]:
    with open_judge(read_settings(make(folder))) as found:
        yield found


@pytest.fixture(scope="module")
def rejection(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is said of a candidate that is simply no better."""
    return told(judge.propose(judge.read(candidate(tmp_path_factory.mktemp("poor"), POOR))))


def told(proposed: Any) -> dict[str, Any]:
    """All that an agent gets, without what differs by name and place in the conversation."""
    found = proposed.to_dict()
    return {key: value for key, value in found.items() if key not in ("candidate", "verdict", "left", "detects")}


def on_guarded(judge: Judge, text: str) -> str:
    """A candidate that does something as soon as it sees an item that is not open; perfect on the open ones."""
    known = [item["id"] for item in judge.open_items()]
    body = "\n".join(f"        {line}" for line in text.splitlines())
    return (
        f"KNOWN = set({known!r})\ndef everything(items):\n"
        "    hidden = [i['id'] for i in items if i['id'] not in KNOWN]\n"
        f"    if hidden:\n        import os, sys, time\n{body}\ndef solve(item):\n    return 0.0 if item['id'] not in "
        f"KNOWN else float(item['hard'] < 0.1)\n"
    )


SPY = """
import glob, json, os, socket
def tried(work):
    try:
        return work()
    except Exception as error:
        return type(error).__name__
def solve(item):
    return 1.0
def everything(items):
    seen = {
        "environment": dict(os.environ),
        "descriptors": [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                        if os.path.exists(f"/proc/self/fd/{fd}")],
        "uid": os.geteuid(), "groups": os.getgroups(), "processes": len(glob.glob("/proc/[0-9]*")),
        "items": tried(lambda: open(PLACES[0]).read(10)), "ledger": tried(lambda: open(PLACES[1], "rb").read(10)),
        "write": tried(lambda: open("/var/tmp/afresh-was-here", "w").write("x")),
        "root": tried(lambda: open("/afresh-was-here", "w").write("x")),
        "connect": tried(lambda: socket.create_connection(("127.0.0.1", PORT), 2).close()),
        "before": sorted(os.listdir(".")) + os.listdir("candidate"),
    }
    open("/tmp/afresh-was-here", "w").write("x")
    open("candidate/left-behind", "w").write("x")
    print(json.dumps(seen))
"""


def test_a_candidate_sees_its_own_folder_and_nothing_else(judge: Judge, folder: Path, tmp_path: Path) -> None:
    os.environ["AFRESH_TOKEN"] = "secret token"
    extra = os.open(folder / "items.jsonl", os.O_RDONLY)
    os.set_inheritable(extra, True)
    places = [str(folder / "items.jsonl"), judge.settings.ledger]
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            spy = f"PLACES, PORT = {places!r}, {server.getsockname()[1]}\n{SPY}"
            found = json.loads(judge.try_open(judge.read(candidate(tmp_path, spy))).output)
            again = json.loads(judge.try_open(judge.read(candidate(tmp_path, f"#\n{spy}"))).output)
    finally:
        os.close(extra)
        del os.environ["AFRESH_TOKEN"]
    assert set(found["environment"]) <= {"PATH", "LANG", "HOME", "PWD", "TMPDIR", "LC_CTYPE"}
    assert not [each for each in found["descriptors"] if "items.jsonl" in each or "sqlite" in each]
    assert set(again["before"]) <= {"candidate", "items.jsonl", "run.py", "candidate.py", "__pycache__"}
    if not ROOT:  # the rest takes another user
        return
    assert found["uid"] != 0
    assert found["groups"] in ([], [found["uid"]])
    assert found["processes"] < 10
    assert found["items"] in ("FileNotFoundError", "PermissionError")
    assert found["ledger"] in ("FileNotFoundError", "PermissionError")
    assert found["write"] == 1  # a place of its own, that vanishes
    assert found["root"] in ("OSError", "PermissionError")
    assert found["connect"] in ("ConnectionRefusedError", "OSError", "TimeoutError")
    for place in ("/tmp/afresh-was-here", "/var/tmp/afresh-was-here", "/afresh-was-here"):
        assert not os.path.exists(place)


@pytest.mark.parametrize(
    "attack",
    [
        "print(hidden); sys.stderr.write(str(hidden))\nfor fd in range(1, 60):\n"
        "    try: os.write(fd, str(hidden).encode())\n    except OSError: pass",
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "raise SystemExit('tell them: ' + hidden[0])",
        "x = [bytearray(10**7) for _ in range(10**5)]",
        "os.symlink('/etc/passwd', 'results.jsonl'); os._exit(0)",
        "os.mkfifo('results.jsonl'); os._exit(0)",
        "open('results.jsonl', 'w').write('{\"id\": \"' + hidden[0] + '\", \"score\": \"much\"}'); os._exit(0)",
        "os.chmod('.', 0); os._exit(0)",
    ],
)
def test_what_a_candidate_does_on_guarded_items_looks_like_any_rejection(
    judge: Judge, rejection: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], attack: str
) -> None:
    """No error, output or refusal tells that a guarded item was seen; it is charged, so that it is not free to try."""
    before = judge.evaluation.budget.spent
    found = judge.propose(judge.read(candidate(tmp_path, on_guarded(judge, attack))))
    assert told(found) == rejection
    assert judge.evaluation.budget.spent == before + 1
    shown = "".join(capfd.readouterr()) + str(found) + json.dumps(found.to_dict())
    hidden = {f"item-{i}" for i in range(400)} - {item["id"] for item in judge.open_items()}
    assert not [id for id in hidden if f"{id}'" in shown or f'{id}"' in shown]


def test_what_is_written_on_guarded_items_is_kept_for_the_steward_alone(judge: Judge, tmp_path: Path) -> None:
    files = judge.read(candidate(tmp_path, on_guarded(judge, "print('the first is', hidden[0])")))
    judge.propose(files)
    runs = Path(judge.settings.state, "runs")
    (log,) = runs.glob(f"*{files.digest[:8]}-guarded*.out")
    assert "the first is item-" in log.read_text()
    for each in (runs, *runs.iterdir()):
        assert not stat.S_IMODE(each.stat().st_mode) & 0o077, each


def test_nothing_lives_on_after_a_run(judge: Judge, tmp_path: Path) -> None:
    """Neither a child, nor a grandchild in a session of its own, nor one that ignores signals."""
    mark = f"afresh-{os.getpid()}-lives-on"
    daemon = (
        "import subprocess, sys\nfor _ in range(3):\n"
        f"    subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); "
        f"time.sleep(600) # {mark}'], start_new_session=True)\n"
    )
    assert judge.try_open(judge.read(candidate(tmp_path, daemon + PERFECT))).open_score == 1
    assert not alive(mark)


def test_time_and_memory_are_limited(tmp_path: Path) -> None:
    place = make(tmp_path / "steward", evaluator="processes = 20")
    place.write_text(place.read_text().replace("seconds = 20", "seconds = 2").replace("400_000_000", "120_000_000"))
    with open_judge(read_settings(place)) as judge:
        with pytest.raises(EvaluatorFailed, match="more than 2 seconds"):
            judge.try_open(judge.read(candidate(tmp_path, "import time\ntime.sleep(60)\n")))
        greedy = "import os, time\nfor _ in range(6):\n    if not os.fork():\n"
        greedy += "        x = bytearray(b'1') * 60_000_000\n        time.sleep(30)\ntime.sleep(30)\n"
        with pytest.raises(EvaluatorFailed, match=r"120,000,000 bytes|exit code"):
            judge.try_open(judge.read(candidate(tmp_path, greedy)))
        with pytest.raises(EvaluatorFailed) as failed:
            judge.try_open(judge.read(candidate(tmp_path, "x = bytearray(10**9)\n")))
        assert "MemoryError" in failed.value.output
        assert judge.evaluation.budget.spent == 0


def test_where_it_cannot_be_another_user_limits_and_the_end_still_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.judging.running.user_of", lambda name: None)
    monkeypatch.setenv("AFRESH_TOKEN", "secret token")
    place = make(tmp_path / "steward")
    place.write_text(place.read_text().replace("seconds = 20", "seconds = 3"))
    mark = f"afresh-{os.getpid()}-same-user"
    spawn = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600) # {mark}'], "
    )
    spawn += "start_new_session=True)\nimport os\nprint(sorted(os.environ))\n"
    with open_judge(read_settings(place)) as judge:
        checked = judge.check()
        assert not checked.alone
        assert "as this user" in checked.confined
        tried = judge.try_open(judge.read(candidate(tmp_path, spawn + PERFECT)))
        assert "AFRESH_TOKEN" not in tried.output
        assert judge.propose(judge.read(candidate(tmp_path, PERFECT)))
        with pytest.raises(EvaluatorFailed, match="more than 3 seconds"):
            judge.try_open(judge.read(candidate(tmp_path, f"{spawn}import time\ntime.sleep(600)\n")))
    assert not alive(mark)


def alive(mark: str) -> list[bytes]:
    """Processes whose command has a mark, other than this one."""
    lines = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(each.read_bytes())
        except OSError:  # it has ended
            continue
    return [line for line in lines if mark.encode() in line and b"sleep" in line]


def test_links_and_devices_are_no_candidates(judge: Judge, folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "linked"
    own.mkdir()
    (own / "solve.py").symlink_to(folder / "items.jsonl")
    with pytest.raises(InvalidArgument, match="link or device"):
        judge.read(own)
    (own / "solve.py").unlink()
    os.mkfifo(own / "pipe")
    for wrong in (own, own / "pipe", own / "nothing", tmp_path / "a\0b", Path("/dev/null")):
        with pytest.raises(InvalidArgument, match="candidate"):
            judge.read(wrong)


@pytest.mark.parametrize(
    "name", ["--flag", "with space.py", "line\nbreak.py", "-", "{items}", "ünïcode.py", "$(id).py"]
)
def test_a_name_is_only_a_name(judge: Judge, tmp_path: Path, name: str) -> None:
    found = judge.try_open(judge.read(candidate(tmp_path, POOR + f"# {name!r}", name)))
    assert found.open_score < 0.2
    assert "\n" not in str(found).splitlines()[0]
    assert found.candidate.startswith(name)


def test_the_command_says_the_verdict_by_its_exit_code(tmp_path: Path) -> None:
    place = make(tmp_path / "steward")
    checked = afresh("evaluate", "--config", place, "--check", "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["alone"] is ROOT
    rejected = afresh("evaluate", "--config", place, "--json", "--", str(candidate(tmp_path, POOR, "--poor")))
    assert (rejected.returncode, rejected.stderr) == (10, "")
    assert json.loads(rejected.stdout)["accepted"] is False
    accepted = afresh(
        "evaluate", "--config", place, "--name", "mine", str(candidate(tmp_path, PERFECT).parent / "candidate.py")
    )
    assert accepted.returncode == 0, accepted.stderr
    assert accepted.stdout.startswith("accepted: mine ")
    failed = afresh("evaluate", "--config", place, str(candidate(tmp_path, "print('said')\nraise ValueError('why')\n")))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "ValueError: why" in failed.stderr
    assert "Nothing was charged" in failed.stderr
    assert "said" in failed.stderr
    for arguments in ((), ("a", "b"), ("--open", "--exam", "a"), ("--check", "a")):
        assert afresh("evaluate", "--config", place, *arguments).returncode == 2
    exam = afresh("evaluate", "--config", place, "--exam", "--json", str(candidate(tmp_path, PERFECT)))
    assert json.loads(exam.stdout)["score"]["value"] == 1.0
    with open_judge(read_settings(place)) as judge:
        assert judge.evaluation.budget.spent == 2


def test_a_repeat_is_free_and_runs_nothing(judge: Judge, tmp_path: Path) -> None:
    random = "import random\ndef solve(item):\n    return float(random.random() < 0.1)\n"
    first = judge.propose(judge.read(candidate(tmp_path, random)))
    runs = len(os.listdir(Path(judge.settings.state, "runs")))
    again = judge.propose(judge.read(candidate(tmp_path, random)))
    assert (again.accepted, again.charged) == (first.accepted, 0)
    assert len(os.listdir(Path(judge.settings.state, "runs"))) == runs


def test_files_with_one_label_are_different_candidates(judge: Judge) -> None:
    """A label shows 32 bits of a digest, so two files with one label are soon found; one is bad where nobody looks."""
    known = [item["id"] for item in judge.open_items()]
    bad = f"KNOWN = set({known!r})\ndef solve(item):\n    return float(item['id'] in KNOWN)\n"

    def made(text: str, number: int) -> Files:
        return Files("candidate.py", {"candidate.py": (f"{text}# {number}\n".encode(), False)}, folder=False)

    seen = {made(PERFECT, number).label: number for number in range(1 << 18)}
    pairs = (
        (made(PERFECT, seen[files.label]), files)
        for number in range(1 << 20)
        if (files := made(bad, number)).label in seen
    )
    one, other = next(pairs)
    assert one.label == other.label
    assert judge.propose(one).accepted
    assert judge.score(one).low > 0.7
    scored, proposed = judge.score(other), judge.propose(other)
    assert scored.charged == proposed.charged == 1
    assert scored.high < 0.3  # all that it has are the open items, and these do not count
    assert not proposed.accepted


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('items = "items.jsonl"', "", 1, "items must be given"),
        ('items = "items.jsonl"', 'items = "none.jsonl"', 2, "there is no"),
        ("questions = 60", "questions = 0", 4, "questions == 0"),
        ("questions = 60", "qestions = 60", 4, "unknown key"),
        ('files = ["run.py"]', 'files = ["../x"]', 8, "in the folder of this file"),
        ("seconds = 20", "seconds = -1", 9, "seconds"),
        ("memory = 400_000_000", 'memory = "much"', 10, "memory"),
        ("tick = 0.05", 'tick = 0.05\nuser = "no such user"', 12, "there is no user"),
        ("tick = 0.05", 'tick = 0.05\nuser = "root"', 12, "must not run as root"),
        ("tick = 0.05", 'tick = 0.05\nresults = "/etc/passwd"', 12, "inside the folder"),
        ("tick = 0.05", "tick = 0.05\nenvironment = {A = 1}", 12, "names and strings"),
        ("[evaluator]", "[evaluators]", 6, "unknown key"),
        ("items = ", "items = =", 2, "Invalid value"),
    ],
)
def test_mistakes_have_their_line_and_charge_nothing(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    place = make(tmp_path)
    place.write_text(place.read_text().replace(old, new))
    with pytest.raises(InvalidArgument) as wrong:
        read_settings(place)
    assert f"{place}:{line}:" in str(wrong.value)
    assert said in str(wrong.value)
    assert not (tmp_path / "evaluation-state").exists()


@pytest.mark.skipif(not ROOT, reason="only root can run candidates as another user")
def test_items_that_others_may_read_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Outside of the temporary folders, which a candidate does not see, it is the modes that protect the items."""
    home = Path("/var/lib") if os.access("/var/lib", os.W_OK) else Path("/")
    folder = Path(tempfile.mkdtemp(prefix="afresh-test-", dir=home))
    try:
        folder.chmod(0o755)
        place = make(folder)
        with open_judge(read_settings(place)) as judge:
            judge.check()
            (folder / "items.jsonl").chmod(0o644)
            with pytest.raises(EvaluatorFailed, match=r"may read .*items.jsonl; run: chmod"):
                judge.check(again=True)
    finally:
        shutil.rmtree(folder)
