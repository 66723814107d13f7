"""Run one command in confinement: a separate program that needs only Python, started by `running`.

It reads its instructions as JSON from stdin, and writes two lines of JSON to the descriptor that its argument names:
that the command was started, and how it ended. If started by root on Linux, the command runs as another user, in its
own namespaces: it sees no other process, no network unless that is allowed, a file system that is read-only except for
its folder, and temporary folders that vanish with it. Everywhere, it has limits and a scrubbed environment, and when it
ends, exceeds a limit of its own, or this program gets SIGTERM, everything it started is killed, even processes that
moved to a session of their own.

Limits are measured on the command and what it started, never on other processes, even of the same user. Time for which
others kept it from the processors does not count.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import socket
import struct
import sys
import time
import warnings  # noqa: F401  # os.execvpe imports it, when Python's own files may be out of reach
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

_LINUX = sys.platform.startswith("linux")
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE, _NOSUID, _NODEV, _NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
_SUBREAPER, _DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 36, 1, 38
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000  # the same number on all architectures
_STEP = 0.02  # seconds between two checks
_LOOK = 5  # checks between two looks at what it uses
_PER_USER_NAMESPACE = (5, 14)  # since when Linux counts the processes of a user in each namespace separately
INSIDE = "/tmp/run"
"""The path of the folder for a command that has its own file system."""
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


class _Stop:
    """Whether this program was told to stop."""

    told = False


def main() -> None:
    """Follow the instructions on stdin."""
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    signal.signal(signal.SIGTERM, lambda number, frame: setattr(_Stop, "told", True))
    try:
        found = _followed(json.load(sys.stdin), report)
    except Exception as error:  # of this program: it has nothing to do with the command
        found = _refused(error)
    _say(report, found)


def _followed(spec: Mapping[str, Any], report: int) -> dict[str, Any]:
    if _LINUX:
        _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        _call("prctl", _SUBREAPER, 1, 0, 0, 0)
    alone = _LINUX and os.geteuid() == 0 and spec["uid"] is not None and _unshared(_NEWPID)
    heard, told = os.pipe()
    began = time.monotonic()
    first = os.fork()
    if not first:
        os.close(heard)
        _first(spec, alone, told)
    os.close(told)
    _say(report, {"alone": alone})
    try:
        ended = _watch(first, spec)
    except Exception:  # by now the command may have brought it about
        ended = "lost"
    _end_all(first)
    said = os.read(heard, 65536).splitlines()  # the first line decides: only what ends the command early comes before
    found = {"ended": "lost", "code": 0, **(json.loads(said[0]) if said else {})}
    if ended is not None:
        found |= {"ended": ended, "code": 137}
    return found | {"seconds": time.monotonic() - began, "alone": alone}


def _refused(error: Exception) -> dict[str, Any]:
    """The report of a command that was never started; nothing in it comes from the command."""
    why = f"{error.strerror} ({error.filename})" if isinstance(error, OSError) else repr(error)
    return {"ended": "refused", "code": 0, "why": why, "seconds": 0.0, "alone": False}


def _watch(first: int, spec: Mapping[str, Any]) -> str | None:
    """Wait for the first process; returns the limit of its own for which it was killed, or that it was "stopped"."""
    clock, step = _Clock(), 0
    while True:
        done, _ = os.waitpid(first, os.WNOHANG)
        if done:
            return None
        why = "stopped" if _Stop.told else None
        if why is None and step % _LOOK == 0:
            tree = _tree(os.getpid())
            if clock.passed(tree) > spec["seconds"]:
                why = "time"
            elif sum(each.threads for each in tree.values()) - 1 > spec["processes"]:  # its first process is ours
                why = "processes"
            elif _resident(tree) > spec["memory"] and _own_share(tree) > spec["memory"]:
                why = "memory"
        if why is not None:
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)
            return why
        step += 1
        time.sleep(_STEP)


class _Clock:
    """The time that a command had: without that for which it was ready, and others had all processors."""

    def __init__(self) -> None:
        self._had, self._at, self._idle, self._used = 0.0, time.monotonic(), _idle(), 0.0

    def passed(self, tree: Mapping[int, _Process]) -> float:
        """The seconds until now."""
        at, idle, used = time.monotonic(), _idle(), sum(each.used for each in tree.values())
        step, free = at - self._at, max(idle - self._idle, 0.0) + max(used - self._used, 0.0)
        self._had += min(step, free) if free < step and _ready(tree) else step
        self._at, self._idle, self._used = at, idle, used
        return self._had


def _idle() -> float:
    """The seconds that the processors of this program have been idle, all together; elsewhere, for ever."""
    if not _LINUX:
        return 1e9 * time.monotonic()
    mine, total = os.sched_getaffinity(0), 0
    with open("/proc/stat", "rb") as file:
        for line in file:
            name, *times = line.split()
            if name[3:].isdigit() and name.startswith(b"cpu") and int(name[3:]) in mine:
                total += int(times[3]) + int(times[4])
    return total / os.sysconf("SC_CLK_TCK")


def _ready(tree: Mapping[int, _Process]) -> bool:
    """Whether any thread could run right now."""
    for each in tree:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{thread}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[0] == b"R":
                        return True
    return False


def _first(spec: Mapping[str, Any], alone: bool, told: int) -> NoReturn:
    """Prepare the command's surroundings, run it, and report how it ended; with namespaces, this is their process 1."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if _LINUX:
            _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        folder = _own_files(spec) if alone else spec["folder"]
        asks, hears = socket.socketpair()
        child = os.fork()
        if not child:
            _become(spec, folder, alone, told, asks)
        asks.close()
        _map_user(hears, spec)
        while True:
            who, status = os.wait()
            if who == child:
                break
        code = os.waitstatus_to_exitcode(status)
        _say(told, {"ended": "signal" if code < 0 else "exit", "code": abs(code)})
    except Exception as error:
        _say(told, _refused(error))
    finally:
        os._exit(0)


def _say(told: int, what: Mapping[str, Any]) -> None:
    os.write(told, json.dumps(what).encode() + b"\n")


def _become(spec: Mapping[str, Any], folder: str, alone: bool, told: int, asks: socket.socket) -> NoReturn:
    """Become the command: as another user, with limits, and with only three descriptors."""
    try:
        os.chdir(folder)
        if _LINUX:
            with open("/proc/self/oom_score_adj", "w") as file:  # if memory runs out, let it hit the command
                file.write("1000")
        limits = {"CORE": 0, "FSIZE": spec["file_size"], "NOFILE": 1024}
        limits["DATA" if _LINUX else "AS"] = spec["memory"]
        if spec["uid"] is not None:
            os.setgroups([])
            if _counted_apart(alone, asks):
                limits["NPROC"] = spec["processes"]
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        asks.close()
        for name, most in limits.items():
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
        if _LINUX:
            _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # which another user does not inherit
            _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        readable = [path for path in spec["secrets"] if spec["uid"] is not None and os.access(path, os.R_OK)]
        if readable:
            _say(told, {"ended": "refused", "readable": readable})
            os._exit(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, told)
        os.closerange(told + 1, 65536)  # and the command does not inherit this one
        environment = {**spec["environment"], "HOME": folder, "PWD": folder, "TMPDIR": "/tmp" if alone else folder}
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(spec["command"][0], spec["command"], environment)
    except Exception as error:  # before the command was there, so never its fault
        why = f"{spec['command'][0]!r} cannot be run: {getattr(error, 'strerror', None) or repr(error)}"
        _say(told, {"ended": "refused", "why": why})
    finally:
        os._exit(1)


def _counted_apart(alone: bool, asks: socket.socket) -> bool:
    """Enter a user namespace, in which only this command's processes count; returns whether there is one.

    Otherwise a limit would count the processes of all runs as this user, and one run could take those of another.
    """
    release = tuple(int(each) for each in os.uname().release.split("-")[0].split(".")[:2] if each.isdigit())
    if not alone or release < _PER_USER_NAMESPACE or not _unshared(_NEWUSER):
        return False
    asks.sendall(os.readlink("/proc/self").encode())
    return asks.recv(1) == b"1"


def _map_user(hears: socket.socket, spec: Mapping[str, Any]) -> None:
    """Give the command's user namespace its only user, if it asks for one."""
    if process := hears.recv(100).decode():
        for kind in ("uid", "gid"):
            with open(f"/proc/{process}/{kind}_map", "w") as file:
                file.write(f"{spec[kind]} {spec[kind]} 1")
        hears.sendall(b"1")
    hears.close()


def _own_files(spec: Mapping[str, Any]) -> str:
    """Make the command's own file system: read-only, with its own folder and temporary places."""
    if not _unshared(_NEWNS | _NEWIPC | (0 if spec["network"] else _NEWNET)):
        raise OSError(1, "no namespaces", "unshare")
    _mount(None, "/", None, _REC | _PRIVATE)
    here = os.open(spec["folder"], os.O_RDONLY | os.O_DIRECTORY)
    _read_only("/", True)
    for place in _TEMPORARY:
        if os.path.isdir(place) and not os.path.islink(place):
            _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, f"size={spec['memory']},mode=1777")
    os.mkdir(INSIDE)
    _mount(f"/proc/self/fd/{here}", INSIDE, None, _BIND)
    os.close(here)
    _read_only(INSIDE, False)
    with contextlib.suppress(OSError):  # a container may not allow it; then other users' processes are visible by name
        _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    if not spec["network"]:
        _loopback()
    return INSIDE


def _loopback() -> None:
    """Bring up the loopback interface of an empty network, for evaluators that connect to themselves."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sH14s", b"lo", 1, b""))  # SIOCSIFFLAGS, up


def _read_only(path: str, wanted: bool) -> None:
    """Make a mount and everything below it read-only, or make one mount writable again."""
    change = struct.pack("QQQQ", 1 if wanted else 0, 0 if wanted else 1, 0, 0)
    flags = _RECURSIVE if wanted else 0
    _call("syscall", _MOUNT_SETATTR, _HERE, path.encode(), flags, change, len(change))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    given = [None if each is None else each.encode() for each in (source, target, kind, options)]
    _call("mount", given[0], given[1], given[2], ctypes.c_ulong(flags), given[3])


def _unshared(flags: int) -> bool:
    try:
        _call("unshare", flags)
    except OSError:
        return False
    return True


def _call(name: str, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    found = int(getattr(libc, name)(*wide))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return found


def _end_all(first: int) -> None:
    """Kill all descendants of this process, which adopts orphans wherever they went; elsewhere, kill the group."""
    if not _LINUX:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(first, signal.SIGKILL)
    while _LINUX and (left := _tree(os.getpid())):
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


class _Process(NamedTuple):
    """What one process uses."""

    threads: int
    used: float
    """Seconds of processors, with those of its children that have ended."""


def _tree(top: int) -> dict[int, _Process]:
    """The descendants of a process."""
    if not _LINUX:
        return {}
    parents: dict[int, list[int]] = {}
    known: dict[int, _Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z" or int(fields[1]) == top:
                    parents.setdefault(int(fields[1]), []).append(int(name))
                    used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
                    known[int(name)] = _Process(int(fields[17]), used)
    found, wait = dict[int, _Process](), [top]
    while wait:
        below = parents.get(wait.pop(), [])
        found |= {each: known[each] for each in below}
        wait += below
    return found


def _resident(tree: Mapping[int, _Process]) -> int:
    """The memory of some processes in bytes, where what several share counts for each: never too little."""
    total = 0
    for each in tree:
        with contextlib.suppress(OSError), open(f"/proc/{each}/statm", "rb") as file:
            total += int(file.read().split()[1]) * resource.getpagesize()
    return total


def _own_share(tree: Mapping[int, _Process]) -> float:
    """The same, where what several share counts once; slower, and infinite where the system does not say."""
    total = 0
    for each in tree:
        try:
            with open(f"/proc/{each}/smaps_rollup", "rb") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith((b"Pss:", b"SwapPss:"))) * 1024
        except ProcessLookupError:  # it has ended
            continue
        except OSError:
            if os.path.exists(f"/proc/{each}"):
                return math.inf
    return total


if __name__ == "__main__":
    main()
