# SPDX-License-Identifier: Apache-2.0
"""PatchCamelyon: pictures in one HDF5 file, labels in another. Compared with h5py.

python examples/first_hour/pcam_hdf5.py
"""

from __future__ import annotations

import pathlib
import tempfile

import h5py
import headrace as hr
import numpy as np


def make(root: pathlib.Path) -> pathlib.Path:
    root.mkdir()
    rng = np.random.default_rng(0)
    with h5py.File(root / "camelyonpatch_level_2_split_valid_x.h5", "w") as f:
        f.create_dataset("x", data=rng.integers(0, 255, (64, 24, 24, 3), np.uint8), chunks=(8, 24, 24, 3), compression="gzip")
    with h5py.File(root / "camelyonpatch_level_2_split_valid_y.h5", "w") as f:
        f.create_dataset("y", data=rng.integers(0, 2, (64, 1, 1, 1), np.uint8), chunks=(16, 1, 1, 1), compression="gzip")
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "pcam")

    ds = hr.join(
        hr.open(root / "camelyonpatch_level_2_split_valid_x.h5"), hr.open(root / "camelyonpatch_level_2_split_valid_y.h5")
    )
    loader = hr.Loader(ds, batch_size=16, seed=1, output="numpy")
    seen = {int(i): (x, int(y.item())) for batch in loader for i, x, y in zip(batch.indices, batch["x"], batch["y"])}

    with (
        h5py.File(root / "camelyonpatch_level_2_split_valid_x.h5") as fx,
        h5py.File(root / "camelyonpatch_level_2_split_valid_y.h5") as fy,
    ):
        assert len(seen) == len(fx["x"]) == 64
        assert all(np.array_equal(x, fx["x"][i]) and y == fy["y"][i].item() for i, (x, y) in seen.items())
    print(f"{len(seen)} pictures of {seen[0][0].shape} with their labels, exactly as h5py reads them")
