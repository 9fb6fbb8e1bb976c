# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier on class folders, stops in the middle of an epoch, goes on from the checkpoint.

    python examples/train_classifier.py [FOLDER_OR_SHARDS]

Without an argument it makes a few pictures of its own.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import headrace as hr
import torch
from headrace.photos import write_class_folders

EPOCHS, STOP_AFTER = 2, 5  # steps until the "crash"


def make_loader(source: str | pathlib.Path) -> hr.Loader:
    fields = {
        "image": hr.image("jpg").random_resized_crop(64).random_flip().normalize(hr.IMAGENET),
        "label": hr.scalar("cls"),
    }
    return hr.Loader(source, batch_size=8, fields=fields, seed=1)


def train(source: str | pathlib.Path, checkpoint: pathlib.Path, stop_after: int | None) -> list[int]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(3))
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen: list[int] = []
    with make_loader(source) as loader:
        if checkpoint.exists():
            saved = torch.load(checkpoint)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["loader"])
        for epoch, batches in loader.epochs(EPOCHS):
            for batch in batches:
                loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen += batch.indices.tolist()
                if stop_after is not None and len(seen) >= 8 * stop_after:
                    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
                    torch.save(states, checkpoint)
                    return seen
            print(f"epoch {epoch}: loss {loss.item():.3f}")
    return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = sys.argv[1] if len(sys.argv) > 1 else write_class_folders(pathlib.Path(folder) / "pictures")
        checkpoint = pathlib.Path(folder) / "checkpoint.pt"
        first = train(source, checkpoint, STOP_AFTER)
        rest = train(source, checkpoint, None)
        checkpoint.unlink()
        straight = train(source, checkpoint, None)
        assert first + rest == straight, "the resumed run saw other samples"
        print(f"stopped after {len(first)} samples, went on with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
