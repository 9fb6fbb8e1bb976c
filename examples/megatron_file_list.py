# SPDX-License-Identifier: Apache-2.0
"""One list of files, read by headrace and by a reader in the manner of Megatron's: the same tokens.

    python examples/megatron_file_list.py

A line of the list has a weight, the path of a pair .bin/.idx without its ending, and the corpus that it belongs to.
hr.blend takes the list as it is.
"""

from __future__ import annotations

import pathlib
import struct
import tempfile
from collections import Counter

import headrace as hr
import numpy as np

SEQ = 32
LIST = """\
0.50  web/part-0    web
0.20  web/part-1    web
0.30  code/part-0   code
"""


def write_pair(prefix: pathlib.Path, seed: int) -> None:
    """As Megatron's preprocess_data.py leaves them: tokens one after the other, and where each document begins."""
    prefix.parent.mkdir(exist_ok=True)
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 120, 60).astype(np.int32)
    draw.integers(0, 50_000, int(lengths.sum())).astype(np.uint16).tofile(f"{prefix}.bin")
    begins = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]) * 2
    with open(f"{prefix}.idx", "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        f.write(lengths.tobytes() + begins.astype(np.int64).tobytes())
        f.write(np.arange(len(lengths) + 1, dtype=np.int64).tobytes())


def read_pair(prefix: pathlib.Path) -> list[np.ndarray]:
    """The documents of a pair, as Megatron's IndexedDataset reads them."""
    with open(f"{prefix}.idx", "rb") as f:
        assert f.read(9) == b"MMIDIDX\x00\x00"
        _, code, sequences, _ = struct.unpack("<QBQQ", f.read(25))
        lengths = np.frombuffer(f.read(4 * sequences), np.int32)
        begins = np.frombuffer(f.read(8 * sequences), np.int64)
    tokens = np.memmap(f"{prefix}.bin", {8: np.uint16, 4: np.int32}[code])
    return [np.asarray(tokens[b // 2 : b // 2 + n]) for b, n in zip(begins, lengths)]


def rows_of(prefix: pathlib.Path) -> list[bytes]:
    """Rows of SEQ + 1 tokens over the documents of a pair, one after the other; neighbours share one token."""
    stream = np.concatenate(read_pair(prefix)).astype(np.int64)
    return [stream[i : i + SEQ + 1].tobytes() for i in range(0, len(stream) - SEQ, SEQ)]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lines = [line.split() for line in LIST.splitlines()]
        for n, (_, name, _) in enumerate(lines):
            write_pair(folder / name, n)
        (folder / "mix.txt").write_text(LIST)
        theirs: dict[str, Counter[bytes]] = {}
        for _, name, corpus in lines:
            theirs.setdefault(corpus, Counter()).update(rows_of(folder / name))
        epochs = {"web": 1, "code": 2}  # in one epoch of the blend
        loader = hr.Loader(
            hr.blend(folder / "mix.txt", epochs=epochs), 8, {"t": hr.tokens(seq_len=SEQ)}, tail="keep", output="numpy"
        )
        ours: dict[str, Counter[bytes]] = {corpus: Counter() for corpus in theirs}
        names = list(ours)
        with loader:
            for batch in loader.epoch(0):
                for source, row in zip(batch.sources, batch["t"]):
                    ours[names[source]][row.tobytes()] += 1
            counts = loader.stats()["sources"]
        for corpus, wanted in theirs.items():
            assert set(ours[corpus]) <= set(wanted), corpus  # no row that the other reader does not have
            assert abs(counts[corpus]["epochs"] - epochs[corpus]) < 0.2, counts
        assert ours["code"].keys() == theirs["code"].keys() and max(ours["code"].values()) <= 3  # all of them, about twice
        total = sum(c["samples"] for c in counts.values())
        print(f"{total} rows of {SEQ + 1} tokens, each exactly as the other reader has it; web came once, code twice")


if __name__ == "__main__":
    main()
