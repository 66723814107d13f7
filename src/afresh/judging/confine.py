"""Run one command in confinement: a separate program that needs only Python, started by `running`.

It reads its instructions as JSON from stdin, and writes how the command ended as JSON to the descriptor that its
argument names. If started by root on Linux, the command runs as another user, in its own namespaces: it sees no other
process, no network unless that is allowed, a file system that is read-only except for its folder, and temporary folders
that vanish with it. Everywhere, it has limits and a scrubbed environment, and when it ends, or runs out of time or
memory, everything it started is killed, even processes that moved to a session of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
import warnings  # noqa: F401  # os.execvpe imports it, when Python's own files may be out of reach
from collections.abc import Mapping
from typing import Any, NoReturn

_LINUX = sys.platform.startswith("linux")
_NEWNS, _NEWIPC, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE, _NOSUID, _NODEV, _NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
_SUBREAPER, _DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 36, 1, 38
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000  # the same number on all architectures
_STEP = 0.02  # seconds between two checks
_LOOK = 5  # checks between two sums of memory
INSIDE = "/tmp/run"
"""The path of the folder for a command that has its own file system."""
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def main() -> None:
    """Follow the instructions on stdin."""
    spec = json.load(sys.stdin)
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
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
    ended = _watch(first, spec, began)
    _end_all(first)
    os.set_blocking(heard, True)
    said = os.read(heard, 65536)
    found = {"ended": "exit", "code": _SAID, **(json.loads(said) if said else {})}
    if ended is not None:
        found |= {"ended": ended, "code": 137}
    found |= {"seconds": time.monotonic() - began, "alone": alone}
    os.write(report, json.dumps(found).encode())


def _watch(first: int, spec: Mapping[str, Any], began: float) -> str | None:
    """Wait for the first process; returns "time" or "memory" if it was killed for exceeding that limit."""
    step = 0
    while True:
        done, _ = os.waitpid(first, os.WNOHANG)
        if done:
            return None
        why = None
        if time.monotonic() - began > spec["seconds"]:
            why = "time"
        elif step % _LOOK == 0 and _resident(_below(os.getpid())) > spec["memory"]:
            why = "memory"
        if why is not None:
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)
            return why
        step += 1
        time.sleep(_STEP)


def _first(spec: Mapping[str, Any], alone: bool, told: int) -> NoReturn:
    """Prepare the command's surroundings, run it, and report how it ended; with namespaces, this is their process 1."""
    try:
        if _LINUX:
            _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        folder = _own_files(spec) if alone else spec["folder"]
        child = os.fork()
        if not child:
            _become(spec, folder, alone, told)
        while True:
            who, status = os.wait()
            if who == child:
                break
        code = os.waitstatus_to_exitcode(status)
        if code != _SAID:
            ended = "signal" if code < 0 else "exit"
            os.write(told, json.dumps({"ended": ended, "code": abs(code)}).encode())
    except OSError as error:
        os.write(told, json.dumps({"ended": "refused", "why": f"{error.strerror}: {error.filename}"}).encode())
    finally:
        os._exit(0)


_SAID = 124  # the child itself has reported what is wrong


def _become(spec: Mapping[str, Any], folder: str, alone: bool, told: int) -> NoReturn:
    """Become the command: as another user, with limits, and with only three descriptors."""
    try:
        os.chdir(folder)
        limits = {"CORE": 0, "FSIZE": spec["file_size"], "CPU": int(spec["seconds"]) + 1, "NOFILE": 1024}
        limits["DATA" if _LINUX else "AS"] = spec["memory"]
        if spec["uid"] is not None:
            limits["NPROC"] = spec["processes"]
            os.setgroups([])
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        for name, most in limits.items():
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
        if _LINUX:
            _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        readable = [path for path in spec["secrets"] if spec["uid"] is not None and os.access(path, os.R_OK)]
        if readable:
            os.write(told, json.dumps({"ended": "refused", "readable": readable}).encode())
            os._exit(_SAID)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 65536)
        environment = {**spec["environment"], "HOME": folder, "PWD": folder, "TMPDIR": "/tmp" if alone else folder}
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(spec["command"][0], spec["command"], environment)
    except OSError as error:
        print(f"afresh: {spec['command'][0]!r} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


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
    while _LINUX and (left := _below(os.getpid())):
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _below(top: int) -> list[int]:
    """The descendants of a process."""
    if not _LINUX:
        return []
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z" or int(fields[1]) == top:
                    parents.setdefault(int(fields[1]), []).append(int(name))
    found, wait = [], [top]
    while wait:
        below = parents.get(wait.pop(), [])
        found += below
        wait += below
    return found


def _resident(processes: list[int]) -> int:
    """The total memory of some processes, in bytes."""
    total = 0
    for each in processes:
        with contextlib.suppress(OSError), open(f"/proc/{each}/statm", "rb") as file:
            total += int(file.read().split()[1]) * resource.getpagesize()
    return total


if __name__ == "__main__":
    main()
