"""The SQL that lets analysts append to a ledger in PostgreSQL without being able to write its tables.

python -m afresh.ledger.analysts | psql postgresql://steward@host/database
"""

from __future__ import annotations

from importlib.resources import files


def recipe() -> str:
    """The statements, for the role that owns the ledger's tables; see docs/ledger.md for what they protect."""
    return files("afresh.ledger").joinpath("analysts.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    print(recipe())
