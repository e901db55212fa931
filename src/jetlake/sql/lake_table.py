"""A lake table as a query over its files: DuckDB reads Parquet itself, only the columns and row groups it needs.

The log of the table says which files count at a version; the folders of a file (`day=2026-01-31/`) hold the values of
the partition columns.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.table import LakeTable

if TYPE_CHECKING:
    import duckdb

    from jetlake.spark.lake.as_of import AsOf

__all__ = ["lake_query"]

TYPES = {
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "date": "DATE",
    "double": "DOUBLE",
    "float": "FLOAT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "short": "SMALLINT",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
"""The types of a Delta table without parts, and DuckDB's names for them."""


def lake_query(connection: "duckdb.DuckDBPyConnection", path: Path, as_of: "AsOf | None") -> str:
    """Return a query for the rows of a table, now or at a version or a time.

    Raises `ConfigurationError` and `MissingDependencyError`.
    """
    snapshot = LakeTable(path).snapshot(as_of)
    types = {field["name"]: _type(field["type"]) for field in json.loads(snapshot.columns)["fields"]}
    if not snapshot.files:
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in types.items())
        return f"SELECT {nothing} WHERE false"  # names are quoted
    for file, facts in snapshot.files.items():
        if any(f"{name}=" not in file for name in facts.partition):
            raise ConfigurationError(f"table {path.name}: {file} is in no folder of its partition; use --spark")
    files = _list(str(path / file) for file in snapshot.files)
    options = "union_by_name = true"
    if snapshot.partition_by:
        kinds = ", ".join(f"{_text(name)}: {_text(types[name])}" for name in snapshot.partition_by)
        options += f", hive_partitioning = true, hive_types = {{{kinds}}}"
    else:
        options += ", hive_partitioning = false"
    rows = f"read_parquet({files}, {options})"
    # A column that was added later and is in no file yet has no values.
    there = {str(row[0]) for row in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()}  # noqa: S608
    columns = ", ".join(
        _quoted(name) if name in there else f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in types.items()
    )
    return f"SELECT {columns} FROM {rows}"  # noqa: S608  # names and paths are quoted


def _type(kind: Any) -> str:
    if isinstance(kind, str):
        return TYPES.get(kind, kind.upper() if kind.startswith("decimal") else "VARCHAR")
    if kind["type"] == "array":
        return f"{_type(kind['elementType'])}[]"
    if kind["type"] == "map":
        return f"MAP({_type(kind['keyType'])}, {_type(kind['valueType'])})"
    fields = ", ".join(f"{_quoted(field['name'])} {_type(field['type'])}" for field in kind["fields"])
    return f"STRUCT({fields})"


def _list(texts: Any) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def _quoted(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'
