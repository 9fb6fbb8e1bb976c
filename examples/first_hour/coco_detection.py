# SPDX-License-Identifier: Apache-2.0
"""A detection set as COCO lays it out: one JSON for all pictures; boxes and labels follow the geometry. Compared with NumPy.

python examples/first_hour/coco_detection.py
"""

from __future__ import annotations

import json
import pathlib
import tempfile

import headrace as hr
import numpy as np
from PIL import Image


def make(root: pathlib.Path) -> pathlib.Path:
    (root / "images").mkdir(parents=True)
    rng = np.random.default_rng(0)
    images, annotations = [], []
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (60, 80, 3), np.uint8)).save(root / "images" / f"{i:012d}.jpg")
        images.append({"id": i, "file_name": f"{i:012d}.jpg", "width": 80, "height": 60})
        for n in range(i % 4):
            annotations.append({"image_id": i, "category_id": 5 + 12 * (n % 2), "bbox": [10.0 * n, 5.0, 20.0, 30.0]})
    categories = [{"id": 17, "name": "cat"}, {"id": 5, "name": "plane"}]
    (root / "instances.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "coco")

    plain = hr.open(root / "instances.json", root=root / "images")
    fields = hr.joint(image=hr.image("image").resize((120, 40)), boxes=hr.boxes("objects", extra="label"))
    loader = hr.Loader(plain, batch_size=4, fields=fields, shuffle=False, output="numpy")
    seen = [boxes for batch in loader for boxes in batch["boxes"]]

    assert plain.classes == ["plane", "cat"]
    for i, boxes in enumerate(seen):
        assert (
            np.allclose(boxes[:, :4], plain[i]["boxes"] * [0.5, 2, 0.5, 2])
            and boxes[:, 4].tolist() == plain[i]["labels"].tolist()
        )
    print(f"{len(seen)} pictures with {sum(map(len, seen))} boxes of {plain.classes}, exactly where the picture goes")
