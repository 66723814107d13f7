"""The `afresh` command without its imports: a process that has done them once forks for every command.

    python -m cli.forked SOCKET

Everything else is as in a new process: folder, environment, umask, standard streams, exit code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Servers are sent signals, so they are processes of their own.
COMMAND = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] in (["serve"], ["mcp"]):
    os.execv({real!r}, sys.argv)
umask = os.umask(0o077)
os.umask(umask)
asked = json.dumps([sys.argv[1:], os.getcwd(), umask, dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as there:
    there.connect({place!r})
    socket.send_fds(there, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    there.sendall(asked)
    code = there.recv(1)
os._exit(code[0] if code else 1)
"""


@contextmanager
def forked(folder: Path) -> Iterator[Path]:
    """A folder with a command `afresh` in it, which works until the block ends."""
    place, command = folder / "socket", folder / "afresh"
    real = Path(sys.executable).with_name("afresh")
    command.write_text(COMMAND.format(python=sys.executable, real=str(real), place=str(place)))
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


def serve(place: str) -> None:
    import duckdb
    import httpx
    import polars
    import pyarrow.parquet

    from afresh.cli import main
    from afresh.client import connect
    from afresh.guard import open as opening

    assert {duckdb, httpx, polars, pyarrow.parquet, connect, opening}  # imported once, for all commands
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is not waited for
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        print("ready", flush=True)
        while True:
            there, _ = door.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                there.sendall(bytes([answer(there, main)]))
                os._exit(0)
            there.close()


def answer(there: socket.socket, main: Callable[[], object]) -> int:
    """Run a command as whoever asks would, and say how it ended."""
    size, streams, _, _ = socket.recv_fds(there, 8, 3)
    with there.makefile("rb") as rest:
        arguments, folder, umask, environment = json.loads(rest.read(int.from_bytes(size, "big")))
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


if __name__ == "__main__":
    serve(sys.argv[1])
