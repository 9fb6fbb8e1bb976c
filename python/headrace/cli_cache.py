# SPDX-License-Identifier: Apache-2.0
"""``headrace cache ls | verify | clear``: looks after a cache folder."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from . import _core
from .cli_options import Json

Folder = Annotated[str, typer.Argument(metavar="PATH", help="The cache folder, as it was given to cache=.")]

cache = typer.Typer(no_args_is_help=True, help="Lists, checks or empties a cache folder ([bold]cache=[/] of hr.open and Loader).")


def _ago(used_ns: int) -> str:
    seconds = max(0.0, time.time() - used_ns * 1e-9)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "now"


@cache.command("ls")
def ls(path: Folder, as_json: Json = False) -> None:
    """What lies in the cache, and when it was last used.

    Example: [bold]headrace cache ls /nvme/hr[/]
    """
    from . import terminal

    objects = _core.list_cache(path)
    if as_json:
        names = ("name", "bytes", "cached_bytes", "used_ns")
        print(json.dumps([dict(zip(names, row)) for row in objects]))
        return
    rows = terminal.table("object", ">size", ">cached", ">used")
    for name, size, cached, used in objects:
        rows.add_row(terminal.plain(name), terminal.size(size), terminal.size(cached), _ago(used))
    total = sum(row[2] for row in objects)
    out = terminal.console()
    if objects:
        out.print(rows)
    out.print(terminal.plain(f"{path}: {terminal.count(len(objects), 'object')}, {terminal.size(total)}"), soft_wrap=True)


@cache.command("verify")
def verify(path: Folder) -> None:
    """Reads all of it against its checksums; what is damaged is named and removed.

    Example: [bold]headrace cache verify /nvme/hr[/]
    """
    from . import terminal

    files, blocks, size, damaged = _core.verify_cache(path)
    out: Any = terminal.console()
    for text in damaged:
        out.print(terminal.plain(f"damaged, removed: {text}"), soft_wrap=True)
    words = f"{terminal.count(files, 'file')}, {terminal.count(blocks, 'block')}, {terminal.size(size)}"
    out.print(
        terminal.plain(f"{path}: {words}: {'all as written' if not damaged else f'{len(damaged)} damaged'}"), soft_wrap=True
    )
    raise typer.Exit(1 if damaged else 0)


@cache.command("clear")
def clear(path: Folder) -> None:
    """Removes what headrace wrote there, and nothing else. Jobs that use it read on, from the source.

    Example: [bold]headrace cache clear /nvme/hr[/]
    """
    from . import terminal

    removed = _core.clear_cache(path)
    terminal.console().print(terminal.plain(f"{path}: {terminal.size(removed)} removed"), soft_wrap=True)
