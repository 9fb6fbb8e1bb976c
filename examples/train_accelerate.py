# SPDX-License-Identifier: Apache-2.0
"""Hugging Face accelerate, stopped in the middle of an epoch, resumed by save_state() and load_state().

    python examples/train_accelerate.py

The loader is not given to prepare(), which would leave it as it is: it has its ranks and its device already. With gradient
accumulation accelerate does not see where its epochs end: let the number of steps divide len(loader).
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import headrace as hr
import torch
from headrace.photos import write_class_folders

try:
    from accelerate import Accelerator
except ImportError:
    print("this example needs accelerate: pip install accelerate")
    sys.exit(0)

EPOCHS, STOP_AFTER, BATCH = 2, 8, 8  # steps until the "crash": two into the second epoch


def train(source: str, folder: pathlib.Path, stop_after: int | None = None, resume: bool = False) -> list[int]:
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    fields = {"image": hr.image("jpg").random_resized_crop(32).normalize(hr.IMAGENET), "label": hr.scalar("cls")}
    loader = hr.Loader(source, BATCH, fields, seed=1, device=str(accelerator.device))

    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(loader)  # its state travels with the model's
    if resume:
        accelerator.load_state(str(folder / "checkpoint"))
    seen: list[int] = []
    steps = 0
    with loader:
        for _, batches in loader.epochs(EPOCHS):
            for batch in batches:
                loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                seen += batch.indices.tolist()
                steps += 1
                if steps == stop_after:
                    accelerator.save_state(str(folder / "checkpoint"))
                    return seen
    return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = write_class_folders(folder / "pictures")
        first = train(source, folder, stop_after=STOP_AFTER)
        rest = train(source, folder, resume=True)
        assert first + rest == train(source, folder), "the resumed run saw other samples"
        print(f"stopped after {len(first)} samples, went on with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
