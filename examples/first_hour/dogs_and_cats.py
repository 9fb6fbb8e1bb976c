# SPDX-License-Identifier: Apache-2.0
"""Dogs vs Cats: class folders of `cat.0.jpg`, `cat.1.jpg`, … with a stray file among them. Compared with torchvision's ImageFolder.

python examples/first_hour/dogs_and_cats.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import numpy as np
from PIL import Image
from torchvision.datasets import ImageFolder


def make(root: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
        for i in range(20):
            Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8)).save(root / name / f"{name}.{i}.jpg")
    (root / "cat" / "Thumbs.db").write_bytes(b"left by a desktop")
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "PetImages")

    fields = {"image": hr.image("image").resize((32, 32)), "label": hr.scalar("cls"), "key": hr.key()}
    loader = hr.Loader(root, batch_size=8, fields=fields, seed=1, output="numpy")
    labels = {key: int(label) for batch in loader for key, label in zip(batch["key"], batch["label"])}

    theirs = ImageFolder(str(root), is_valid_file=lambda path: path.endswith(".jpg"))
    want = {str(pathlib.Path(file).relative_to(root).with_suffix("")): label for file, label in theirs.samples}
    assert labels == want and hr.open(root).classes == theirs.classes
    print(f"{len(labels)} pictures of {hr.open(root).classes}, exactly as ImageFolder has them")
