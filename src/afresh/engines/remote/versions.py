"""The version of a table that Spark reads, if its format keeps versions: opening it again then hashes nothing.

Only Iceberg's versions are read; Delta tables are hashed each time they are opened, like any other DataFrame. We know
no Python package with a Delta for Spark that may be used without Databricks, so code that reads its versions could not
be tested. The id of a table and its version would not be enough, either:

- Delta counts its versions. A table that is restored from a copy of its directory and written to repeats an id and a
  version, with other rows. The id of an Iceberg snapshot is drawn at random.
- A DataFrame of a Delta table is not bound to a version: each scan reads the newest one that Spark knows of.
- In some releases, DESCRIBE DETAIL finds the table even if a temporary view of that name hides it from Spark.
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
