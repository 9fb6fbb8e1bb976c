#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes a folder that its own may not see or a header kept to one file, when two types share a name, and
when a file uses what the wheel (./dev wheel: Python's stable ABI, an older glibc) cannot have.

tools/layers.txt says which folder under src/ may include which; src/format/tar/header.h is in the folder
`format`. Python.h and nanobind stay under python/src; each third-party header under src/ stays in the files
that wrap it (fmt is everywhere: it writes our error texts; GoogleTest belongs to the tests).

A class, struct, union or enum at namespace scope has its name alone in namespace headrace, nested namespaces
included, over all files of src/ and python/src. Names in anonymous namespaces, inside another type or in `hr`
(the C++ face, which wraps types of the same names) do not count.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'#include "([a-z_]+)/')
# Which files under src/ may include what is not ours.
WRAPPED = {
    "jpeglib.h": re.compile(r"codec/(jpeg\.cc|jpeg_fixture\.h|encode_jpeg\.cc)"),
    "spng.h": re.compile(r"codec/(png|encode_png)\.cc"),
    "zlib.h": re.compile(r"(codec/png(_test)?|base/zlib)\.cc"),
    "zstd.h": re.compile(r"base/zstd\.cc"),
    "lz4.h": re.compile(r"base/lz4(_test)?\.cc"),
    "blosc.h": re.compile(r"array/(blosc|blosc_frame_test|filters_test)\.cc"),
    "lzma.h": re.compile(r"base/xz\.cc"),
    "webp/": re.compile(r"codec/(webp|encode_webp)\.cc"),
    "libdeflate.h": re.compile(r"base/inflate\.cc"),
    "hwy/": re.compile(r"transform/kernels/([a-z]+\.cc|(sums|lanes)-inl\.h)|array/shuffle\.cc|codec/(widen|jpeg_marks)\.cc"),
    "Python.h": re.compile(r"(?!)"),
    "nanobind/": re.compile(r"(?!)"),
}
FOREIGN = re.compile(r"#include [<\"]([A-Za-z0-9_./-]+)")
# What holds no scopes: comments, texts, characters, directives.
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^[ \t]*\#(?:\\\n|[^\n])*""", re.S | re.M
)
# A brace; a namespace that opens; `extern "C"` whose text is gone; a type with a body, `struct A::B` excepted.
SCOPES = re.compile(
    r"[{};]|namespace\s*(?P<namespace>[\w:]*)\s*(?=\{)|(?P<linkage>extern)\s*(?=\{)"
    r"|\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:\w+\((?:[^()]|\([^()]*\))*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"(?P<type>\w+)(?:\s+final)?\s*(?=:(?!:)|\{)[^;{]*(?=\{)"
)
# What a build here takes and the wheel's does not, and what to write instead.
NOT_IN_WHEELS = {
    re.compile(r"\b(std::random_device|arc4random\w*)\b"): "base/entropy.h: libstdc++ asks arc4random, of glibc 2.36",
    re.compile(
        r"\b(PySequence_Fast_(ITEMS|GET_SIZE|GET_ITEM)|Py(List|Tuple)_[GS]ET_(SIZE|ITEM))\b"
    ): "a function, not the macro: the stable ABI",
}
ANONYMOUS, BODY = "(anonymous)", "(body)"


def read_layers() -> dict[str, set[str]]:
    layers = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, allowed = line.split(":")
            layers[folder.strip()] = set(allowed.split())
    return layers


def violations(layers: dict[str, set[str]]) -> Iterator[str]:
    for path in sorted((ROOT / "src").rglob("*.[hc]*")):
        folder = path.relative_to(ROOT / "src").parts[0]
        allowed = layers[folder] | {folder}
        if path.stem.endswith("_test"):
            # Tests may build their fixtures from the folders below the loader.
            allowed |= {"storage", "index", "format", "open", "plan"}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if found and found[1] not in allowed and found[1] not in ("hwy", "headrace"):
                yield f"{path.relative_to(ROOT)}:{number}: {folder}/ may not include {found[1]}/"
            foreign = FOREIGN.match(line)
            for header, wrapper in WRAPPED.items():
                if foreign and foreign[1].startswith(header) and not wrapper.fullmatch(str(path.relative_to(ROOT / "src"))):
                    yield f"{path.relative_to(ROOT)}:{number}: {foreign[1]} belongs in the files that wrap it"


def not_in_wheels(root: pathlib.Path) -> Iterator[str]:
    for path in sorted([*(root / "src").rglob("*.[hc]*"), *(root / "python/src").rglob("*.[hc]*")]):
        text = path.read_text()
        if path.stem.endswith("_test"):
            continue
        name = path.relative_to(root)
        for number, line in enumerate(text.splitlines(), 1):
            code = line.partition("//")[0]
            yield from (f"{name}:{number}: wheels want {instead}" for what, instead in NOT_IN_WHEELS.items() if what.search(code))
        if re.search(r"\bPy_buffer\b", text) and path.name != "python_buffer.h" and '"python_buffer.h"' not in text:
            yield f"{name}: Py_buffer wants python_buffer.h: it is no part of the stable ABI of Python 3.10"


def types_of(text: str) -> Iterator[str]:
    """The types that a file defines for everyone to name."""
    scopes: list[str] = []
    opens = BODY
    for found in SCOPES.finditer(NOT_CODE.sub(" ", text)):
        if found[0] == "{":
            scopes.append(opens)
        elif found[0] == "}" and scopes:
            scopes.pop()
        elif found["type"] and not {ANONYMOUS, BODY, "hr"} & set(scopes):
            yield found["type"]
        opens = BODY
        if found["namespace"] is not None:
            opens = found["namespace"] or ANONYMOUS
        elif found["linkage"]:
            opens = ""


def doubled_types(root: pathlib.Path) -> Iterator[str]:
    homes: dict[str, set[str]] = {}
    for path in sorted([*(root / "src").rglob("*.[hc]*"), *(root / "python/src").rglob("*.[hc]*")]):
        for name in types_of(path.read_text()):
            homes.setdefault(name, set()).add(str(path.relative_to(root)))
    for name, files in sorted(homes.items()):
        if len(files) > 1:
            yield f"type {name} is defined in {' and '.join(sorted(files))}: rename all but one"


if __name__ == "__main__":
    bad = [*violations(read_layers()), *doubled_types(ROOT), *not_in_wheels(ROOT)]
    print("\n".join(bad) or "layers: ok")
    sys.exit(bool(bad))
