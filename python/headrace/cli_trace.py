# SPDX-License-Identifier: Apache-2.0
"""``headrace trace``: what the threads of a Loader do, for Perfetto."""

from __future__ import annotations

from typing import Annotated

import typer

import headrace as hr

from .cli_options import Root, Source, Threads


def trace(
    url: Source,
    to: Annotated[str, typer.Option(metavar="FILE", help="The file that is written.")] = "trace.json",
    batch_size: Annotated[int, typer.Option(help="Samples of a batch.", min=1)] = 32,
    batches: Annotated[int, typer.Option(help="Batches that are loaded, at most.", min=1)] = 50,
    threads: Threads = 0,
    root: Root = None,
) -> None:
    """Loads batches of a data set as they lie and writes what every thread did to a file for https://ui.perfetto.dev.

    In a program of your own: [bold]with hr.trace("run.json"):[/]

    Example: [bold]headrace trace 'train-{0000..0007}.tar' --to run.json[/]
    """
    loader = hr.Loader(
        url,
        batch_size,
        output="numpy",
        root=root,
        threads=threads or "auto",
        tail="keep",
        rank=0,
        world_size=1,
        bad_samples="replace",
    )
    with loader, hr.trace(to):
        taken = sum(1 for _ in zip(range(batches), loader.epoch(0)))
    print(f"{taken} batches of {batch_size}: {to}; open it in https://ui.perfetto.dev")
