# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Source = Annotated[list[str], typer.Argument(help="Tar shards (globs, {0000..0127}), a folder, or a list of files.")]
Root = Annotated[Optional[str], typer.Option(help="What the paths of a list are relative to; else the list's own folder.")]
Index = Annotated[Optional[str], typer.Option(help="Where `headrace index` put the index.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Threads = Annotated[int, typer.Option(help="Threads; 0: as many as CPUs.", min=0)]
Names = Optional[list[str]]


def names(given: Names) -> list[str] | None:
    """Names as users give them: an option several times, or with commas between, or both. None where there are none."""
    out = [name.strip() for item in given or () for name in item.split(",") if name.strip()]
    return out or None
