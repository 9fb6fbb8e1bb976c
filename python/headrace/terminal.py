# SPDX-License-Identifier: Apache-2.0
"""What the command line writes with: consoles, progress bars, numbers as people read them.

Results go to stdout, everything that moves goes to stderr, so that `headrace … | less` is clean.
Not imported by the library itself: rich is loaded by commands only.
"""

from __future__ import annotations

import rich.progress as parts
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 160  # rich takes 80 columns where there is no terminal, which cuts tables


def console(stderr: bool = False) -> Console:
    plain = Console(stderr=stderr, highlight=False)
    return plain if plain.is_terminal else Console(stderr=stderr, highlight=False, width=_PIPED_WIDTH)


def error(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text.assemble(("error: ", "bold red"), text))


class _Rate(parts.ProgressColumn):
    """So many a second, once that is known."""

    def render(self, task: parts.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="cyan")


def progress(of_bytes: bool = False, of_share: bool = False) -> parts.Progress:
    """Bars with counts and their rate, or bytes, or only the share that is done; and the time left; gone when done."""
    where = Console(stderr=True, highlight=False)
    counted: tuple[parts.ProgressColumn, ...] = (parts.MofNCompleteColumn(), _Rate())
    if of_bytes:
        counted = (parts.DownloadColumn(), parts.TransferSpeedColumn())
    elif of_share:
        counted = (parts.TaskProgressColumn(),)
    return parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(bar_width=30),
        *counted,
        parts.TimeElapsedColumn(),
        parts.TextColumn("[dim]left[/]"),
        parts.TimeRemainingColumn(),
        console=where,
        transient=True,
        disable=not where.is_terminal,  # in a log it would leave empty lines
    )


def table(*columns: str, title: str | None = None) -> Table:
    """Columns whose name starts with '>' are numbers."""
    out = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", header_style="bold")
    for name in columns:
        out.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return out


def facts() -> Table:
    """A table of two columns without lines: a name, and what is said of it."""
    out = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    out.add_column(style="bold", no_wrap=True)
    out.add_column(overflow="fold")
    return out


def plain(text: str) -> Text:
    """Text from data: never read as rich's markup, control characters made visible."""
    return Text("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


def ok(good: bool) -> Text:
    return Text("ok", style="green") if good else Text("FAIL", style="bold red")


def size(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if abs(n) < 1000:
            return f"{n:,.0f} {unit}" if unit == "B" or n >= 100 else f"{n:,.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} TB"


def seconds(s: float) -> str:
    return f"{s:.1f} s" if s < 120 else f"{int(s) // 60} min {int(s) % 60} s"


def count(n: int, what: str, plural: str = "") -> str:
    return f"{n:,} {what if n == 1 else plural or what + 's'}"
