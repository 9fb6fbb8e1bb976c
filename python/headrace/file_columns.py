# SPDX-License-Identifier: Apache-2.0
"""Lists with several columns of files: ``left,right,depth,label`` of a CSV, TSV or JSON-lines file."""

from __future__ import annotations

import json
import os

from . import _core
from .made import Made

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


def _first_cells(path: str) -> list[str]:
    """The texts of the first row that is no header, by a quick look."""
    with open(path, encoding="utf-8", errors="replace", newline="") as f:
        lines = [f.readline() for _ in range(2)]
    if path.lower().endswith((".jsonl", ".ndjson")):
        try:
            row = json.loads(lines[0])
        except ValueError:
            return []
        return [v for v in row.values() if isinstance(v, str)] if isinstance(row, dict) else []
    import csv

    separator = max(",\t;|", key=lines[1].count)
    return next(csv.reader([lines[1]], delimiter=separator), [])


def open_file_columns(path: str, part: str, root: str | None) -> _core.Source | None:
    """The data set, where at least two columns name files; else None. A column of files is a field of its name."""
    if part or not path.lower().endswith(_TABLES) or not os.path.isfile(path):
        return None
    folder = os.path.abspath(root or os.path.dirname(path) or ".")

    def is_file(cell: object) -> bool:
        return isinstance(cell, str) and bool(cell) and len(cell) < 4096 and os.path.isfile(os.path.join(folder, cell))

    if sum(map(is_file, _first_cells(path))) < 2:
        return None
    table = _core.open_source([f"{path}#table=yes"], "", "")
    names = [f["name"] for f in table.fields if f["kind"] in ("int", "float", "text") and not f["many"]]
    columns = dict(zip(names, table.columns(names, 0, table.size)))
    files = [name for name, column in columns.items() if is_file(next((v for v in column if v), None))]
    if len(files) < 2:
        return None
    made = Made("files", [os.path.splitext(str(p or i))[0] for i, p in enumerate(columns[files[0]])])
    if len(set(made.keys)) < len(made.keys):
        made.keys = [str(i) for i in range(table.size)]
    for name, column in columns.items():
        if name not in files:
            made.add_values(name, column)
            continue
        made.add_file_column(name, [str(cell) if cell else None for cell in column])
    return made.source(folder)
