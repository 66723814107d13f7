"""Why a construct is not a row expression, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from afresh.errors import QueryError
from afresh.queries.operations import FUNCTIONS
from afresh.queries.syntax import IF
from afresh.queries.typing import short

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

MAX_NAME = 64  # longer names are not compared with others, which takes quadratic time

SUBQUERY = "a question reads one row at a time, so it cannot contain another query"
CLOCK = "its value changes, and an answer must mean the same later; write the date or number itself"
SHARE = (
    "every answer is already a mean over the rows; ask for the condition itself (a share of rows) "
    "or for a number with bounds"
)
WINDOW = "a window function looks at other rows; a question reads one row at a time"
INTEGER_DIVISION = "// is not allowed; write floor(a / b)"
JOINED = "|| joins texts, which is not allowed; for conditions write a OR b, for texts compare the columns one by one"
REGEX = "regular expressions are not supported; write LIKE 'abc%' or contains(x, 'abc')"
LOG = "log means different things in different places; write ln(x) or log10(x)"
NULL_SAFE = "IS NOT DISTINCT FROM is not allowed; write a = b OR (a IS NULL AND b IS NULL)"
PARAMETER = "parameters are not filled in; write the value itself"
TRUNCATED = "dates are not truncated; write year(x) = 2025 AND month(x) = 1, or a range of dates"
POSITION = "positions in a text are not counted; write contains(x, 'abc') or starts_with(x, 'abc')"
RIGHT = "right is not allowed; write ends_with(x, 'abc')"
WEEKDAY = "days of the week are counted in several ways; write extract(isodow FROM x), 1 on Monday to 7 on Sunday"
NOT_FINITE = "NaN and infinities are NULL to every question; write x IS NULL"
BITS = "operations on bits are not allowed; write comparisons, AND, OR, or a % 2 = 1 for the lowest bit"
HASH = "hashes are not supported; compare the column itself"
NESTED = "lists, structs, maps and JSON are not part of a question; ask about plain columns"
FILES = "a question reads the columns of the opened data and nothing else: no file, table, setting or variable"

# by the name of sqlglot's node; checked in this order before the general categories
_SPECIAL = {
    "Star": "* stands for all columns; name one column",
    "Columns": "COLUMNS() stands for several columns; name one column",
    "Subquery": SUBQUERY,
    "Select": SUBQUERY,
    "Exists": SUBQUERY,
    "All": SUBQUERY,
    "Any": "ANY is not allowed; write x IN (1, 2, 3)",
    "Window": WINDOW,
    "Placeholder": PARAMETER,
    "Parameter": PARAMETER,
    "SessionParameter": PARAMETER,
    "IntDiv": INTEGER_DIVISION,
    "DPipe": JOINED,
    "Concat": JOINED,
    "ConcatWs": JOINED,
    "NullSafeEQ": NULL_SAFE,
    "NullSafeNEQ": "IS DISTINCT FROM is not allowed; write a <> b, with IS NULL where it matters",
    "Escape": "LIKE has no ESCAPE here; % matches any text and _ one character. Write contains(x, '10%') for text "
    "with these signs",
    "RegexpLike": REGEX,
    "RegexpILike": REGEX,
    "RegexpFullMatch": REGEX,
    "RegexpExtract": REGEX,
    "RegexpReplace": REGEX,
    "SimilarTo": REGEX,
    "Glob": "GLOB is not supported; write LIKE 'abc%'",
    "StrPosition": POSITION,
    "Right": RIGHT,
    "DayOfWeek": WEEKDAY,
    "If": IF,
    "Log": LOG,
    "IsNan": NOT_FINITE,
    "IsInf": NOT_FINITE,
    "Trunc": "trunc is not allowed; write floor(x), ceil(x) or round(x)",
    "Interval": "intervals are not supported; compare with the date itself, as DATE '2025-01-31', or write "
    "date_diff('day', a, b)",
    "TimestampTrunc": TRUNCATED,
    "DateTrunc": TRUNCATED,
    "DateAdd": "nothing can be added to a date; write date_diff('day', a, b) < 30",
    "Date": "date() is not allowed; a date is written DATE '2025-01-31', its parts year(x), month(x), day(x)",
    "AtTimeZone": "time zones are not supported; timestamps are read in UTC",
    "StrToTime": "text is not read as a date; convert the column before opening the data",
    "Tuple": "a list of values is only allowed after IN",
    "Alias": "a name (AS ...) is not part of a question; leave it out",
    "Distinct": SHARE,
    "Collate": "collations are not supported; write lower(a) = 'x'",
    "Dot": "columns are written without a table or dots",
    "PositionalColumn": "columns are written by name",
    "Xor": "XOR is not allowed; write a <> b",
    "Bracket": NESTED,
    "Array": NESTED,
    "ArrayOverlaps": "&& (array_overlaps) is not allowed; to combine conditions write a AND b",
    "Struct": NESTED,
    "Map": NESTED,
    "Lambda": NESTED,
    "Kwarg": "arguments have no names; write them in order",
    "BitwiseAnd": BITS,
    "BitwiseOr": BITS,
    "BitwiseXor": BITS,
    "BitwiseNot": BITS,
    "BitwiseLeftShift": BITS,
    "BitwiseRightShift": BITS,
    "MD5": HASH,
    "SHA": HASH,
    "SHA2": HASH,
    "ReadCSV": FILES,
    "ReadParquet": FILES,
    "Unnest": NESTED,
    "Explode": NESTED,
    "CurrentUser": FILES,
    "SessionUser": FILES,
    "CurrentSchema": FILES,
    "CurrentDatabase": FILES,
    "CurrentCatalog": FILES,
    "CurrentRole": FILES,
    "Version": FILES,
    "CurrentVersion": FILES,
    "Try": "try() is not needed: whatever fails on a row gives NULL",
    "Pi": "pi() is not allowed; write 3.141592653589793",
}
_BY_NAME = {
    CLOCK: "now today random rand uuid gen_random_uuid uuidv4 uuidv7 nextval currval setseed get_current_time "
    "get_current_timestamp transaction_timestamp statement_timestamp clock_timestamp txid_current pg_sleep sleep "
    "gen_random_bytes",
    FILES: "current_setting getvariable getenv version pg_read_file pg_ls_dir lo_import lo_export read_csv "
    "read_csv_auto read_parquet read_json read_json_auto read_text read_blob read_ndjson glob parquet_scan "
    "sniff_csv query query_table duckdb_settings duckdb_tables pragma_table_info dblink which_secret "
    "current_schemas current_query inet_client_addr pg_backend_pid in_search_path set_config",
    SHARE: "quantile mode any_value first last list string_agg histogram product fsum arg_min arg_max count_if "
    "countif bool_and bool_or every favg geomean entropy kurtosis skewness mad reservoir_quantile bit_xor",
    WINDOW: "row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value first_value last_value",
    REGEX: "regexp_matches regexp_full_match regexp_extract regexp_replace rlike regexp",
    NESTED: "json_extract json json_value to_json list_value struct_pack struct_extract map unnest list_transform "
    "list_filter list_contains array_length row from_json json_extract_string generate_series range apply",
    HASH: "hash md5 sha1 sha256 crc32 xxhash64 md5_number",
    WEEKDAY: "weekday dayname",
    TRUNCATED: "last_day",
    IF: "iff ifelse",
    NOT_FINITE: "isfinite",
}
# What to measure instead of asking for an aggregate; `x` stands for the number being aggregated.
_MEASURED = {
    'Quantile("x", 0.5, bounds=(low, high))': "median",
    'Quantile("x", level, bounds=(low, high))': "quantile quantile_cont quantile_disc percentile_cont percentile_disc "
    "approx_quantile reservoir_quantile percentile",
    'StandardDeviation("x", bounds=(low, high))': "stddev stddev_pop stddev_samp std",
    'Variance("x", bounds=(low, high))': "variance variance_pop var_pop var_samp",
    'Covariance("x", "y", bounds_x=(low, high), bounds_y=(low, high))': "covar_pop covar_samp",
    'Correlation("x", "y", bounds_x=(low, high), bounds_y=(low, high))': "corr",
    'Histogram("x", edges=[...])': "histogram",
}
_STATISTICS = {name: statistic for statistic, names in _MEASURED.items() for name in names.split()}
_NAMED = {name: why for why, names in _BY_NAME.items() for name in names.split()}
_INSTEAD = {
    "strlen": "length",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "date_sub": "date_diff",
    "age": "date_diff",
    "timestampdiff": "date_diff",
    "fmod": "a % b",
    "cbrt": "power",
    "square": "x * x",
    "log2": "ln",
    "ltrim": "trim",
    "rtrim": "trim",
    "mid": "substring",
    "len": "length",
    "week": "date_diff",
    "to_char": "cast",
    "to_number": "cast",
    "charindex": "contains",
    "locate": "contains",
    "nvl2": "coalesce",
}


def refuse(node: Expression) -> QueryError:
    """Return the error for a sqlglot node that is not on the allowlist."""
    from sqlglot import exp

    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup | exp.Filter):  # around aggregates
        node = node.this
    kind = type(node).__name__
    if kind == "Anonymous":
        return refuse_function(str(node.this))
    name = node.sql_name().lower() if isinstance(node, exp.Func) else ""
    if kind in _SPECIAL:
        why = _SPECIAL[kind]
        return QueryError(why if name in why.lower() else f"{name}() is not allowed: {why}")
    if name:
        if isinstance(node, exp.AggFunc):
            return refuse_aggregate(name, node.this.name if isinstance(node.this, exp.Column) else "x")
        if kind.startswith(("Current", "Local", "Rand", "Uuid", "Localtime")):
            return QueryError(f"{name}() is not allowed: {CLOCK}")
        if kind.startswith(("JSON", "Array", "List", "Map", "Struct", "Parse", "Generate")):
            return QueryError(f"{name}() is not allowed: {NESTED}")
        if kind.startswith("Regexp"):
            return QueryError(REGEX)
        return refuse_function(name)
    return QueryError(
        f"{kind} is not allowed in a question; allowed are columns, constants, comparisons, AND, OR, NOT, "
        f"IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic and the functions {', '.join(FUNCTIONS)}"
    )


def refuse_aggregate(name: str, of: str = "x") -> QueryError:
    """The error for a function of many rows, with the statistic to measure instead if there is one."""
    if (statistic := _STATISTICS.get(name.lower())) is not None:
        meant = statistic.replace('"x"', '"' + short(of)[1:-1] + '"')
        return QueryError(
            f"{name}() is an aggregate, and a question reads one row at a time; write "
            f"guard.measure(afresh.statistics.{meant})"
        )
    return QueryError(f"{name}() is an aggregate, but {SHARE}")


def refuse_function(name: str) -> QueryError:
    """The error for a function that is not allowed, with the nearest one that is."""
    lower = name.lower()
    if (why := _NAMED.get(lower)) is not None:
        return refuse_aggregate(name) if why is SHARE else QueryError(f"{name}() is not allowed: {why}")
    near = _INSTEAD.get(lower) or next(iter(nearest(lower, FUNCTIONS, 1, 0.7)), None)
    hint = f" (did you mean {near}?)" if near else ""
    return QueryError(f"the function {short(name)[1:-1]}() is not allowed{hint}; allowed are {', '.join(FUNCTIONS)}")


def nearest(name: str, known: Iterable[str], count: int, cutoff: float) -> list[str]:
    """Return the known names closest to this one."""
    return difflib.get_close_matches(name, known, count, cutoff) if len(name) <= MAX_NAME else []
