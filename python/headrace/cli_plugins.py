# SPDX-License-Identifier: Apache-2.0
"""``headrace check-format``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def check_format(
    package: Annotated[
        str,
        typer.Argument(help="A package with an entry point in the group headrace.plugins, or a module, also one of this folder."),
    ],
) -> None:
    """Tries what a package registers, formats and codecs, on its own examples: order, threads, damage.

    Example: [bold]headrace check-format mypackage[/]
    """
    from . import terminal
    from .plugins import conformance

    if "" not in sys.path:
        sys.path.insert(0, "")  # this folder, as for python -m
    rows = terminal.table("what", "check", "", "")
    bad = 0
    for outcome in conformance.check(package):
        rows.add_row(outcome.what, outcome.check, terminal.ok(outcome.fine), terminal.plain(outcome.words))
        bad += not outcome.fine
    terminal.console().print(rows)
    raise typer.Exit(1 if bad else 0)
