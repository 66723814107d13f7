"""The version of a table that Spark reads, if its format keeps versions: opening it again then hashes nothing.

Only Iceberg's versions are read. Delta keeps versions too, but no Python package brings its Java archive, so code that
reads them could not be tried; Delta tables are hashed at each opening, like any other DataFrame.
"""

from __future__ import annotations

from typing import Any

_ICEBERG = "iceberg.spark.source.SparkTable"  # packages that bundle Iceberg put a prefix of their own before its name


def version(frame: Any) -> str | None:
    """What names the content of a DataFrame that is a whole Iceberg table: the ids of the table and of its snapshot.

    A snapshot never changes, and every write makes another one. Both ids are read from the object that Spark scans, not
    from the catalog, which may be ahead of it. None for anything else: a table with a filter or an option that changes
    what is read, a branch, a metadata table, an empty table, and every table over Spark Connect, whose plans cannot be
    inspected.
    """
    try:
        return _version(frame._jdf.queryExecution().analyzed())
    except Exception:  # of py4j or of Spark Connect; a table whose version cannot be read is one without
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
    if _kind(table) != "BaseTable":  # but one of its own tables about itself, as of all its snapshots
        return None
    chosen, current = scanned.snapshotId(), table.currentSnapshot()
    if chosen is None and current is None:
        return None
    return f"iceberg {table.uuid()} {current.snapshotId() if chosen is None else chosen}"


def _kind(of: Any) -> str:
    return str(of.getClass().getSimpleName())
