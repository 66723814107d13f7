"""Start and stop: what `afresh serve` does."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from afresh import checks
from afresh.errors import DataError, InvalidArgument, MissingExtra
from afresh.server.config import Config, Dataset
from afresh.settings.reader import NAME


def serve(config: Config, path: str | None) -> None:
    """Serve until a signal stops it. `path` is the configuration file, which several workers need."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("FastAPI and uvicorn", "server") from None
    from afresh.server.app import CONFIG, Desk, make_app
    from afresh.server.patience import Patient

    options = {
        "host": config.host,
        "port": config.port,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 30,
        "proxy_headers": False,
        "http": Patient,
        "ws": "none",
    }
    desk = Desk(config)  # mistakes in the data are reported before anything listens
    try:
        check_free(config)
    except InvalidArgument:
        desk.close()
        raise
    if config.workers > 1 and path is not None:
        desk.close()  # every worker opens its own copy
        os.environ[CONFIG] = os.path.abspath(path)
        uvicorn.run("afresh.server.app:from_environment", factory=True, workers=config.workers, **options)  # type: ignore[arg-type]
    else:
        uvicorn.run(make_app(config, desk), **options)  # type: ignore[arg-type]


def check_free(config: Config) -> None:
    """Refuse an address that the service cannot listen on; uvicorn would log it and exit with a code of its own."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the service itself does
            probe.bind(address)
    except OSError as error:
        raise InvalidArgument(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}; stop the program that listens there, or "
            "choose another port with --port."
        ) from None


def first_try(data: str, questions: int | None, port: int) -> Config:
    """A configuration with one dataset, on the ledger that a command without a service would use."""
    from afresh.ledger import default_place

    if "://" not in data and not Path(data).expanduser().exists():
        raise DataError(f"there is no file {checks.shown(data)}.")
    ledger = default_place()
    name = "".join(c if NAME.fullmatch(f"a{c}") else "-" for c in Path(data).stem).lstrip("-_.") or "data"
    state = os.path.dirname(os.path.abspath(os.path.expanduser(ledger))) if "://" not in ledger else "afresh-state"
    wishes = {} if questions is None else {"questions": questions}
    return Config({name: Dataset(name, data, wishes=wishes)}, state=state, ledger=ledger, port=port)
