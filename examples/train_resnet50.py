# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 with PyTorch DDP, stopped in the middle of an epoch and resumed; on GPUs, or for some steps on the CPU.

    python examples/train_resnet50.py                                    # a trial on two processes and small pictures
    torchrun --nproc-per-node 8 examples/train_resnet50.py 's3://bucket/imagenet/train-*.tar' --epochs 90

With --decode gpu (or auto) the GPU's own JPEG engines decode; the pixels are the same. Run the same command again after a stop:
it goes on in the middle of the epoch, on any number of processes that divides the global batch.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile
from typing import Any

import headrace as hr
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_loader(o: argparse.Namespace, device: torch.device, **ranks: int) -> hr.Loader:
    image = hr.image("jpg").random_resized_crop(o.size).random_flip().normalize(hr.IMAGENET)
    if device.type == "cuda":
        image = image.cast("bf16")
    fields = {"image": image.layout("NHWC"), "label": hr.scalar("cls")}
    return hr.Loader(
        o.source, global_batch_size=o.batch, fields=fields, seed=1, device=device, decode=o.decode, threads=o.threads, **ranks
    )


def make_model(o: argparse.Namespace, device: torch.device) -> Any:
    from torchvision.models import resnet50

    torch.manual_seed(0)
    model = resnet50(num_classes=o.classes).to(device, memory_format=torch.channels_last)
    return DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)


def train(o: argparse.Namespace, device: torch.device) -> None:
    """From the checkpoint, where there is one, to --epochs, or for --steps steps."""
    model = make_model(o, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=0.9, weight_decay=1e-4)
    checkpoint, seen = pathlib.Path(o.checkpoint), []
    with make_loader(o, device) as loader:
        if checkpoint.exists():
            saved = torch.load(checkpoint, map_location=device)
            model.module.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["loader"])
        for epoch, batches in loader.epochs(o.epochs):
            for batch in batches:
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    loss = torch.nn.functional.cross_entropy(model(batch["image"].permute(0, 3, 1, 2)), batch["label"])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                seen.append(sorted(i for one in gathered(batch.indices.tolist()) for i in one) if o.note_samples else [])
                if len(seen) % 100 == 0 and dist.get_rank() == 0:
                    print(f"epoch {epoch}, step {len(seen)}: loss {loss.item():.3f}", flush=True)
                if len(seen) == o.steps:
                    break
            if len(seen) == o.steps:
                break
        if dist.get_rank() == 0:  # the loader's state is equal on all ranks
            parts = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
            torch.save({**parts, "seen": seen}, checkpoint)
            print(loader.verdict(), flush=True)


def gathered(numbers: list[int]) -> list[list[int]]:
    everyone: list[list[int]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everyone, numbers)
    return everyone


def run(o: argparse.Namespace) -> None:
    """One process of torchrun's."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl" if cuda else "gloo")
    train(o, device)
    dist.destroy_process_group()


def trial_process(rank: int, world: int, o: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{o.checkpoint}-meet-{world}", rank=rank, world_size=world)
    train(o, torch.device("cpu"))
    dist.destroy_process_group()


def trial(o: argparse.Namespace) -> None:
    """Small pictures on the CPU: two processes stop in the middle of an epoch, one goes on."""
    from headrace.photos import write_class_folders

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_class_folders(folder / "pictures", 48)
        hr.pack(folder / "pictures", folder / "shards", shards=4)
        o.source, o.checkpoint = str(folder / "shards"), str(folder / "checkpoint.pt")
        o.batch, o.size, o.classes, o.epochs, o.note_samples, o.threads, o.lr = 8, 32, 3, 1, True, 1, 0.01
        o.steps = 2
        torch.multiprocessing.spawn(trial_process, (2, o), nprocs=2)
        first = torch.load(o.checkpoint)["seen"]
        o.steps = None
        torch.multiprocessing.spawn(trial_process, (1, o), nprocs=1)
        rest = torch.load(o.checkpoint)["seen"]
        with make_loader(o, torch.device("cpu"), rank=0, world_size=1) as loader:
            straight = [sorted(batch.indices.tolist()) for _, batches in loader.epochs(o.epochs) for batch in batches]
        assert first + rest == straight, "the resumed run saw other samples"
        print(f"ResNet-50 on two processes made {len(first)} steps, one made exactly the other {len(rest)}, sample by sample")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", help="shards or a folder; none: the trial")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--steps", type=int, default=None, help="stop after so many")
    parser.add_argument("--batch", type=int, default=1024, help="of all processes together")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--lr", type=float, default=0.4)
    parser.add_argument("--decode", choices=["cpu", "gpu", "auto"], default="cpu")
    parser.add_argument("--threads", default="auto")
    parser.add_argument("--checkpoint", default="resnet50.pt")
    parser.add_argument("--note-samples", action="store_true", help="keep which samples each step had")
    o = parser.parse_args()
    o.threads = o.threads if o.threads == "auto" else int(o.threads)
    trial(o) if o.source is None else run(o)


if __name__ == "__main__":
    main()
