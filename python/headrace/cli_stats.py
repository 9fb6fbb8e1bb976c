# SPDX-License-Identifier: Apache-2.0
"""``headrace stats``: statistics of the variables of files of arrays, and of the pixels of pictures."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

import headrace as hr

from .cli_options import Json, Names, Threads, names

_Arrays = Annotated[list[str], typer.Argument(help="Files of arrays or of pictures: paths, globs, braces.")]


def stats(
    url: _Arrays,
    fields: Annotated[
        Names, typer.Option(help="Names of variables, t2m,u10 or the option again; all but coordinates unless given.")
    ] = None,
    per: Annotated[Optional[str], typer.Option(help="An axis: numbers for each index of it, like level.")] = None,
    sample: Annotated[Optional[int], typer.Option(help="Of pictures: so many, evenly spaced.", min=1)] = None,
    to: Annotated[Optional[str], typer.Option(metavar="FILE", help="Written there as JSON, for .normalize(FILE).")] = None,
    as_json: Json = False,
    threads: Threads = 0,
) -> None:
    """Mean, std, min, max, count and NaN count of each variable, or of each channel of pictures (values/255), for normalising.

    Example: [bold]headrace stats 'era5-{1979..2020}.nc' --fields t,z --per level --to stats.json[/],
    then [bold]hr.array("t").normalize("stats.json")[/]; [bold]headrace stats photos --sample 5000[/]
    """
    from . import terminal

    with terminal.progress() as bars:
        task = bars.add_task("reading", total=None)
        found = hr.stats(
            url,
            names(fields),
            per=per,
            sample=sample,
            threads=threads,
            progress=lambda done, total: bars.update(task, completed=done, total=total),
        )
    if to is not None:
        found.save(to)
    if as_json:
        import json

        print(json.dumps(found, indent=1))
        return
    rows = terminal.table(
        "variable",
        per or next((e["per"] for e in found.values() if "per" in e), ""),
        ">count",
        ">NaN",
        ">mean",
        ">std",
        ">min",
        ">max",
    )
    for name, entry in found.items():
        for row in _rows(name, entry):
            rows.add_row(*row)
    terminal.console().print(rows)


def _rows(name: str, entry: dict[str, Any]) -> list[list[Any]]:
    from . import terminal

    def text(n: Any) -> str:
        return "-" if n is None else f"{n:,}" if isinstance(n, int) else f"{n:.6g}"

    numbers = [entry[k] for k in ("count", "nan", "mean", "std", "min", "max")]
    if "per" not in entry:
        return [[terminal.plain(name), "", *map(text, numbers)]]
    return [
        [terminal.plain(name), at if isinstance(at, str) else text(at), *map(text, row)]
        for at, *row in zip(entry["at"], *numbers)
    ]
