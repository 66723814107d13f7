"""Starts servers quickly: a process that has imported everything, and forks for each.

    python -m server.warm CONFIG

It reads lines from stdin: `PORT` kills whatever serves on that port (SIGKILL), starts a server there, and says its id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path


class Warm:
    """Such a process, from outside. Safe to use from several threads."""

    def __init__(self, folder: Path, config: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._lock = threading.Lock()
        with (folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "server.warm", str(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=folder,
            )

    def start(self, port: int) -> None:
        """Kill what serves there, and start another."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self._lock:
            print(port, file=self.process.stdin, flush=True)
            if not self.process.stdout.readline():
                raise AssertionError("the process that starts servers has ended; see its log")

    def stop(self) -> None:
        """Kill all of them."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def main() -> None:
    from afresh.server import api, app, models, patience, run, steward
    from afresh.server.config import read_config

    assert {api, app, models, patience, steward}  # imported once, for all of them
    config = read_config(sys.argv[1])
    running: dict[int, int] = {}

    def kill(port: int) -> None:
        if port in running:
            os.kill(running[port], signal.SIGKILL)
            os.waitpid(running.pop(port), 0)

    for line in sys.stdin:
        port = int(line)
        kill(port)
        if (child := os.fork()) == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            run.serve(replace(config, port=port), None)
            os._exit(0)
        running[port] = child
        print(child, flush=True)
    for port in list(running):
        kill(port)


if __name__ == "__main__":
    main()
