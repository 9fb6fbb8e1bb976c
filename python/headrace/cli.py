# SPDX-License-Identifier: Apache-2.0
"""The command line: ``headrace inspect | index | pack | verify | stats | tokenize | stage | cache | trace | check-format | formats | doctor | demo``.

Results on stdout, progress and errors on stderr. Exit codes: 0 fine, 1 something is bad or missing,
2 it could not be done (one line says why), 130 interrupted.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperGroup

import headrace as hr

from .cli_cache import cache
from .cli_options import Index, Json, Root, Source
from .cli_pack import pack, verify
from .cli_plugins import check_format
from .cli_stage import stage
from .cli_stats import stats
from .cli_tokenize import tokenize
from .cli_trace import trace


class _Commands(TyperGroup):
    """Turns what can go wrong into one line and an exit code, for every command."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has seen enough
            raise typer.Exit(0) from None
        except (hr.Error, OSError) as e:
            from .terminal import error

            error(str(e) or type(e).__name__)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Feeds deep-learning training: shuffled, split over ranks, decoded, ahead of the step.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"headrace {hr.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,
) -> None:
    pass


@app.command()
def inspect(
    url: Source,
    root: Root = None,
    index: Index = None,
    sample: Annotated[int, typer.Option(help="The sample that is shown; -1 is the last.")] = 0,
    read: Annotated[int, typer.Option(help="Samples that are read for the sizes.", min=1)] = 32,
    contact_sheet: Annotated[
        Optional[str],
        typer.Option("--contact-sheet", metavar="FILE", help="Pictures of the data set side by side, as a JPEG, PNG or WebP."),
    ] = None,
    pictures: Annotated[int, typer.Option(help="Pictures on the contact sheet.", min=1, max=10000)] = 64,
    as_json: Json = False,
) -> None:
    """What a data set is: format, fields, counts, sizes, and one sample; its pictures as one file.

    Example: [bold]headrace inspect 'train-{0000..0127}.tar'[/], [bold]headrace inspect photos --contact-sheet photos.jpg[/]
    """
    from . import inspection, notebook, terminal

    if contact_sheet is not None:
        notebook.write_contact_sheet(hr.open(url, root=root, index=index), contact_sheet, pictures)
    with terminal.console(stderr=True).status("opening (the first time builds the index)"):
        facts = inspection.look(url, root=root, index=index, number=sample, samples=read)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        inspection.page(facts)


@app.command()
def index(
    source: Source,
    to: Annotated[str, typer.Option(help="The folder that the index is written to.")] = "",
    root: Root = None,
    lengths: Annotated[str, typer.Option(help="Counts the values of this field, for hr.packed and max_tokens.")] = "",
    tokenizer: Annotated[str, typer.Option(help="With --lengths: counts the tokens that .tokenize() makes of the texts.")] = "",
    chat: Annotated[bool, typer.Option("--chat", help="With --tokenizer: those that .chat() makes of messages.")] = False,
    template: Annotated[str, typer.Option(help="With --chat: the chat template, a file.")] = "",
    special: Annotated[bool, typer.Option(help="With --tokenizer: as .tokenize(special=…).")] = True,
    end: Annotated[bool, typer.Option("--end", help="With --tokenizer: as .tokenize(end=True).")] = False,
) -> None:
    """Builds the index ahead of time, for [bold]Loader(index=…)[/]; or counts lengths, which are kept beside the data.

    Example: [bold]headrace index 'train-{000000..009999}.tar' --to train.index[/]
    """
    from . import terminal

    if lengths:
        from .lengths import lengths_of

        field: hr.fields.Field = hr.tokens(lengths)
        if tokenizer and chat:
            field = hr.json(lengths).chat(tokenizer, template=template or None)
        elif tokenizer:
            field = hr.text(lengths).tokenize(tokenizer, special=special, end=end)
        counted = lengths_of(hr.open(source), lengths, field, ahead=True)
        words = f"{terminal.count(len(counted), 'sample')}, {int(counted.sum()):,} elements of '{lengths}'"
        terminal.console().print(terminal.plain(words), soft_wrap=True)
    if not to:
        if not lengths:
            raise hr.UsageError("say where the index goes: --to FOLDER; or what to count: --lengths FIELD")
        return

    start = time.perf_counter()
    seen = [0, 0]
    with terminal.progress() as bars:
        task = bars.add_task("indexing shards", total=None)

        def tell(done: int, shards: int, samples: int) -> None:
            seen[:] = shards, samples
            bars.update(task, completed=done, total=shards)

        hr.build_index(source, to, root=root, progress=tell)
    out = terminal.console()
    words = f"{terminal.count(seen[1], 'sample')} in {terminal.count(seen[0], 'shard')}"
    out.print(terminal.plain(f"{to}: {words}, {terminal.seconds(time.perf_counter() - start)}"), soft_wrap=True)


app.command()(pack)
app.command()(verify)
app.command()(stats)
app.command()(tokenize)
app.command()(trace)
app.command()(stage)
app.command("check-format")(check_format)
app.add_typer(cache, name="cache")


@app.command()
def formats() -> None:
    """What this build reads and writes, and the pictures it decodes.

    Example: [bold]headrace formats[/]
    """
    from . import _core, terminal

    rows = terminal.table("format", "reads", "writes", "names", "what it is")
    for f in hr.formats():
        rows.add_row(f["name"], "yes" if f["read"] else "no", "yes" if f["write"] else "no", " ".join(f["suffixes"]), f["doc"])
    terminal.console().print(rows)
    rows = terminal.table("pictures", "decoded", "encoded", "by", "what")
    for name, doc, library, encodes in _core.image_codecs():
        rows.add_row(name, "yes", "yes" if encodes else "no", library, doc)
    terminal.console().print(rows)
    rows = terminal.table("store", "URLs", "what it has")
    for store in _core.stores():
        rows.add_row(store["name"], " ".join(f"{scheme}://" for scheme in store["schemes"]), store["purpose"])
    terminal.console().print(rows)


@app.command()
def doctor() -> None:
    """What this installation has, what is missing, and how to get it.

    Example: [bold]headrace doctor[/]
    """
    from . import terminal

    found = hr.doctor()
    rows = terminal.table("what", "", "")
    rows.show_header = False
    rows.add_row("headrace", terminal.ok(True), f"{hr.__version__}, Python {sys.version.split()[0]}, {Path(hr.__file__).parent}")
    for what, fine, words in found:
        absent = fine and "not installed" in words  # and can be done without
        rows.add_row(what, "-" if absent else terminal.ok(fine), terminal.plain(words))
    terminal.console().print(rows)
    raise typer.Exit(0 if all(fine for _, fine, _ in found) else 1)


@app.command()
def demo(
    directory: Annotated[Path, typer.Option("--dir", help="Where the data set is made and kept.")] = Path("data/demo"),
    images: Annotated[int, typer.Option(help="Pictures to make, about 100 KB each.", min=40)] = 1200,
    ranks: Annotated[str, typer.Option(help="Numbers of ranks to try.")] = "3,4",
    rounds: Annotated[int, typer.Option(help="Rounds of the comparison with PyTorch's DataLoader; 0: without.", min=0)] = 3,
) -> None:
    """Makes a data set, loads it in every way, and proves that all came right.

    Example: [bold]headrace demo --dir /tmp/demo[/]
    """
    from .demo import run

    try:
        worlds = sorted({int(r) for r in ranks.split(",")})
    except ValueError:
        worlds = []
    if not worlds or worlds[0] < 1 or worlds[-1] > 16:
        raise hr.UsageError(f"--ranks is numbers from 1 to 16, like 3,4; not {ranks!r}")
    raise typer.Exit(0 if run(directory, images, worlds, rounds) else 1)


def main() -> None:
    """The entry point of the ``headrace`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows ASCII alone gets all the same
    app(prog_name="headrace")
