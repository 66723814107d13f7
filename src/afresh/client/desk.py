"""A desk at a service: its public side, and the connection to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from afresh.client.connection import Connection
from afresh.errors import GuardClosed
from afresh.guard.opened import as_kind
from afresh.guard.scope import Scope
from afresh.mechanisms.base import coarseness_for
from afresh.queries.tree import Type
from afresh.wire.plans import plan_from_json
from afresh.wire.results import from_json
from afresh.wire.tables import from_file


class RemoteDesk:
    """One dataset of a service."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Ask the service for its description."""
        self.connection, self.name, self.closed = connection, name, False
        self.told: dict[str, Any] = connection.get(f"/v1/datasets/{name}")
        self.plan = plan_from_json(self.told["plan"])
        self.rows = int(self.told["rows"])
        self.terms = SimpleNamespace(simulated=bool(self.told["simulated"]))
        public = self.told.get("features") == "public"
        self.scope = Scope("public", self.told["label"]) if public else Scope()

    @property
    def schema(self) -> Mapping[str, Type | None]:
        """The columns that questions may name."""
        kinds = {kind.value: kind for kind in Type}
        return {name: kinds.get(column["type"]) for name, column in self.told["columns"].items()}

    def check_open(self) -> None:
        """Refuse to go on once it is closed."""
        if self.closed:
            raise GuardClosed("this guard is closed; open the data again (nothing is lost).")

    def coarseness(self, precision: float | None) -> float:
        """The largest multiple of the plan's noise that still gives a half-width on [0, 1]."""
        return 1.0 if precision is None else coarseness_for(self.plan.mechanism, precision)

    def post(self, what: str, body: Any, kind: str = "datasets") -> Any:
        """Send to a door of this dataset, and return the response as a document."""
        self.check_open()
        return self.connection.post(f"/v1/{kind}/{self.name}/{what}", body)

    def ask(self, what: str, body: Any) -> Any:
        """Do the same, and return a result."""
        return from_json(self.post(what, body))

    def get(self, what: str, **query: Any) -> Any:
        """Get the document at a door of this dataset."""
        self.check_open()
        return self.connection.get(f"/v1/datasets/{self.name}/{what}", **query)

    def frame(self, what: str, of: str = "datasets", kind: str = "pandas") -> Any:
        """Get a table that the service hands out, as a frame of the given kind."""
        self.check_open()
        table, places = from_file(self.connection.download(f"/v1/{of}/{self.name}/{what}?format=arrow"))
        return as_kind(kind, table, lambda: places)

    def close(self) -> None:
        """Stop using it."""
        self.closed = True
