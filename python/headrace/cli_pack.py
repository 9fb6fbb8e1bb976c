# SPDX-License-Identifier: Apache-2.0
"""``headrace pack`` and ``headrace verify``: writing data sets, and proving that they are whole."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any, Optional

import typer

import headrace as hr

from .cli_options import Index, Json, Names, Root, Source, Threads, names

_NAMES = "; several: a,b or the option again"


def _pairs(texts: list[str], option: str, example: str) -> dict[str, str]:
    """`a=b` each, or several with commas between."""
    out: dict[str, str] = {}
    for text in (t for item in texts for t in item.split(",")):
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip() or name.strip() in out:
            raise hr.UsageError(f"{option} is like {example}, not {text!r}")
        out[name.strip()] = value.strip()
    return out


def _shares(texts: list[str]) -> dict[str, float]:
    try:
        return {name: float(share) for name, share in _pairs(texts, "--split", "train=0.9,val=0.1").items()}
    except ValueError:
        raise hr.UsageError(f"--split is like train=0.9,val=0.1, not {','.join(texts)!r}") from None


def _sizes(text: str) -> list[int]:
    try:
        return [int(n) for n in text.split(",")]
    except ValueError:
        raise hr.UsageError(f"--patch is like 128 or 64,64,64, not {text!r}") from None


def pack(
    source: Source,
    destination: Annotated[
        str, typer.Argument(help="The folder that the shards are written to; of arrays the .zarr, .h5 or .npy.")
    ],
    to: Annotated[str, typer.Option(help="The format; `headrace formats` lists them.")] = "tar",
    shards: Annotated[int, typer.Option(help="How many shards; 0: by --shard-size.", min=0)] = 0,
    shard_size: Annotated[Optional[str], typer.Option(help="About how large a shard is to be: 512M, 1G.")] = None,
    for_ranks: Annotated[int, typer.Option(help="Make the number of shards a multiple of this many ranks …", min=1)] = 1,
    for_workers: Annotated[int, typer.Option(help="… times this many workers each.", min=1)] = 1,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", "--no-shuffle", help="Keep the order; else each shard is a random part.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the random order, and of --split.", min=0)] = 0,
    fields: Annotated[Names, typer.Option(help=f"A field to write, in place of all{_NAMES}.")] = None,
    drop: Annotated[Names, typer.Option(help=f"A field not to write{_NAMES}.")] = None,
    rename: Annotated[Names, typer.Option(help=f"new=old: the field's new name{_NAMES}.")] = None,
    max_side: Annotated[
        Optional[int], typer.Option(help="Make pictures whose longer side exceeds this smaller; others stay as they are.", min=1)
    ] = None,
    quality: Annotated[
        Optional[int], typer.Option(help="Encode every JPEG again with this quality; --max-side alone uses 90.", min=1, max=100)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Store pictures as plain pixels (.npy).")] = False,
    recode: Annotated[Names, typer.Option(help=f"The picture fields that these are for; else all{_NAMES}.")] = None,
    split: Annotated[
        Names, typer.Option(help="train=0.9,val=0.1: a pack in DESTINATION/train and one in DESTINATION/val, by key.")
    ] = None,
    codec: Annotated[
        Optional[str], typer.Option(help="Of Zarr and HDF5: blosc-lz4, blosc-zstd, zstd, gzip, none; zstd:9 with a level.")
    ] = None,
    window: Annotated[
        Optional[int], typer.Option(help="Arrays: steps that a sample will take; chunks are cut for it.", min=1)
    ] = None,
    patch: Annotated[Optional[str], typer.Option(help="Arrays: 128 or 64,64,64: what it takes of the last axes.")] = None,
    along: Annotated[Optional[str], typer.Option(help="Arrays: the axis that samples run along; else the first.")] = None,
    memory: Annotated[Optional[str], typer.Option(help="Samples held while shuffling: 4G; else an eighth of the memory.")] = None,
    threads: Threads = 0,
    root: Root = None,
) -> None:
    """Writes a data set as even shards. The same command again goes on where it stopped.

    Examples:

    [bold]headrace pack imagenet/train train-tar --shard-size 512M --for-ranks 64[/]

    [bold]headrace pack 'raw-*.tar' small --max-side 512 --quality 90 --drop json --rename image=jpg --to tfrecord[/]

    [bold]headrace pack pictures/ s3://bucket/pictures[/]

    [bold]headrace pack pictures/ packed --split train=0.9,val=0.1[/]

    [bold]headrace pack 'cube-{1979..2020}.nc' cube.zarr --to zarr --window 4 --patch 128[/]
    """
    from . import terminal
    from .packing import prepare

    start = time.perf_counter()
    work = prepare(
        source, destination, to=to, shards=shards, shard_size=shard_size or 0, for_ranks=for_ranks, for_workers=for_workers,
        keep_order=keep_order, seed=seed, fields=names(fields), drop=names(drop),
        rename=_pairs(rename, "--rename", "new=old") if rename else None, max_side=max_side, quality=quality, raw=raw,
        recode=names(recode), split=_shares(split) if split else None, codec=codec, window=window,
        patch=_sizes(patch) if patch else None, along=along, threads=threads, memory=memory, root=root,
    )  # fmt: skip
    estimate = work.estimate()
    of_arrays = "arrays" in estimate
    _announce(destination, estimate)
    with terminal.progress() as bars:
        task = bars.add_task("packing MB" if of_arrays else "packing samples", total=None)

        def tell(done: int, total: int, *_: int) -> None:
            unit = 10**6 if of_arrays else 1
            bars.update(task, completed=done // unit, total=total // unit)

        result = work.run(tell)
    if of_arrays:
        from .writing.page import packed_arrays

        packed_arrays(destination, result, time.perf_counter() - start)
    else:
        _packed(destination, result, time.perf_counter() - start)


def _announce(destination: str, estimate: dict[str, Any]) -> None:
    """What is about to happen, on stderr: it is no result."""
    from . import terminal

    if "arrays" in estimate:
        from .writing.page import announce_arrays

        announce_arrays(destination, estimate)
        return
    words = (
        f"{terminal.count(estimate['samples'], 'sample')} into {terminal.count(estimate['shards'], 'shard')}, "
        f"about {terminal.size(estimate['bytes'])}"
    )
    if "://" not in destination:
        words += f"; {terminal.size(estimate['free_bytes'])} are free at {destination}"
    if sys.stderr.isatty():
        terminal.console(stderr=True).print(terminal.plain(words), soft_wrap=True)


def _packed(destination: str, result: dict[str, Any], seconds: float) -> None:
    from . import terminal

    rows = terminal.facts()
    rows.add_row("samples", f"{result['samples']:,}")
    if result.get("left_out"):
        rows.add_row("left out", f"{result['left_out']:,}: the shares sum to less than 1")
    kept = f" ({result['shards_kept']:,} were there already)" if result.get("shards_kept") else ""
    rows.add_row("shards", f"{result['shards']:,}{kept}")
    rows.add_row("size", f"{terminal.size(result['bytes'])}, {terminal.size(result['bytes'] / max(1, result['shards']))} a shard")
    rows.add_row("time", terminal.seconds(seconds))
    if result.get("was_complete"):
        rows.add_row("", "all was there already: nothing to do")
    else:
        written = result["samples"] - result["samples_kept"]
        size = result["bytes"] * written / max(1, result["samples"])
        rows.add_row("rate", f"{written / seconds:,.0f} samples/s, {size / seconds / 1e6:,.1f} MB/s")
    for name, part in result.get("parts", {}).items():
        rows.add_row(name, f"{part['samples']:,} samples, {part['shards']:,} shards, {terminal.size(part['bytes'])}")
    for name in result.get("parts", {"": None}):
        where = f"{destination.rstrip('/')}/{name}" if name else destination
        rows.add_row("open it with", terminal.plain(f"hr.open({where!r})"))
    terminal.console().print(rows)


def verify(
    url: Source,
    root: Root = None,
    index: Index = None,
    threads: Threads = 0,
    show: Annotated[int, typer.Option(help="Bad samples that are named at most.", min=0)] = 50,
    as_json: Json = False,
) -> None:
    """Reads every sample, decodes every picture, names what is bad (exit code 1).

    What `headrace pack` wrote is compared with the sizes and checksums of its manifest as well.

    Example: [bold]headrace verify 'train-*.tar'[/]
    """
    from . import _core, terminal
    from .verify import Verified, check_packs
    from .verify import verify as run

    start = time.perf_counter()
    found = Verified()
    threads = threads or _core.usable_cpus()
    with terminal.progress() as bars:
        task = bars.add_task("comparing checksums", total=None)
        packs = check_packs(url, threads, lambda done, total: bars.update(task, completed=done, total=total))
        bars.reset(task, description="reading samples", total=None)

        def tell(done: int, total: int, bad: int) -> None:
            words = f"reading samples, [red]{bad:,} bad[/]" if bad else "reading samples"
            bars.update(task, completed=done, total=total, description=words)

        try:
            found = run(url, root=root, index=index, threads=threads, progress=tell)
        except hr.DataError as e:  # not even the index can be made: a cut shard, say
            found.error = str(e)
    found.compare(packs)
    if as_json:
        print(json.dumps(found.as_data(show), indent=2))
    else:
        found.page(show, time.perf_counter() - start)
    raise typer.Exit(0 if found.good else 1)
