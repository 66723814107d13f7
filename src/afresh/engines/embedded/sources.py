"""How data gets into the embedded engine's private DuckDB, which is then sealed."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from afresh.engines.embedded.csv_file import CSV, load_csv, read_header
from afresh.engines.embedded.stamp import DUCKDB, Stamp
from afresh.engines.sql.duckdb import clean, quote_name, quote_text, type_of
from afresh.engines.sql.engine import check_names
from afresh.errors import DataError, InvalidArgument
from afresh.version import __version__

SUPPORTED = (
    "a path to a Parquet (.parquet), CSV (.csv, .csv.gz, .tsv) or DuckDB (.duckdb, .db) file, "
    "a pandas or Polars frame, an Arrow table, an Ibis table, "
    "postgresql://user@host/database with table=, or a Spark DataFrame"
)
_BATCH = 2**13  # rows read at a time
_PIECE, _PIECES = 2**16, 32  # rows per piece of a copy, or a multiple if there would be more pieces
_HARDLY = 2**24  # bytes of columns that are copied together
_WORTH_MAPPING = 2**18  # bytes from which on the rest of the last page hardly matters
_ALIGNED = 64  # bytes
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_CONFIG = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # otherwise SQL could reach Python variables
    # It plans from column statistics, that is from rows, and planning fails for some: an error would reveal them.
    "disabled_optimizers": "statistics_propagation",
}


Recall = Callable[[str], Any]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C while DuckDB works raise `KeyboardInterrupt`, as everywhere, instead of DuckDB's RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if "interrupt" not in str(error).lower():
            raise
        raise KeyboardInterrupt from None


@dataclass(frozen=True, slots=True)
class Source:
    """A relation of the private database: its name, what identifies rows, and the columns' DuckDB types."""

    relation: str
    row: str
    columns: Mapping[str, str]
    stamp: Stamp | None = None
    held: Any = None  # an Arrow table, which every cursor must register as the relation
    table: str | None = None  # in a DuckDB file
    direct: str | None = None  # the relation instead of a view of it, which DuckDB would look up and bind each time
    learnt: tuple[str, Any] | None = None  # of a CSV file: its state, and what makes opening it faster then
    parquet: str | None = None  # SQL for the path of a Parquet file


def open_source(
    data: object, table: str | None, memory_limit: str, scratch: str, recall: Recall = lambda state: None
) -> tuple[duckdb.DuckDBPyConnection, Source]:
    """Return a sealed private database and its relation with the data; `recall` gives what was learned before."""
    dates = data if isinstance(data, CSV) else None
    data = data.path if isinstance(data, CSV) else data
    is_path = isinstance(data, str | os.PathLike)
    incoming = None if is_path else _columns(data)
    path = _path(data) if isinstance(data, str | os.PathLike) else None
    if table is not None and not (path and path.name.lower().endswith(DUCKDB)):
        raise InvalidArgument(f"table = {table!r}, but only a DuckDB file or a database has tables to choose from")
    if dates is not None and not (path and path.name.lower().endswith(_CSV)):
        raise InvalidArgument(f"dates = {dates.dates!r}, but only a CSV file has dates in a form; leave it out")
    config: dict[str, Any] = {**_CONFIG, "memory_limit": memory_limit, "temp_directory": scratch}
    connection = duckdb.connect(":memory:", config=config)
    try:
        # It would be drawn on stdout if Python is interactive. A notebook without widgets has none to turn off.
        with contextlib.suppress(duckdb.Error):
            connection.execute("SET enable_progress_bar = false")
        with interruptible():
            if path is None:
                # Several threads would read 20 MB ahead, and be hardly faster: the memory's speed is the limit.
                connection.execute("SET threads = 1")
                source, readable = _load_columns(connection, incoming or {}), None
                connection.execute("RESET threads")
            else:
                readable = _readable(path, scratch)
                source = _load_file(connection, path, quote_text(readable), table, dates, recall)
            _seal(connection, source, readable)
    except BaseException:
        connection.close()
        raise
    return connection, source


def _path(data: str | os.PathLike[str]) -> Path:
    path = Path(data).expanduser().absolute()
    if not path.is_file():
        what = "is a directory, not a file" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}")
    if not path.name.lower().endswith((*_CSV, *_PARQUET, *DUCKDB)):
        raise DataError(f"the suffix of {path} does not say what kind of file it is; supported are {SUPPORTED}")
    return path


def _readable(path: Path, scratch: str) -> str:
    """Return a path by which DuckDB finds the file, and nothing else.

    DuckDB takes a path as a pattern, in which a backslash separates folders: [x].parquet would be the file x.parquet,
    and some names cannot be written at all. Such a file, or one whose name is not valid text, is read through a link,
    together with what DuckDB has written beside it.
    """
    if not re.search(r"[*?\[\\\ud800-\udfff]", path.as_posix()):
        return str(path)
    for ending in ("", ".wal"):
        if (found := path.with_name(path.name + ending)).exists():
            (Path(scratch) / f"data{ending}").symlink_to(found)
    return str(Path(scratch) / "data")


def _load_file(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    literal: str,
    table: str | None,
    dates: CSV | None,
    recall: Recall,
) -> Source:
    stamp, name = Stamp.flushed(path), path.name.lower()
    failed = False
    try:
        if name.endswith(DUCKDB):
            source = _attach(connection, path, literal, table, stamp)
        elif name.endswith(_PARQUET):
            # otherwise every question would read the end of the file again
            connection.execute("SET GLOBAL parquet_metadata_cache = true")
            check_names(_parquet_names(connection, literal), path)
            direct, numbered = f"read_parquet({literal})", f"read_parquet({literal}, file_row_number = true)"
            columns = _describe(connection, direct)
            connection.execute(f"CREATE VIEW data AS SELECT * FROM {numbered}")
            source = Source("data", "file_row_number", columns, stamp, direct=direct, parquet=literal)
        else:
            names, delimiter = read_header(path)
            check_names(names, path)
            state = (
                None
                if (lasting := stamp.lasting()) is None
                else _state([names, delimiter, dates and dates.dates], lasting)
            )
            known = None if state is None else recall(state)
            found = load_csv(connection, path, literal, names, delimiter, dates, known)
            learnt = None if state is None or found == known else (state, found)
            source = Source("data", "rowid", _describe(connection, "data"), stamp, learnt=learnt)
    except duckdb.Error:
        failed = True  # DuckDB's message quotes rows, so the error is raised without it
    if failed:
        raise DataError(f"{path} cannot be read; it is damaged, locked by another program or not what its suffix says")
    stamp.check()
    return source


def _state(how: object, lasting: object) -> str:
    """Return a value that shows a CSV file is the same, and read in the same way."""
    return json.dumps(["csv", __version__, duckdb.__version__, how, lasting])


def _attach(connection: duckdb.DuckDBPyConnection, path: Path, literal: str, table: str | None, stamp: Stamp) -> Source:
    connection.execute(f"ATTACH {literal} AS source (READ_ONLY)")
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' ORDER BY ALL"
    ).fetchall()
    names = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found}
    if table is None and len(names) == 1:
        table = next(iter(names))
    if table not in names:
        has = f"{len(names)} tables" if table is None else f"no table {table!r}"
        raise DataError(f"{path} has {has}; choose one with table=: {', '.join(names) or 'none'}")
    relation = ".".join(map(quote_name, ("source", *names[table])))
    return Source(relation, "rowid", _describe(connection, relation), stamp, table=table)


def _describe(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _parquet_names(connection: duckdb.DuckDBPyConnection, literal: str) -> list[str]:
    """Return the real top-level column names; DuckDB silently renames duplicates."""
    rows = connection.execute(f"SELECT name, num_children FROM parquet_schema({literal})").fetchall()
    names, inside = [], 0
    for name, children in rows[1:]:
        if inside:
            inside += (children or 0) - 1
        else:
            names.append(name)
            inside = children or 0
    return names


def largest_group(literal: str) -> str:
    """Return SQL for about how many bytes of memory the largest row group of a Parquet file takes.

    That is 16 bytes per value, or more if a column is larger even when encoded.
    """
    cells = "sum(greatest(total_uncompressed_size, 16 * row_group_num_rows)) AS bytes"
    return (
        f"SELECT coalesce(max(bytes), 0) FROM (SELECT {cells} FROM parquet_metadata({literal}) GROUP BY row_group_id)"
    )


def _seal(connection: duckdb.DuckDBPyConnection, source: Source, readable: str | None) -> None:
    """Seal the database: from here on, SQL can reach nothing but the data, and cannot undo that."""
    for name in source.columns:
        if name.lower() == source.row:
            raise DataError(f"a column named {name!r} hides the column that identifies rows; rename it")
    if readable is not None:
        connection.execute(f"SET allowed_paths = [{quote_text(readable)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _module(data: object, package: str, *names: str) -> bool:
    """Whether data is an instance of one of a package's classes, without importing the package."""
    module = sys.modules.get(package)
    kinds = tuple(kind for name in names if (kind := getattr(module, name, None)) is not None)
    return bool(kinds) and isinstance(data, kinds)


def is_frame(data: object) -> bool:
    """Whether data is rows in memory; a lazy frame may read a file."""
    return (
        _module(data, "pandas", "DataFrame")
        or _module(data, "polars", "DataFrame")
        or _module(data, "pyarrow", "Table", "RecordBatch")
    )


def as_arrow(data: object) -> Any:
    """Return any kind of frame as an Arrow table."""
    columns = _columns(data)
    import pyarrow as pa  # on demand: importing it takes a while

    return pa.table({name: column() for name, (_, column) in columns.items()})


_Columns = Mapping[str, tuple[int, Callable[[], Any]]]


def _columns(data: object) -> _Columns:
    """Return the columns of any kind of frame: about how many bytes each takes, and a function that makes it Arrow."""
    frames = _module(data, "pandas", "DataFrame"), _module(data, "polars", "DataFrame", "LazyFrame")
    ibis = _module(data, "ibis", "Table")
    batches = _module(data, "pyarrow", "Table", "RecordBatch")
    if not any((*frames, ibis, batches)):
        raise DataError(f"cannot open a {type(data).__module__}.{type(data).__qualname__}; supported are {SUPPORTED}")
    import pyarrow as pa

    frame: Any = data
    if frames[0]:
        names, sizes = _unique(frame.columns), frame.memory_usage(index=False)
        return {name: (int(sizes.iloc[i]), partial(_from_pandas, name, frame, i)) for i, name in enumerate(names)}
    if frames[1]:
        frame = _collected(frame)
        return {name: (frame[name].estimated_size(), partial(_from_polars, name, frame)) for name in frame.columns}
    table = _from_ibis(frame) if ibis else frame
    _unique(table.schema.names)
    table = pa.Table.from_batches([table]) if _module(table, "pyarrow", "RecordBatch") else table
    sizes = [column.get_total_buffer_size() for column in table.columns]  # pyarrow 17 has no nbytes of a string_view
    return {name: (sizes[i], partial(table.column, i)) for i, name in enumerate(table.column_names)}


def _from_pandas(name: str, frame: Any, place: int) -> Any:
    import pyarrow as pa

    return _converted(name, partial(pa.array, frame.iloc[:, place], from_pandas=True))


def _from_polars(name: str, frame: Any) -> Any:
    import polars as pl
    import pyarrow as pa

    def convert() -> Any:
        series = frame[name]  # a new one every time, because it would keep what is made from it
        # piece by piece, with texts as they are, or everything would be copied
        level = pl.CompatLevel.newest() if series.dtype == pl.String else None
        return pa.chunked_array([piece.to_arrow(compat_level=level) for piece in series.get_chunks() or [series]])

    return _converted(name, convert)


def _unique(names: Iterable[object]) -> list[str]:
    listed = [str(name) for name in names]
    check_names(listed, "the frame")
    return listed


# Libraries' messages about data they cannot convert quote values, so the errors here carry nothing of them.


def _converted(name: str, convert: Callable[[], Any]) -> Any:
    """Convert one column; a column of mixed objects has no type."""
    with contextlib.suppress(Exception):
        return convert()
    raise DataError(
        f"the column {name!r} mixes values of several types, or has a type or values that cannot be stored, such as "
        "whole numbers beyond 64 bits; convert it to one type before opening the data: float for numbers, else text"
    )


def _collected(frame: Any) -> Any:
    if not hasattr(frame, "collect"):
        return frame
    with contextlib.suppress(Exception):
        return frame.collect()
    raise DataError("the lazy frame cannot be evaluated; call its collect() to see why")


def _from_ibis(table: Any) -> Any:
    with contextlib.suppress(Exception):
        return table.to_pyarrow()
    backend = "its backend"
    with contextlib.suppress(Exception):  # a table with no backend, or with several
        backend = table.get_backend().name
    raise DataError(f"the rows of the Ibis table cannot be fetched from {backend}; call its to_pyarrow() to see why")


def _load_columns(connection: duckdb.DuckDBPyConnection, incoming: _Columns) -> Source:
    """Make a copy that DuckDB and Polars can both read: the usable columns, holding only values of the language.

    Columns are copied a few at a time, as each is in memory in several forms for a while: the largest first, one at a
    time, and many small ones together.
    """
    import pyarrow as pa

    if not incoming:
        raise DataError("the table has no columns")
    kinds: dict[str, str] = {}
    held: dict[str, Any] = {}
    for names in _together(incoming):
        columns = {name: incoming[name][1]() for name in names}
        if (copied := _copied(connection, columns)) is None:
            raise _cannot_be_stored(connection, columns)
        kinds |= copied[0]
        held |= copied[1]
        del columns, copied
        pa.default_memory_pool().release_unused()
    if not held:
        raise DataError("the data have no column that a question can use")
    table = pa.table({name: held[name] for name in incoming if name in held})
    return Source("data", "rowid", {name: kinds[name] for name in incoming}, held=table)


def _together(incoming: _Columns) -> list[list[str]]:
    """Group the columns: each large one separately, and small ones in groups whose size hardly matters."""
    names = sorted(incoming, key=lambda name: -incoming[name][0])
    groups: list[list[str]] = []
    room = 0
    for name in names:
        size = incoming[name][0]
        if not groups or size > room:
            groups.append([])
            room = _HARDLY
        groups[-1].append(name)
        room -= size
    return groups


def _copied(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]] | None:
    """Return the DuckDB types of columns, and a copy of those that questions can use; None if one has no type.

    They are read in batches and assembled piece by piece, so no whole column is in memory twice.
    """
    import pyarrow as pa

    with contextlib.suppress(duckdb.Error, pa.ArrowException, OSError):
        incoming = pa.table(dict(columns))
        connection.register("incoming", incoming)
        kinds = dict(zip(columns, _describe(connection, "incoming").values(), strict=True))
        usable = [name for name, kind in kinds.items() if type_of(kind) is not None]
        held = {}
        if usable:
            cells = ", ".join(f"{clean(name, kinds[name])} AS {quote_name(name)}" for name in usable)
            copied = connection.sql(f"SELECT {cells} FROM incoming AS d")
            rows = _PIECE * (1 + len(incoming) // (_PIECE * _PIECES))
            found = _in_pieces(copied.to_arrow_reader(_BATCH), rows, incoming.get_total_buffer_size())
            kinds |= dict(zip(usable, map(str, copied.types), strict=True))
            held = dict(zip(usable, found.columns, strict=True))
        connection.unregister("incoming")
        return kinds, held
    return None


def _in_pieces(reader: Any, rows: int, size: int) -> Any:
    """Return what is read as a table, in pieces of this many rows; only one piece's batches are in memory beside it.

    The `size` of what is read is about right.
    """
    import pyarrow as pa

    pool = pa.system_memory_pool()  # the default one rounds sizes up
    room, pieces, left = _Room(size), [], pa.Table.from_batches([], reader.schema)
    for batch in reader:
        left = pa.concat_tables([left, pa.Table.from_batches([batch])])
        while len(left) >= rows:
            pieces.append(room.keep(left.slice(0, rows).combine_chunks(pool), pool))
            left = left.slice(rows)
    return pa.concat_tables([*pieces, room.keep(left.combine_chunks(pool), pool)])


class _Room:
    """Memory for the pieces of a copy, one after the other, which goes back to the system with the last of them.

    From malloc they would have gaps between them. What is reserved but not written takes no memory.
    """

    def __init__(self, size: int) -> None:
        self._mapping: mmap.mmap | None = None
        self._used = 0
        if size >= _WORTH_MAPPING and hasattr(mmap, "MAP_PRIVATE"):  # not on Windows
            with contextlib.suppress(OSError):  # private: after a fork nobody else writes to it
                self._mapping = mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def keep(self, piece: Any, pool: Any) -> Any:
        """Return a copy of a piece in this memory, or the piece itself if there is no room."""
        import pyarrow as pa

        batches = piece.to_batches()
        if self._mapping is None or len(batches) != 1:
            return piece
        stored = batches[0].serialize(memory_pool=pool)
        start = self._used
        if start + stored.size > len(self._mapping):
            return piece
        self._mapping[start : start + stored.size] = memoryview(stored)
        self._used = -(-(start + stored.size) // _ALIGNED) * _ALIGNED
        found = pa.ipc.read_record_batch(pa.py_buffer(self._mapping).slice(start, stored.size), piece.schema)
        del stored
        pool.release_unused()
        return pa.Table.from_batches([found])


def _cannot_be_stored(connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Any]) -> DataError:
    """Return the error that names the first column that cannot be stored."""
    name = next((name for name in columns if _copied(connection, {name: columns[name]}) is None), next(iter(columns)))
    return DataError(
        f"the column {name!r} of Arrow type {columns[name].type} cannot be stored; cast numbers to float64 and "
        "anything else to text before opening it"
    )
