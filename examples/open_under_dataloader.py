# SPDX-License-Identifier: Apache-2.0
"""hr.open() is a map-style data set: under torch.utils.data.DataLoader it reads and decodes, the rest stays as it was.

    python examples/open_under_dataloader.py

A first step for code that cannot part with DataLoader. What hr.Loader does by itself is then yours again: the sampler
below resumes, DistributedSampler would shard, and random steps (random_flip, …) draw the same in every epoch.
"""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator

import headrace as hr
import torch
from headrace.photos import write_class_folders
from torch.utils.data import DataLoader, Sampler

BATCH, STOP_AFTER = 8, 4  # steps until the "crash"


class Resumable(Sampler[int]):
    """A shuffled epoch from its n-th sample on."""

    def __init__(self, samples: int, epoch: int, start: int) -> None:
        self.order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch)).tolist()[start:]

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


def train(ds: hr.Dataset, checkpoint: pathlib.Path, stop_after: int | None = None) -> list[str]:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        done = saved["done"]
    seen: list[str] = []
    # ds pickles as its path: worker processes open the data themselves.
    loader = DataLoader(ds, BATCH, sampler=Resumable(len(ds), epoch=0, start=done), num_workers=1)
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += batch["key"]
        if len(seen) == BATCH * (stop_after or 0):
            # Counted here: what the workers have prefetched was not trained on.
            torch.save({"model": model.state_dict(), "done": done + len(seen)}, checkpoint)
            break
    return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_class_folders(folder / "pictures")
        hr.pack(folder / "pictures", folder / "shards", shards=4)
        fields = {
            "image": hr.image("jpg").resize(40).center_crop(32).normalize(hr.IMAGENET),
            "label": hr.scalar("cls"),
            "key": hr.key(),
        }
        ds = hr.open(folder / "shards", fields)
        checkpoint = folder / "checkpoint.pt"
        first = train(ds, checkpoint, STOP_AFTER)
        rest = train(ds, checkpoint)
        checkpoint.unlink()
        assert first + rest == train(ds, checkpoint), "the resumed run saw other samples"
        print(f"stopped after {len(first)} samples, went on with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
