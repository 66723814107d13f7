"""A small TCP proxy that cuts connections at a chosen moment."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Passes bytes to and from a service; `cut_after` says after how many bytes of each direction it hangs up, once."""

    def __init__(self, port: int) -> None:
        self._target, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut: tuple[str, int] | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for way, source, sink in (("request", client, server), ("response", server, client)):
                threading.Thread(target=self._pass, args=(way, source, sink), daemon=True).start()

    def _pass(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                if self.cut is not None and self.cut[0] == way and passed + len(data) >= self.cut[1]:
                    keep = self.cut[1] - passed
                    self.cut = None
                    self.cuts += 1
                    sink.sendall(data[:keep])
                    break
                passed += len(data)
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
