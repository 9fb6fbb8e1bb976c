# SPDX-License-Identifier: Apache-2.0
"""``headrace stage SRC DST``: a data set copied ahead of time."""

from __future__ import annotations

import time
from typing import Annotated, Any, Optional

import typer

import headrace as hr


def stage(
    paths: Annotated[list[str], typer.Argument(metavar="SRC... DST", help="The data set, then the folder it is copied to.")],
    streams: Annotated[Optional[int], typer.Option(help="Parts copied at a time; else as the storage likes.", min=1)] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Reads the copies again, against their checksums.")] = False,
    share: Annotated[
        bool,
        typer.Option(
            "--share",
            help="Only what the ranks of this node read, for Loader(SRC, stage=DST, stage_share=True) with the options below.",
        ),
    ] = False,
    batch_size: Annotated[Optional[int], typer.Option(help="--share: of one rank, as the Loader's.", min=1)] = None,
    global_batch_size: Annotated[Optional[int], typer.Option(help="--share: of all ranks, instead.", min=1)] = None,
    shuffle: Annotated[str, typer.Option(help="--share: auto, global, pool or no, as the Loader's.")] = "auto",
    seed: Annotated[int, typer.Option(help="--share: the Loader's.", min=0)] = 0,
    reassign_every: Annotated[int, typer.Option(help="--share: so many epochs, the Loader's.", min=1)] = 1,
    rank: Annotated[Optional[int], typer.Option(help="--share: one of this node; else as the launcher says.", min=0)] = None,
    world_size: Annotated[Optional[int], typer.Option(help="--share: with --rank, all ranks.", min=1)] = None,
    local_ranks: Annotated[Optional[int], typer.Option(help="--share: of each node; else as the launcher says.", min=1)] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Removes what was copied to DST; no SRC is given then.")] = False,
) -> None:
    """Copies a data set to a near disk, with many streams; the same command again goes on after a kill.

    Example: [bold]headrace stage 's3://bucket/train-*.tar' /nvme/train --verify[/]

    Of many nodes each its share: [bold]srun headrace stage 's3://bucket/train-*.tar' /nvme/hr --share --batch-size 256 --shuffle pool --reassign-every 10[/]
    """
    from . import terminal

    out: Any = terminal.console()
    if remove:
        if len(paths) != 1:
            raise hr.UsageError("headrace stage --remove DST: the folder alone")
        gone = hr.remove_stage(paths[0])
        out.print(terminal.plain(f"{paths[0]}: {terminal.size(gone)} removed"), soft_wrap=True)
        return
    if len(paths) < 2:
        raise hr.UsageError("headrace stage SRC DST: the data set, and the folder it is copied to")
    *source, to = paths
    order: dict[str, Any] | None = None
    if share:
        modes: dict[str, Any] = {"auto": True, "global": "global", "pool": "pool", "no": False}
        if shuffle not in modes:
            raise hr.UsageError(f"--shuffle is one of {', '.join(modes)}, not {shuffle!r}")
        if batch_size is None and global_batch_size is None:
            raise hr.UsageError("--share needs the batch size of the training: --batch-size 256, or --global-batch-size")
        order = {
            "batch_size": batch_size,
            "global_batch_size": global_batch_size,
            "shuffle": modes[shuffle],
            "seed": seed,
            "reassign_every": reassign_every,
            "rank": rank,
            "world_size": world_size,
            "local_ranks": local_ranks,
        }
    start = time.perf_counter()
    with terminal.progress(of_bytes=True) as bars:
        task = bars.add_task("copying", total=None)
        report = hr.stage(
            source,
            to,
            streams=streams,
            verify=verify,
            progress=lambda done, total: bars.update(task, completed=done, total=total),
            share=order,
        )
    took = max(time.perf_counter() - start, 1e-9)
    words = f"{terminal.count(report['files'], 'file')}, {terminal.size(report['bytes'])}"
    if report["copied_bytes"] < report["bytes"]:
        words += f", of which {terminal.size(report['bytes'] - report['copied_bytes'])} were there"
    rate = f"{terminal.size(report['copied_bytes'] / took)}/s"
    verified = ", verified" if verify else ""
    out.print(terminal.plain(f"{to}: {words}, {terminal.seconds(took)}, {rate}{verified}"), soft_wrap=True)
