# SPDX-License-Identifier: Apache-2.0
"""Arrow with Hugging Face's datasets: what its users have on their disks; reads ours with datasets and pyarrow.

peer | write FOLDER | check FOLDER: see golden_script.py; tests/golden/arrow/requirements.txt has the versions.
"""

from __future__ import annotations

import io
import json
import pathlib
import shutil
import tempfile
from typing import Any

import datasets
import PIL
import pyarrow
from golden_script import agree, expected, run, sets_in, shards_in
from PIL import Image


def picture(i: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (12, 8 + i), (i * 40, 100, 200)).save(out, "PNG" if i % 2 else "JPEG")
    return out.getvalue()


def write(out: pathlib.Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "image": {"bytes": picture(i), "path": f"{i}.{'png' if i % 2 else 'jpg'}"},
            "label": i % 3,
            "caption": f"Bild {i}: Zürich",
            "ids": list(range(i)),
            "emb": [i / 2, -i],
            "tags": [f"tag {k}" for k in range(1 + i % 3)],
        }
        for i in range(6)
    ]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["a", "b", "c"]),
            "caption": datasets.Value("string"),
            "ids": datasets.Sequence(datasets.Value("int32")),
            "emb": datasets.Sequence(datasets.Value("float32"), length=2),
            "tags": datasets.Sequence(datasets.Value("string")),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_list(rows, features=features).save_to_disk(folder)
        (path,) = pathlib.Path(folder).glob("*.arrow")
        shutil.copy(path, out / "datasets.arrow")
    values = [
        {
            "image": {"hex": r["image"]["bytes"].hex()},
            "image.path": r["image"]["path"],
            **{k: r[k] for k in ("label", "caption", "ids", "emb", "tags")},
        }
        for r in rows
    ]
    (out / "expected.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row of what headrace packed, as expected.json has it; the key is headrace's own."""
    assert isinstance(row.pop("__key__"), str)
    return {k: {"hex": v.hex()} if isinstance(v, bytes) else v for k, v in row.items()}


def check(folder: pathlib.Path) -> None:
    want = expected("arrow")
    for packed in sets_in(folder):
        paths = shards_in(packed, ".arrow")
        rows = [row for path in paths for row in pyarrow.ipc.open_file(path).read_all().to_pylist()]
        agree(f"{packed.name} by pyarrow", [as_json(row) for row in rows], want)
        with tempfile.TemporaryDirectory() as cache:
            data = datasets.load_dataset("arrow", data_files=[str(p) for p in paths], split="train", cache_dir=cache)
            agree(f"{packed.name} by datasets", [as_json(dict(row)) for row in data], want)


if __name__ == "__main__":
    run(f"datasets {datasets.__version__}, pyarrow {pyarrow.__version__}, Pillow {PIL.__version__}", write, check)
