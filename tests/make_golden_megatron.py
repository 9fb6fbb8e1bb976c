# SPDX-License-Identifier: Apache-2.0
"""Writes pairs of .idx and .bin with Megatron-Core, for our reader to agree with; reads ours with it.

    python tests/make_golden_megatron.py write tests/golden/megatron    what is committed there
    python tests/make_golden_megatron.py read PREFIX...                 documents as JSON lines

Run it in an environment of its own: pip install megatron-core==0.16.1 torch numpy.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import megatron.core  # type: ignore[import-not-found,unused-ignore]
import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import (  # type: ignore[import-not-found,unused-ignore]
    DType,
    IndexedDataset,
    IndexedDatasetBuilder,
)

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
    folder.mkdir(parents=True, exist_ok=True)
    plain = [[[i, i * i % 120, 100 - i][: 1 + i % 3]] for i in range(20)]
    expected: dict[str, Any] = {"writer": f"Megatron-Core {megatron.core.__version__}", "documents": DOCUMENTS, "modes": MODES}
    expected["plain"] = plain
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16):
        build(folder / f"documents-{np.dtype(dtype).name}", DOCUMENTS, dtype)
    build(folder / "modes", DOCUMENTS, np.int32, MODES)
    build(folder / "plain", plain, np.uint16)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def read(prefixes: list[str]) -> None:
    for prefix in prefixes:
        index = IndexedDataset(prefix).index
        multimodal = pathlib.Path(f"{prefix}.idx").stat().st_size > 34 + 12 * index.sequence_count + 8 * index.document_count
        dataset = IndexedDataset(prefix, multimodal=multimodal)
        ends = dataset.document_indices.tolist()
        for begin, end in zip(ends[:-1], ends[1:]):
            found = [dataset[i] for i in range(begin, end)]
            line: dict[str, Any] = {"type": np.dtype(DType.dtype_from_code(DType.code_from_dtype(dataset.index.dtype))).name}
            line["sequences"] = [(f[0] if multimodal else f).tolist() for f in found]
            if multimodal:
                line["modes"] = [int(f[1]) for f in found]
            print(json.dumps(line))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[2])) if sys.argv[1] == "write" else read(sys.argv[2:])
