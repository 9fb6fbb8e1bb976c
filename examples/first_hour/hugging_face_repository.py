# SPDX-License-Identifier: Apache-2.0
"""A cloned repository of Hugging Face's hub: splits by file name, pictures in Parquet, class names. Compared with pyarrow.

python examples/first_hour/hugging_face_repository.py
"""

from __future__ import annotations

import io
import json
import pathlib
import tempfile

import headrace as hr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def make(root: pathlib.Path) -> pathlib.Path:
    (root / "data").mkdir(parents=True)
    (root / "README.md").write_text("# Pets\n")
    rng = np.random.default_rng(0)
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["cat", "dog"]}}
    for split, count in (("train", 30), ("test", 10)):
        pictures = []
        for i in range(count):
            out = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)).save(out, "PNG")
            pictures.append({"bytes": out.getvalue(), "path": f"{i}.png"})
        table = pa.table({"image": pictures, "label": [i % 2 for i in range(count)]})
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        pq.write_table(table, root / "data" / f"{split}-00000-of-00001.parquet")
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "pets")

    try:
        hr.open(root)
    except hr.UsageError as error:
        print(error)  # it holds the splits test, train: say which
    ds = hr.open(f"{root}#train", {"image": hr.image("image").list(), "label": hr.scalar("label")})

    rows = pq.read_table(root / "data" / "train-00000-of-00001.parquet").to_pylist()
    assert len(ds) == len(rows) and ds.classes == ["cat", "dog"]
    for mine, row in zip(ds, rows):
        pixels = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        assert mine["label"] == row["label"] and np.array_equal(mine["image"].transpose(1, 2, 0), pixels)
    print(f"{len(ds)} samples of {ds.classes}, exactly as pyarrow has them")
