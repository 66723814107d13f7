"""The version of a table that Spark reads, if its format keeps versions: opening it again then hashes nothing.

Only Iceberg's versions are read. Delta keeps versions too, but no Python package includes its Java archive, so code
that reads them could not be tested; Delta tables are hashed each time they are opened, like any other DataFrame.
"""

from __future__ import annotations

from typing import Any

_ICEBERG = "iceberg.spark.source.SparkTable"  # packages that bundle Iceberg put their own prefix before it


def version(frame: Any) -> str | None:
    """Name the content of a DataFrame that is a whole Iceberg table, by the ids of the table and of its snapshot.

    A snapshot never changes, and every write makes a new one. Both ids are read from the object that Spark scans, not
    from the catalog, which may be ahead of it. Returns None for anything else: a table with a filter or an option that
    changes what is read, a branch, a metadata table, an empty table, and every table over Spark Connect, whose plans
    cannot be inspected.
    """
    try:
        return _version(frame._jdf.queryExecution().analyzed())
    except Exception:  # py4j's or Spark Connect's; a table whose version cannot be read counts as having none
        return None


def _version(plan: Any) -> str | None:
    while _kind(plan) == "SubqueryAlias":  # the name that Spark gives a table
        plan = plan.child()
    if _kind(plan) != "DataSourceV2Relation" or not plan.options().isEmpty():
        return None
    scanned = plan.table()
    if not str(scanned.getClass().getName()).endswith(_ICEBERG) or scanned.branch() is not None:
        return None
    table = scanned.table()
    if _kind(table) != "BaseTable":  # one of Iceberg's metadata tables, such as the list of snapshots
        return None
    chosen, current = scanned.snapshotId(), table.currentSnapshot()
    if chosen is None and current is None:
        return None
    return f"iceberg {table.uuid()} {current.snapshotId() if chosen is None else chosen}"


def _kind(of: Any) -> str:
    return str(of.getClass().getSimpleName())
