#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes a folder that its own may not see, or a header kept to one file.

tools/layers.txt says which folder under src/ may include which. Python.h and nanobind stay under
python/src; each third-party header under src/ stays in the files that wrap it (fmt is everywhere:
it writes our error texts; GoogleTest belongs to the tests).
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
    "hwy/": re.compile(r"transform/kernels/([a-z]+\.cc|(sums|lanes)-inl\.h)|array/shuffle\.cc"),
    "Python.h": re.compile(r"(?!)"),
    "nanobind/": re.compile(r"(?!)"),
}
FOREIGN = re.compile(r"#include [<\"]([A-Za-z0-9_./-]+)")


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


if __name__ == "__main__":
    bad = list(violations(read_layers()))
    print("\n".join(bad) or "layers: ok")
    sys.exit(bool(bad))
