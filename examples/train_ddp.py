# SPDX-License-Identifier: Apache-2.0
"""DDP on two processes, stopped in the middle of an epoch, resumed on one.

    python examples/train_ddp.py

The loader finds its rank by torch.distributed. The state is equal on every rank, so rank 0 saves it.
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import torch
import torch.distributed as dist
from headrace.photos import write_class_folders
from torch.nn.parallel import DistributedDataParallel

EPOCHS, STOP_AFTER = 2, 3  # steps until the "crash"


def make_loader(source: str, **ranks: int) -> hr.Loader:
    fields = {"image": hr.image("jpg").random_resized_crop(32).normalize(hr.IMAGENET), "label": hr.scalar("cls")}
    # The global batch stays 12 on any number of processes, and so does the training.
    return hr.Loader(source, global_batch_size=12, fields=fields, seed=1, threads=1, **ranks)


def train(rank: int, world: int, source: str, folder: pathlib.Path, stop_after: int | None) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{world}", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps: list[list[int]] = []  # the samples of each step, over all ranks
    with make_loader(source) as loader:
        checkpoint = folder / "checkpoint.pt"
        if checkpoint.exists():
            saved = torch.load(checkpoint)
            model.module.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["loader"])
        for _, batches in loader.epochs(EPOCHS):
            for batch in batches:
                loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                everyone: list[list[int]] = [[] for _ in range(world)]
                dist.all_gather_object(everyone, batch.indices.tolist())
                steps.append(sorted(i for one in everyone for i in one))
                if len(steps) == stop_after:
                    break
            if len(steps) == stop_after:
                break
        if rank == 0:
            states = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
            torch.save({**states, "steps": steps}, checkpoint)
    dist.destroy_process_group()


def steps_of(folder: pathlib.Path) -> list[list[int]]:
    return torch.load(folder / "checkpoint.pt")["steps"]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_class_folders(folder / "pictures", 60)
        hr.pack(folder / "pictures", folder / "shards", shards=4)
        source = str(folder / "shards")
        torch.multiprocessing.spawn(train, (2, source, folder, STOP_AFTER), nprocs=2)
        first = steps_of(folder)
        train(0, 1, source, folder, None)  # or spawn any other number that divides the global batch
        rest = steps_of(folder)
        with make_loader(source, rank=0, world_size=1) as loader:
            straight = [sorted(batch.indices.tolist()) for _, batches in loader.epochs(EPOCHS) for batch in batches]
        assert first + rest == straight, "the resumed run saw other samples"
        print(f"two processes made {len(first)} steps, one made exactly the other {len(rest)}, sample by sample")


if __name__ == "__main__":
    main()
