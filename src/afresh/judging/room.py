"""What a machine has left for a run, so that no candidate is scored on a machine that lacked what it was promised.

A run is promised what its limits allow: memory, processes, and room for a large file. Before it starts, the machine
must have all of it, besides what is promised to other runs of this user. While it runs, the machine must never be down
to the last of anything.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

_LOOKS, _PAUSE = 5, 0.1  # how often it must lack something, and seconds between two looks
_FILES = 1000  # the fewest files that a disk must have room for


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run may use."""

    memory: int
    processes: int
    disk: int

    def __add__(self, other: Needs) -> Needs:
        """What both may use together."""
        return Needs(self.memory + other.memory, self.processes + other.processes, self.disk + other.disk)


LAST = Needs(memory=48_000_000, processes=32, disk=8_000_000)
"""A machine with less than this is about to fail whoever asks it for more."""


def lacking(needs: Needs, places: Mapping[str, str]) -> str:
    """What the machine lacks, in words, with the remedy; empty if nothing. `places` are folders by what they are."""
    if (memory := free_memory()) < needs.memory:
        return f"{_size(memory)} of memory are left of the {_size(needs.memory)} promised to runs; free some memory."
    if (processes := free_processes()) < needs.processes:
        return f"{processes:,.0f} processes may be started of the {needs.processes:,} promised to runs; end some."
    for name, path in places.items():
        with contextlib.suppress(OSError):
            found = os.statvfs(path)
            if (disk := found.f_bavail * found.f_frsize) < needs.disk:
                return f"{_size(disk)} are left on the disk of {name} of {_size(needs.disk)} needed; free some space."
            if found.f_files and found.f_favail < _FILES:
                return f"the disk of {name} has no room for more files; remove some."
    return ""


def lacks(needs: Needs, places: Mapping[str, str]) -> str:
    """The same if it lasts: the system may take a moment to free what a run had."""
    why = lacking(needs, places)
    for _ in range(_LOOKS):
        if not why:
            break
        time.sleep(_PAUSE)
        why = lacking(needs, places)
    return why


def free_memory() -> float:
    """How many more bytes processes can have, as far as the system says."""
    told = _table("/proc/meminfo")
    free = _kilobytes(told, "MemAvailable") + (_kilobytes(told, "SwapFree") if "SwapFree" in told else 0)
    if _text("/proc/sys/vm/overcommit_memory") == "2":  # then memory is refused before it is used up
        free = min(free, _kilobytes(told, "CommitLimit") - _kilobytes(told, "Committed_AS"))
    reclaimed = _table(f"{_group()}/memory.stat").get("inactive_file", "0")
    return min(free, _left_of("memory") + float(reclaimed))


def free_processes() -> float:
    """How many more processes and threads can be started."""
    most = min(_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max"))
    running = _text("/proc/loadavg").partition("/")[2].partition(" ")[0]
    free = min(most - float(running or 0), _left_of("pids"))
    return min(free, _left_to_user())


def killed() -> float:
    """How many processes the system has killed because memory ran out."""
    return float(_table("/proc/vmstat").get("oom_kill", "0"))


def _left_to_user() -> float:
    """How many more processes this user may start; root's are not limited."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return inf
    import resource

    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return inf if most == resource.RLIM_INFINITY else most - sum(_threads_of(os.getuid()))


def _threads_of(user: int) -> Iterator[int]:
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    yield int(_text(f"/proc/{name}/stat").rpartition(")")[2].split()[17])


def _left_of(kind: str) -> float:
    """What the limit of this container or service leaves."""
    return _number(f"{_group()}/{kind}.max") - _number(f"{_group()}/{kind}.current", 0.0)


def _group() -> str:
    lines = _text("/proc/self/cgroup").splitlines()
    return "/sys/fs/cgroup" + next((line[3:] for line in lines if line.startswith("0::")), "").rstrip("/")


def _text(path: str) -> str:
    """What the system says in one of its files; empty where it has no such file."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(path: str, otherwise: float = inf) -> float:
    found = _text(path)
    return float(found) if found.isdigit() else otherwise


def _table(path: str) -> dict[str, str]:
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {words[0]: words[1] for words in lines if len(words) > 1}


def _kilobytes(told: Mapping[str, str], name: str) -> float:
    return float(told[name]) * 1024 if name in told else inf


def _size(size: float) -> str:
    return f"{max(size, 0) / 1e6:,.0f} MB"
