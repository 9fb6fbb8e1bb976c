# SPDX-License-Identifier: Apache-2.0
"""``headrace tokenize``: texts to files of tokens."""

from __future__ import annotations

import time
from typing import Annotated, Optional

import typer

import headrace as hr

from .cli_options import Source


def tokenize(
    url: Source,
    to: Annotated[str, typer.Argument(help="An empty folder, or one that an earlier call left unfinished.")],
    tokenizer: Annotated[
        str, typer.Option(metavar="T", help="A tokenizer.json, a SentencePiece .model, a folder with one, or tiktoken:NAME.")
    ],
    field: Annotated[Optional[str], typer.Option(help="The field with the texts; found out unless given.")] = None,
    end: Annotated[
        Optional[str], typer.Option(help="The token after every document; the tokenizer's usual one unless given.")
    ] = None,
    no_end: Annotated[bool, typer.Option("--no-end", help="Nothing after a document.")] = False,
    shard_tokens: Annotated[int, typer.Option(help="About so many tokens a pair of files.", min=1)] = 100_000_000,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out texts that cannot be read, and count them.")] = False,
) -> None:
    """Tokenise a corpus once: Megatron's pairs of .bin and .idx, for [bold]hr.tokens(seq_len=2048)[/].

    Ranks of a Slurm, PBS or MPI job share the work. The same command again goes on where it stopped.

    Example: [bold]headrace tokenize 'corpus/*.jsonl.gz' tokens --tokenizer tokenizer.json[/]
    """
    from . import terminal

    began = time.monotonic()
    with terminal.progress(of_share=True) as bars:
        task = bars.add_task("tokens", total=None)

        def tell(done: int, total: int, tokens: int) -> None:
            rate = tokens / max(1e-9, time.monotonic() - began)
            bars.update(task, completed=done, total=total, description=f"{tokens:,} tokens, {rate:,.0f}/s")

        found = hr.tokenize(
            url,
            to,
            tokenizer=tokenizer,
            field=field,
            end_of_document=False if no_end else True if end is None else end,
            shard_tokens=shard_tokens,
            bad_samples="skip" if skip_bad else "raise",
            progress=tell,
        )
    took = max(1e-9, time.monotonic() - began)
    lines = terminal.facts()
    lines.add_row("documents", f"{found['written_documents']:,}")
    lines.add_row("tokens", f"{found['tokens']:,} as {found['dtype']}, vocabulary {found['vocabulary']:,}")
    lines.add_row("files", f"{terminal.count(len(found['files']), 'pair')} in {to}")
    lines.add_row("lengths", ", ".join(f"≤{most}: {count:,}" for most, count in found["lengths"].items()))
    lines.add_row("took", f"{terminal.seconds(took)}")
    terminal.console().print(lines)
    notes = terminal.console(stderr=True)
    if found["tasks_done"] < found["tasks"]:
        notes.print(
            f"{found['tasks_done']:,} of {found['tasks']:,} parts are done; other ranks, or this command again, do the rest"
        )
    if found["left_out"]:
        place, cause = found["left_out_are"][0]
        notes.print(
            terminal.plain(f"{found['left_out']:,} documents could not be read and are left out; the first: {place}: {cause}")
        )
