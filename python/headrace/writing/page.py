# SPDX-License-Identifier: Apache-2.0
"""What ``headrace pack`` says of arrays: before, on stderr; after, as its result."""

from __future__ import annotations

from typing import Any

from .. import terminal


def _times(numbers: list[int]) -> str:
    return "x".join(map(str, numbers))


def reads_words(reads: dict[str, Any] | None) -> str:
    """ "a sample of 4x128x128 of 't2m' reads 6.9 chunks, 1.3 MB, …; in the source: 40.0 chunks, 58 MB"."""
    if not reads or "chunks" not in reads["packed"]:
        return ""
    packed, source = reads["packed"], reads["source"]
    used = f", of which {packed['used']:.0%} is used" if "used" in packed else ""
    return (
        f"a sample of {_times(reads['sample'])} of '{reads['array']}' reads {packed['chunks']:,.1f} chunks, "
        f"{terminal.size(packed['bytes'])}{used}; in the source: {source['chunks']:,.1f} chunks, {terminal.size(source['bytes'])}"
    )


def _array_words(about: dict[str, Any]) -> str:
    words = f"{about['dtype']} {_times(about['shape']) or 'one number'}"
    if about["chunk"]:
        words += f", chunks {_times(about['chunk'])}"
    if about["shard"]:
        words += f" in shards of {_times(about['shard'])}"
    return f"{words}, {about['codec']}"


def announce_arrays(destination: str, estimate: dict[str, Any]) -> None:
    """On stderr, also into a log: what is expected is what one wants to know before hours of writing."""
    out = terminal.console(stderr=True)
    lines = [
        f"{terminal.count(len(estimate['arrays']), 'array')}, about {terminal.size(estimate['bytes'])}; "
        f"{terminal.size(estimate['free_bytes'])} are free at {destination}"
    ]
    words = reads_words(estimate["reads"])
    if words:
        lines.append(f"expected: {words}")
    if estimate["passes"] > 1.5:
        lines.append(f"each chunk of the source is opened about {estimate['passes']:.1f} times; more --memory makes it fewer")
    for line in lines:
        out.print(terminal.plain(line), soft_wrap=True)


def packed_arrays(destination: str, result: dict[str, Any], seconds: float) -> None:
    rows = terminal.facts()
    for about in result["arrays"]:
        rows.add_row(terminal.plain(about["name"]), terminal.plain(_array_words(about)))
    plain = result["plain_bytes"]
    files = terminal.count(result["files"], "file")
    rows.add_row("size", f"{terminal.size(result['bytes'])} in {files}, {result['bytes'] / max(1, plain):.0%} of the plain bytes")
    words = reads_words(result["reads"])
    if words:
        rows.add_row("reading", terminal.plain(words))
    rows.add_row("time", terminal.seconds(seconds))
    if result["was_complete"]:
        rows.add_row("", "all was there already: nothing to do")
    else:
        kept = result["plain_bytes_kept"]
        if kept:
            rows.add_row("", f"{terminal.size(kept)} were there already")
        rows.add_row("rate", f"{(plain - kept) / seconds / 1e6:,.1f} MB/s of plain bytes")
    rows.add_row("open it with", terminal.plain(f"hr.open({destination!r})"))
    terminal.console().print(rows)
