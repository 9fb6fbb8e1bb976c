# SPDX-License-Identifier: Apache-2.0
"""Writes pairs of .idx and .bin with Megatron-Core, for our reader to agree with; reads ours with it.

peer | write FOLDER | check FOLDER: see golden_script.py; tests/golden/megatron/requirements.txt has the versions.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import megatron.core  # type: ignore[import-not-found,unused-ignore]
import numpy as np
import torch
from golden_script import agree, expected, run, sets_in, shards_in
from megatron.core.datasets.indexed_dataset import (  # type: ignore[import-not-found,unused-ignore]
    IndexedDataset,
    IndexedDatasetBuilder,
)

PEER = f"Megatron-Core {megatron.core.__version__}"
# Documents of sequences; the third is empty.
DOCUMENTS = [[[1, 2, 3]], [[4, 5], [6], []], [], [[7] * 9, [8, 9]]]
MODES = [[0], [0, 1, 0], [], [2, 1]]


def build(prefix: pathlib.Path, documents: list[list[list[int]]], dtype: Any, modes: list[list[int]] | None = None) -> None:
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype, multimodal=modes is not None)
    for d, document in enumerate(documents):
        for s, sequence in enumerate(document):
            builder.add_item(torch.tensor(sequence, dtype=torch.int64), modes[d][s] if modes else 0)
        builder.end_document()
    builder.finalize(f"{prefix}.idx")


def write(folder: pathlib.Path) -> None:
    plain = [[[i, i * i % 120, 100 - i][: 1 + i % 3]] for i in range(20)]
    wanted: dict[str, Any] = {"writer": PEER, "documents": DOCUMENTS, "modes": MODES}
    wanted["plain"] = plain
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16):
        build(folder / f"documents-{np.dtype(dtype).name}", DOCUMENTS, dtype)
    build(folder / "modes", DOCUMENTS, np.int32, MODES)
    build(folder / "plain", plain, np.uint16)
    (folder / "expected.json").write_text(json.dumps(wanted) + "\n")


def read(prefix: pathlib.Path) -> list[dict[str, Any]]:
    """The documents of a pair."""
    index = IndexedDataset(str(prefix)).index
    multimodal = prefix.with_suffix(".idx").stat().st_size > 34 + 12 * index.sequence_count + 8 * index.document_count
    dataset = IndexedDataset(str(prefix), multimodal=multimodal)
    ends = dataset.document_indices.tolist()
    out = []
    for begin, end in zip(ends[:-1], ends[1:]):
        found = [dataset[i] for i in range(begin, end)]
        line: dict[str, Any] = {"type": np.dtype(dataset.index.dtype).name}
        line["sequences"] = [(f[0] if multimodal else f).tolist() for f in found]
        if multimodal:
            line["modes"] = [int(f[1]) for f in found]
        out.append(line)
    return out


def check(folder: pathlib.Path) -> None:
    known = expected("megatron")
    for packed in sets_in(folder):
        name = packed.name
        type = {"plain": "uint16", "modes": "int32"}.get(name) or name.removeprefix("documents-")
        want = [{"type": type, "sequences": d} for d in known["plain" if name == "plain" else "documents"]]
        if name == "modes":
            want = [{**document, "modes": modes} for document, modes in zip(want, known["modes"])]
        got = [document for path in shards_in(packed, ".idx") for document in read(path.with_suffix(""))]
        agree(name, got, want)


if __name__ == "__main__":
    run(PEER, write, check)
