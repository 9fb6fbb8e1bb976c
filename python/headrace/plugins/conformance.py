# SPDX-License-Identifier: Apache-2.0
"""``headrace check-format``: the promises that formats and codecs keep, tried on the examples that they bring.

Damage is tried in processes of their own: a codec that calls a library may end the process that it runs in.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..dataset import open as open_dataset
from ..errors import DataError, Error, UsageError
from . import registry
from .registry import Codec, Format

_CUTS = 24  # places of a file where damage is tried
_PATIENCE_S = 120


class Outcome(NamedTuple):
    """One check of one format or codec."""

    what: str  # "format mybin", "codec dicom"
    check: str
    fine: bool
    words: str


class _Failed(Exception):
    pass


def _need(fine: bool, words: str) -> None:
    if not fine:
        raise _Failed(words)


def find(package: str) -> tuple[list[Format], list[Codec]]:
    """What a package registers: by its entry point, or when the module of that name is imported."""
    from importlib.metadata import entry_points

    formats, codecs = set(registry.registered_formats()), set(registry.registered_codecs())
    entries = [
        e for e in entry_points(group=registry.GROUP) if e.name == package or e.value.partition(":")[0].split(".")[0] == package
    ]
    for entry in entries:
        entry.load()()
    if not entries:
        try:
            module = importlib.import_module(package)
        except ImportError as e:
            raise UsageError(
                f"there is no package '{package}' with an entry point in the group {registry.GROUP}, and no module of that name: {e}"
            ) from e
        if callable(getattr(module, "register", None)):
            module.register()
    found = (
        [f for f in registry.registered_formats() if f not in formats],
        [c for c in registry.registered_codecs() if c not in codecs],
    )
    if not any(found):
        raise UsageError(f"'{package}' registers no format and no codec that was not there before")
    return found


def check(package: str) -> Iterator[Outcome]:
    """All checks of what a package registers, one after the other."""
    formats, codecs = find(package)
    for form in formats:
        yield from _run(
            f"format {form.name}", FormatChecks(form, package).all(), form.example, "example=function(folder) that writes files"
        )
    for codec in codecs:
        yield from _run(
            f"codec {codec.name}", CodecChecks(codec, package).all(), codec.example, "example=function that gives (bytes, array)"
        )


def _run(what: str, checks: Sequence[tuple[str, Callable[[], str]]], example: Any, wanted: str) -> Iterator[Outcome]:
    if example is None:
        yield Outcome(what, "has examples", False, f"none to try: register it with {wanted}")
        return
    for name, function in checks:
        try:
            yield Outcome(what, name, True, function())
        except _Failed as e:
            yield Outcome(what, name, False, str(e))
        except Exception as e:
            yield Outcome(what, name, False, f"raised {type(e).__name__}: {e}")


# -- formats ---------------------------------------------------------------------------------------


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


class FormatChecks:
    """Of one format: its promises, each a method that gives a word, or fails."""

    def __init__(self, form: Format, package: str) -> None:
        self.form, self.package = form, package
        self.folder = tempfile.TemporaryDirectory(prefix="headrace-check-")
        self.first = Path(self.folder.name) / "first"
        self._files: list[str] = []

    def all(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("opens", self.opens),
            ("keys differ", self.keys),
            ("opened twice, the same", self.again),
            ("read in any order", self.order),
            ("read by several threads", self.threads),
            ("moved", self.moved),
            ("cut short", lambda: _in_process(self.package, "format", self.form.name, "cut", self.files()[0])),
            ("a bit flipped", lambda: _in_process(self.package, "format", self.form.name, "flip", self.files()[0])),
        ]

    def files(self) -> list[str]:
        if not self._files:
            self.first.mkdir()
            assert self.form.example is not None
            self._files = [os.fspath(p) for p in self.form.example(str(self.first))]
            _need(bool(self._files), "example() returned no path")
        for path in self._files:
            endings = " or ".join(self.form.suffixes)
            _need(path.lower().endswith(self.form.suffixes), f"example() wrote {path}, which does not end in {endings}")
        return self._files

    def opens(self) -> str:
        ds = open_dataset(self.files())
        _need(ds.format == self.form.name, f"hr.open takes its files for '{ds.format}'")
        return f"{len(ds)} samples, fields {', '.join(n for n, _ in ds.schema)}"

    def keys(self) -> str:
        ds = open_dataset(self.files())
        keys = [ds.key(i) for i in range(len(ds))]
        twins = sorted({k for k in keys if keys.count(k) > 1})
        _need(not twins, f"two samples have the key {twins[:1]}")
        return f"{len(keys)} keys"

    def again(self) -> str:
        first, second = open_dataset(self.files()), open_dataset(self.files())
        _need(first.fingerprint == second.fingerprint, "opened twice, its fingerprint differs")
        for i in range(len(first)):
            _need(_equal(first[i], second[i]), f"opened twice, sample {i} differs")
        return "samples and fingerprint"

    def order(self) -> str:
        ds = open_dataset(self.files())
        forward = [ds[i] for i in range(len(ds))]
        for i in reversed(range(len(ds))):
            _need(_equal(ds[i], forward[i]), f"sample {i} depends on what was read before it")
        return "backwards as forwards"

    def threads(self) -> str:
        ds = open_dataset(self.files())
        want = [ds[i] for i in range(len(ds))]
        with ThreadPoolExecutor(4) as threads:
            for i, got in enumerate(threads.map(ds.__getitem__, range(len(ds)))):
                _need(_equal(got, want[i]), f"read by four threads, sample {i} differs")
        return "four threads"

    def moved(self) -> str:
        place = Path(self.folder.name) / "second"
        shutil.copytree(self.first, place)
        again = [os.path.join(place, os.path.relpath(p, self.first)) for p in self.files()]
        same = open_dataset(again).fingerprint == open_dataset(self.files()).fingerprint
        _need(same, "moved to another folder, its fingerprint differs")
        return "the fingerprint stays"


# -- codecs ----------------------------------------------------------------------------------------


class CodecChecks:
    """Of one codec, likewise."""

    def __init__(self, codec: Codec, package: str) -> None:
        self.codec, self.package = codec, package

    def all(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("decodes", self.decodes),
            ("the same again", self.again),
            ("by several threads", self.threads),
            ("read from files", self.read),
            ("cut short", lambda: _in_process(self.package, "codec", self.codec.name, "cut", "")),
            ("a bit flipped", lambda: _in_process(self.package, "codec", self.codec.name, "flip", "")),
        ]

    def pairs(self) -> list[tuple[bytes, Any]]:
        assert self.codec.example is not None
        found = [(bytes(data), np.asarray(array)) for data, array in self.codec.example()]
        _need(bool(found), "example() gave no pair")
        return found

    def decodes(self) -> str:
        from ..sources.items import as_array

        for n, (data, want) in enumerate(self.pairs()):
            got = as_array(self.codec.decode(data))
            if got is None:
                raise _Failed(f"example {n}: no array of numbers came")
            same = got.shape == want.shape and got.dtype == want.dtype
            _need(same, f"example {n}: {got.dtype}{got.shape} came, not {want.dtype}{want.shape}")
            _need(np.array_equal(got, want), f"example {n}: other numbers came")
        return f"{len(self.pairs())} examples"

    def again(self) -> str:
        for n, (data, _) in enumerate(self.pairs()):
            _need(self.codec(data) == self.codec(data), f"example {n}: decoded twice, it differs")
        return "twice the same"

    def threads(self) -> str:
        examples = self.pairs() * 8
        want = [self.codec(data) for data, _ in examples]
        with ThreadPoolExecutor(4) as pool:
            _need(list(pool.map(lambda p: self.codec(p[0]), examples)) == want, "by four threads it differs")
        return "four threads"

    def read(self) -> str:
        from ..fields import array

        name = self.codec.extensions[0]
        with tempfile.TemporaryDirectory(prefix="headrace-check-") as folder:
            for n, (data, _) in enumerate(self.pairs()):
                Path(folder, f"{n:04}.{name}").write_bytes(data)
            ds = open_dataset(folder, {"x": array(name).list()})
            for n, (_, want) in enumerate(self.pairs()):
                _need(np.array_equal(ds[n]["x"], want), f"example {n}: read from a file, other numbers came")
        return f'hr.array("{name}")'


# -- damage ----------------------------------------------------------------------------------------


def _in_process(package: str, what: str, name: str, kind: str, path: str) -> str:
    """Tries damage in a process of its own: it must end by itself, and well."""
    command = [sys.executable, "-m", "headrace.plugins.conformance", package, what, name, kind, path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise _Failed(f"still at it after {_PATIENCE_S} s: damaged data must not hang it") from None
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [""]
    if done.returncode < 0:
        raise _Failed(f"the process was ended by signal {-done.returncode}: damaged data must raise an error")
    if done.returncode:
        raise _Failed(lines[-1])
    return done.stdout.strip()


def damaged(data: bytes, kind: str) -> Iterator[tuple[int, bytes]]:
    """The data with a place damaged, at up to _CUTS places."""
    for k in range(min(_CUTS, len(data))):
        at = k * len(data) // min(_CUTS, len(data))
        yield at, data[:at] if kind == "cut" else data[:at] + bytes([data[at] ^ (1 << (k % 8))]) + data[at + 1 :]


def _try_format(form: Format, kind: str, path: str) -> int:
    from .formats import build

    refused = 0
    with tempfile.TemporaryDirectory(prefix="headrace-check-") as folder:
        shutil.copytree(os.path.dirname(path), folder, dirs_exist_ok=True)
        copy = os.path.join(folder, os.path.basename(path))
        for at, data in damaged(Path(path).read_bytes(), kind):
            Path(copy).write_bytes(data)
            try:
                build(form, [copy])
            except (DataError, OSError):
                refused += 1
            except Error as e:
                raise _Failed(f"damaged at byte {at}: {type(e).__name__} came, not DataError: {e}") from e
    return refused


def _try_codec(codec: Codec, kind: str) -> int:
    refused = 0
    assert codec.example is not None
    for data, _ in codec.example():
        for _, bad in damaged(bytes(data), kind):
            try:
                codec(bad)
            except DataError:
                refused += 1
    return refused


def main(package: str, what: str, name: str, kind: str, path: str) -> None:
    """Of the process that tries damage: words on stdout."""
    formats, codecs = find(package)
    if what == "format":
        refused = _try_format(next(f for f in formats if f.name == name), kind, path)
    else:
        refused = _try_codec(next(c for c in codecs if c.name == name), kind)
    print(f"{refused} refused, none ended badly")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as problem:  # one line for who started the process
        sys.exit(f"{problem}")
