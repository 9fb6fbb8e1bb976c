# SPDX-License-Identifier: Apache-2.0
"""How long 10^12 tokens in 10,000 files take to open, by an index that was made ahead.

    ./dev bench --token-start [--files 10000] [--documents 1000] [--length 100000] [--rounds 5]

The files are links to one Megatron pair, most of which is a hole of the file system: opening reads the manifest of the index, whatever
lies in the files. Each round is a process of its own: imports are done, then the clock starts. `open`: hr.open with the index, and
len(ds); `first batch`: 8 rows of 2,049 tokens, shuffled over all files, from the same start.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import headrace as hr
import numpy as np

SEQ = 2048


def write(folder: pathlib.Path, files: int, documents: int, length: int) -> None:
    """A pair, and links to it."""
    folder.mkdir()
    sizes, begins = np.full(documents, length, "<i4"), np.arange(documents, dtype="<i8") * 2 * length
    head = b"MMIDIDX\0\0" + np.uint64(1).tobytes() + np.uint8(8).tobytes()
    head += np.uint64(documents).tobytes() + np.uint64(documents + 1).tobytes()
    (folder / "00000.idx").write_bytes(
        head + sizes.tobytes() + begins.tobytes() + np.arange(documents + 1, dtype="<i8").tobytes()
    )
    np.arange(length, dtype="<u2").tofile(folder / "00000.bin")
    os.truncate(folder / "00000.bin", 2 * length * documents)
    for n in range(1, files):
        for ending in ("bin", "idx"):
            os.link(folder / f"00000.{ending}", folder / f"{n:05d}.{ending}")


def measure(source: str, index: str) -> dict[str, float]:
    begin = time.perf_counter()
    ds = hr.open(source, {"t": hr.tokens(seq_len=SEQ)}, index=index)
    windows = len(ds)
    opened = time.perf_counter() - begin
    with hr.Loader(ds, 8, seed=1, output="numpy") as loader:
        next(iter(loader))
        return {"windows": windows, "open": opened, "first batch": time.perf_counter() - begin}


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--files", type=int, default=10_000)
    about.add_argument("--documents", type=int, default=1000)
    about.add_argument("--length", type=int, default=100_000, help="tokens of a document")
    about.add_argument("--rounds", type=int, default=5)
    about.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = about.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write(folder / "tokens", given.files, given.documents, given.length)
        source, index = str(folder / "tokens" / "*.bin"), str(folder / "index")
        begin = time.perf_counter()
        hr.build_index(source, index)
        print(f"index of {given.files:,} files made in {time.perf_counter() - begin:.1f} s")
        rounds = []
        for _ in range(given.rounds):
            done = subprocess.run([sys.executable, __file__, "--one", source, index], capture_output=True, text=True, check=True)
            rounds.append(json.loads(done.stdout.splitlines()[-1]))
        tokens = given.files * given.documents * given.length
        print(f"{tokens:.3g} tokens, {rounds[0]['windows']:,} windows of {SEQ:,}")
        for what in ("open", "first batch"):
            times = [r[what] for r in rounds]
            print(f"{what:12} {statistics.median(times):.3f} s (of {len(times)}: {min(times):.3f} to {max(times):.3f})")


if __name__ == "__main__":
    main()
