"""Addresses of services and of their datasets."""

from __future__ import annotations

from afresh.errors import InvalidArgument


def is_address(data: object) -> bool:
    """Whether something is the address of a service, or of a dataset there."""
    return isinstance(data, str) and data.lower().startswith(("http://", "https://"))


def on_this_machine(host: str | None) -> bool:
    """Whether a host is the loopback interface, whose traffic no network sees."""
    return host in ("127.0.0.1", "localhost", "::1")


def split_address(address: str) -> tuple[str, str]:
    """Split `https://host/customers` into the service and the name of the dataset."""
    url, _, name = address.rstrip("/").rpartition("/")
    if not name or "://" not in url:
        raise InvalidArgument(f"{address} names no dataset; write {address.rstrip('/')}/NAME, or use afresh.connect.")
    return url, name


def refuse_plan(given: bool) -> None:
    """Refuse to plan, or to name a ledger, for rows that a service keeps."""
    if given:
        raise InvalidArgument("the service keeps the plan and the ledger of this dataset; give the address alone.")
