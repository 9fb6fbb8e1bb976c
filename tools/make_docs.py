# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from the code: the stubs, the steps, the table of formats, the reference, the pictures.

./dev docs            writes
./dev docs --check    fails where a file is not current
"""

from __future__ import annotations

import inspect
import pathlib
import subprocess
import sys
import tempfile

import headrace as hr
import make_cpp_steps
import make_flow_svg
import make_jpeg_svg
import make_steps

ROOT = pathlib.Path(__file__).resolve().parent.parent


def stubs() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "headrace._core", "-O", folder]
        subprocess.run(command, check=True)
        return "# Made by ./dev docs.\n" + (pathlib.Path(folder) / "_core.pyi").read_text()


def steps() -> str:
    """As the formatter leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "python/headrace/_steps.py", "-"]
    done = subprocess.run(command, check=True, cwd=ROOT, input=make_steps.text(), capture_output=True, text=True)
    return done.stdout


def formats() -> str:
    lines = [
        "# Formats",
        "",
        "Made by `./dev docs` from the table that the engine walks; `headrace formats` prints it.",
        "",
        "| format | read | write | notices changed bytes itself | and a cut between samples | what |",
        "|---|---|---|---|---|---|",
    ]
    mark = {True: "✓", False: "–"}
    for f in (f for f in hr.formats() if f["holds"] == "records"):
        notices = "✓" if f["checksum"] else "lengths and names" if f["lengths"] else "–"
        lines.append(f"| {f['name']} | {mark[f['read']]} | {mark[f['write']]} | {notices} | {mark[f['end']]} | {f['doc']} |")
    lines += ["", "What becomes of records, labels and keys: [record_formats.md](record_formats.md)."]
    lines += ["", "Files of arrays, read by windows and patches ([arrays.md](arrays.md)):", ""]
    lines += ["| format | read | write | names | what |", "|---|---|---|---|---|"]
    for f in (f for f in hr.formats() if f["holds"] == "arrays"):
        names = " ".join(f"`{s}`" for s in f["suffixes"])
        lines.append(f"| {f['name']} | {mark[f['read']]} | {mark[f['write']]} | {names} | {f['doc']} |")
    lines += ["", "Pictures, by their bytes and never by their names; `docs/odd_files.md` says what becomes of odd ones:", ""]
    lines += ["| picture | decoded | encoded | by | what |", "|---|---|---|---|---|"]
    for name, doc, library, encodes in hr._core.image_codecs():
        lines.append(f"| {name} | ✓ | {mark[encodes]} | {library} | {doc} |")
    return "\n".join(lines) + "\n"


def signature(thing: object) -> str:
    try:
        return str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def entry(name: str, thing: object, depth: int) -> list[str]:
    text = inspect.getdoc(thing) or ""
    return [f"{'#' * depth} `{name}{signature(thing)}`", "", text, ""]


def reference() -> str:
    lines = ["# Reference", "", "Made by `./dev docs` from the docstrings.", ""]
    for name in sorted([*hr.__all__, "bytes", "json", "map", "open"]):
        thing = getattr(hr, name)
        if inspect.isclass(thing):
            lines += entry(f"hr.{name}", thing, 2)
            own = [c for c in reversed(thing.__mro__) if c is thing or (c.__module__ == "headrace._steps")]
            for member, value in sorted({m: v for c in own for m, v in vars(c).items()}.items()):
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    lines += entry(f"{name}.{member}", value, 3)
        elif callable(thing):
            lines += entry(f"hr.{name}", thing, 2)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    made = {
        "python/headrace/_core.pyi": stubs(),
        "python/headrace/_steps.py": steps(),
        "include/headrace/step_options.h": make_cpp_steps.options(),
        "include/headrace/step_methods.inc": make_cpp_steps.methods(),
        "docs/formats.md": formats(),
        "docs/reference.md": reference(),
        "docs/images/flow.svg": make_flow_svg.draw(),
        "docs/images/jpeg.svg": make_jpeg_svg.draw(),
    }
    stale = [name for name, text in made.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    if "--check" in sys.argv:
        print("\n".join(f"{name} is not current: ./dev docs" for name in stale) or "docs: current")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(made[name])
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
