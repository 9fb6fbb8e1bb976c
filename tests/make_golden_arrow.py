#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/arrow with Hugging Face's datasets: what its users have on their disks.

    python3 -m venv /tmp/golden-arrow && /tmp/golden-arrow/bin/pip install datasets==VERSION pillow==VERSION
    /tmp/golden-arrow/bin/python tests/make_golden_arrow.py

The versions are those of tests/golden/arrow/README.md.
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
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parent / "golden/arrow"


def picture(i: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (12, 8 + i), (i * 40, 100, 200)).save(out, "PNG" if i % 2 else "JPEG")
    return out.getvalue()


def main() -> None:
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
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_list(rows, features=features).save_to_disk(folder)
        (path,) = pathlib.Path(folder).glob("*.arrow")
        shutil.copy(path, OUT / "datasets.arrow")
    expected = [
        {
            "image": {"hex": r["image"]["bytes"].hex()},
            "image.path": r["image"]["path"],
            **{k: r[k] for k in ("label", "caption", "ids", "emb", "tags")},
        }
        for r in rows
    ]
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    (OUT / "README.md").write_text(
        "# datasets.arrow\n\n"
        f"Written by tests/make_golden_arrow.py with datasets {datasets.__version__}, pyarrow {pyarrow.__version__} "
        f"and Pillow {PIL.__version__}:\n`Dataset.from_list(…).save_to_disk(…)`, a stream. `expected.json` has what was put in.\n"
    )


if __name__ == "__main__":
    main()
