# SPDX-License-Identifier: Apache-2.0
"""WebDataset shards on several ranks: no split by node or worker, no resampling, no `with_epoch`.

    python examples/webdataset_shards.py

Writes shards of different lengths (with the webdataset package where it is installed, else with tarfile), loads them on three ranks,
stops in the middle of the epoch and goes on with two: every sample comes once, and all ranks have equally many batches.
"""

from __future__ import annotations

import io
import pathlib
import tarfile
import tempfile
from typing import Any

import headrace as hr
from headrace.photos import make_photo

try:
    import webdataset
except ImportError:
    webdataset = None

SHARDS = [17, 5, 30, 9, 12]  # samples in each: they need not be equal, nor as many as there are ranks
TOTAL = sum(SHARDS)
FIELDS = {"image": hr.image("jpg").random_resized_crop(32).random_flip(), "label": hr.scalar("cls"), "key": hr.key()}


def write_shard(path: pathlib.Path, numbers: range) -> None:
    samples: list[dict[str, Any]] = [{"__key__": f"{i:06d}", "jpg": make_photo(i, (64, 48)), "cls": i % 10} for i in numbers]
    if webdataset is not None:
        with webdataset.TarWriter(str(path)) as writer:
            for sample in samples:
                writer.write(sample)
        return
    with tarfile.open(path, "w") as tar:
        for sample in samples:
            for name in ("jpg", "cls"):
                value = sample[name] if name == "jpg" else str(sample[name]).encode()
                info = tarfile.TarInfo(f"{sample['__key__']}.{name}")
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        begin = 0
        for n, count in enumerate(SHARDS):
            write_shard(pathlib.Path(temporary) / f"train-{n:04d}.tar", range(begin, begin + count))
            begin += count
        source = f"{temporary}/train-{{0000..{len(SHARDS) - 1:04d}}}.tar"

        def ranks(count: int, batch_size: int) -> list[hr.Loader]:
            # In real life one a process: rank and world_size come from torch.distributed then.
            return [hr.Loader(source, batch_size, FIELDS, seed=1, tail="keep", rank=r, world_size=count) for r in range(count)]

        seen: list[str] = []
        three = ranks(3, batch_size=4)
        print(f"{TOTAL} samples in shards of {SHARDS}; batches of the ranks: {[len(loader) for loader in three]}")
        assert len({len(loader) for loader in three}) == 1
        for loader in three:
            batches = loader.epoch(0)
            for _ in range(3):
                seen += next(batches)["key"]
        state = three[0].state_dict()  # equal on every rank
        assert all(loader.state_dict() == state for loader in three)
        print(f"stopped after {len(seen)} samples on three ranks: {state}")

        for loader in ranks(2, batch_size=6):
            loader.load_state_dict(state)
            before = len(seen)
            for batch in loader:
                seen += batch["key"]
            print(f"one of two ranks went on with {len(seen) - before} samples")
        assert sorted(seen) == [f"{i:06d}" for i in range(TOTAL)]
        print("every sample exactly once")


if __name__ == "__main__":
    main()
