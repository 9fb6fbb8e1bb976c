# SPDX-License-Identifier: Apache-2.0
"""A small weather forecaster on an ERA5-like cube, from Zarr, NetCDF and HDF5 alike; stopped in the middle of an epoch and resumed.

    python examples/era5_forecast.py

Waves that travel east stand for the weather: three variables on a globe, six-hourly. A convolution that knows that longitude is a
circle learns the next step from two. Every format gives the same batches, so the losses are the same.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

import headrace as hr
import numpy as np

try:
    import h5py
    import netCDF4
    import torch
    import zarr
except ImportError as e:
    print(f"this example needs PyTorch, h5py, netCDF4 and zarr: pip install torch h5py netCDF4 zarr ({e})")
    sys.exit(0)

NAMES = ["t2m", "u10", "v10"]
STEPS, LAT, LON = 160, 16, 32
CHUNK = (8, LAT, LON // 2)
WINDOW, BATCH, STOP_AFTER = 2, 8, 7


def weather() -> dict[str, Any]:
    """Quarters, which 16 bits hold exactly: packed in NetCDF and plain elsewhere, the numbers are equal."""
    rng = np.random.default_rng(0)
    time, lat, lon = np.ogrid[0:STEPS, 0:LAT, 0:LON]
    out = {}
    for name, mean in zip(NAMES, (280.0, 0.0, 5.0)):
        field = np.zeros((STEPS, LAT, LON))
        for wave in range(1, 4):
            speed, phase = rng.uniform(0.2, 0.5), rng.uniform(0, 6, (1, LAT, 1))
            field += (
                np.cos(2 * np.pi * wave * lon / LON - speed * time + phase) * np.cos(np.pi * (lat - LAT / 2) / LAT) * 8 / wave
            )
        out[name] = (np.round((field + mean) * 4) / 4).astype("f4")
    return out


def write(folder: pathlib.Path) -> dict[str, str]:
    """The same cube in three formats; NetCDF in two files, as years come."""
    data = weather()
    group = zarr.open_group(str(folder / "cube.zarr"), mode="w")
    with h5py.File(folder / "cube.h5", "w") as f:
        for name, values in data.items():
            group.create_array(name, data=values, chunks=CHUNK, dimension_names=("time", "lat", "lon"))
            v = f.create_dataset(name, data=values, chunks=CHUNK, compression="gzip", shuffle=True)
            for dim, label in zip(v.dims, ("time", "lat", "lon")):
                dim.label = label
    for part, steps in enumerate((slice(0, 100), slice(100, STEPS))):
        with netCDF4.Dataset(folder / f"cube-{part}.nc", "w") as f:
            for name, n in (("time", None), ("lat", LAT), ("lon", LON)):
                f.createDimension(name, n)
            for name, values in data.items():
                v = f.createVariable(
                    name, "i2", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=CHUNK, fill_value=-32768
                )
                v.scale_factor, v.add_offset = 0.25, 0.0
                v[:] = values[steps]
    return {"Zarr": str(folder / "cube.zarr"), "NetCDF": str(folder / "cube-{0..1}.nc"), "HDF5": str(folder / "cube.h5")}


class Forecaster(torch.nn.Module):
    """The next step is the last one and a change; padding goes around in longitude and repeats the poles' rows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(WINDOW * len(NAMES), 24, 5)
        self.second = torch.nn.Conv2d(24, len(NAMES), 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def around(y: torch.Tensor) -> torch.Tensor:
            y = torch.nn.functional.pad(y, (2, 2, 0, 0), mode="circular")
            return torch.nn.functional.pad(y, (0, 0, 2, 2), mode="replicate")

        return x[:, :, -1] + self.second(around(torch.relu(self.first(around(x.flatten(1, 2))))))


def make_loader(url: str, stats: dict[str, Any]) -> hr.Loader:
    fields = {"x": hr.array(NAMES, along="time", window=WINDOW, horizon=1).normalize(stats), "key": hr.key()}
    return hr.Loader(url, BATCH, fields, seed=3)


def train(url: str, stats: dict[str, Any], epochs: int = 4) -> tuple[list[float], list[Any]]:
    """The losses, and what came in which batch; a checkpoint goes through JSON in the middle of the second epoch."""
    torch.manual_seed(0)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses: list[float] = []
    seen: list[Any] = []

    def go_on(loader: hr.Loader, until: int | None) -> str | None:
        for epoch, batches in loader.epochs(epochs):
            for n, batch in enumerate(batches, 1):
                loss = torch.nn.functional.mse_loss(model(batch["x"]), batch["x_target"][:, :, 0])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                seen.append((epoch, list(batch["key"])))
                if until is not None and epoch == 1 and n == until:
                    return json.dumps(loader.state_dict())
        return None

    with make_loader(url, stats) as loader:
        checkpoint = go_on(loader, STOP_AFTER)
    assert checkpoint is not None
    with make_loader(url, stats) as loader:
        loader.load_state_dict(json.loads(checkpoint))
        go_on(loader, None)
    return losses, seen


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        results, urls = {}, write(pathlib.Path(temporary))
        stats = hr.stats(urls["Zarr"], NAMES)
        for name, url in urls.items():
            for variable, numbers in hr.stats(url, NAMES).items():  # of other chunks, summed in another order
                assert np.isclose(numbers["mean"], stats[variable]["mean"]) and np.isclose(numbers["std"], stats[variable]["std"])
            losses, seen = train(url, stats)
            results[name] = losses, seen
            print(f"{name:7} {len(losses)} steps, loss {np.mean(losses[:5]):.3f} at first, {np.mean(losses[-5:]):.4f} at the end")
            assert np.mean(losses[-5:]) < 0.1 * np.mean(losses[:5])
            with make_loader(url, stats) as straight:  # not stopped
                whole = [(epoch, list(batch["key"])) for epoch, batches in straight.epochs(4) for batch in batches]
            assert whole == seen
        assert results["Zarr"] == results["NetCDF"] == results["HDF5"]
    print("stopped and resumed, every format gave exactly the same batches and losses")


if __name__ == "__main__":
    main()
