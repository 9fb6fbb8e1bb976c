# SPDX-License-Identifier: Apache-2.0
"""Labels in JSON beside the pictures of a tar: filtered, split by class, drawn by weights. Compared with the standard library.

python examples/first_hour/json_labels_filtered.py
"""

from __future__ import annotations

import collections
import io
import json
import pathlib
import tarfile
import tempfile

import headrace as hr
import numpy as np
from PIL import Image


def make(path: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    with tarfile.open(path, "w") as tar:
        for i in range(60):
            picture = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (20 + i, 40, 3), np.uint8)).save(picture, "JPEG")
            about = {"label": int(rng.integers(0, 4)), "quality": float(rng.random())}
            for name, value in ((f"{i:03d}.jpg", picture.getvalue()), (f"{i:03d}.json", json.dumps(about).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
    return path


with tempfile.TemporaryDirectory() as temporary:
    path = make(pathlib.Path(temporary) / "photos.tar")

    ds = hr.open(path)
    good = ds.where("json.label < 2 and json.quality >= 0.25 and image.height > 30")
    parts = ds.split(train=0.8, val=0.2, stratify="json.label")
    drawn = hr.weighted(ds, "json.quality")
    loader = hr.Loader(drawn, batch_size=20, fields={"key": hr.key()}, seed=1, output="numpy")
    counts = collections.Counter(key for batch in loader for key in batch["key"])

    with tarfile.open(path) as tar:
        about = {m.name[:3]: json.load(tar.extractfile(m)) for m in tar if m.name.endswith("json")}  # type: ignore[arg-type]
    want = [k for k, a in about.items() if a["label"] < 2 and a["quality"] >= 0.25 and 20 + int(k) > 30]
    assert [good.key(i) for i in range(len(good))] == want
    classes = collections.Counter(a["label"] for a in about.values())
    assert all(abs(n - 0.8 * classes[c]) <= 1 for c, n in collections.Counter(parts["train"]["json.label"].tolist()).items())
    total = sum(a["quality"] for a in about.values())
    assert all(abs(counts[k] - 60 * a["quality"] / total) < 1 for k, a in about.items())
    print(
        f"{len(good)} of {len(ds)} samples fulfil the condition; {len(parts['train'])} to train, {len(parts['val'])} to validate"
    )
