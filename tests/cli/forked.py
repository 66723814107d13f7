"""The `afresh` command without its imports: a process that has done them once forks for every command.

    python -m cli.forked SOCKET

Everything else is as in a new process: folder, environment, umask, standard streams, signals, exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

# It waits for the command that works in its place, passes signals on, and takes it along when it is killed.
COMMAND = """#!{python} -IS
import json, os, signal, socket, sys
umask = os.umask(0o077)
os.umask(umask)
asked = json.dumps([sys.argv[1:], os.getcwd(), umask, dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as there:
    there.connect({place!r})
    socket.send_fds(there, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    there.sendall(asked)
    process = int.from_bytes(there.recv(8), "big")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(process, number))
    code = there.recv(1)
os._exit(code[0] if code else 1)
"""


@contextmanager
def forked(folder: Path) -> Iterator[Path]:
    """A folder with a command `afresh` in it, which works until the block ends."""
    place, command = folder / "socket", folder / "afresh"
    command.write_text(COMMAND.format(python=sys.executable, place=str(place)))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    program = [sys.executable, "-m", "cli.forked", str(place)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield folder
        finally:
            process.kill()


@cache
def shared() -> Path:
    """Such a command for all tests of this process, until it ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(forked(Path(stack.enter_context(tempfile.TemporaryDirectory())))) / "afresh"


def serve(place: str) -> None:
    import duckdb
    import httpx
    import polars
    import pyarrow.parquet

    from afresh.cli import main
    from afresh.client import connect
    from afresh.guard import open as opening
    from afresh.server import app, patience

    assert {app, duckdb, httpx, polars, pyarrow.parquet, connect, opening, patience}  # imported once, for all commands
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is not waited for
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        print("ready", flush=True)
        while True:
            there, _ = door.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                door.close()
                there.sendall(bytes([answer(there, main)]))
                os._exit(0)
            there.close()


def answer(there: socket.socket, main: Callable[[], object]) -> int:
    """Run a command as whoever asks would, and say how it ended."""
    size, streams, _, _ = socket.recv_fds(there, 8, 3)
    with there.makefile("rb") as rest:
        arguments, folder, umask, environment = json.loads(rest.read(int.from_bytes(size, "big")))
    there.sendall(os.getpid().to_bytes(8, "big"))
    threading.Thread(target=end_with, args=(there,), daemon=True).start()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["afresh", *arguments]
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def end_with(there: socket.socket) -> None:
    """Whoever asked says no more: the connection is read only to see that they are killed."""
    there.recv(1)
    os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1])
