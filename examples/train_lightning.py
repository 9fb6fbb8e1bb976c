# SPDX-License-Identifier: Apache-2.0
"""PyTorch Lightning, stopped in the middle of an epoch, resumed from Lightning's own checkpoint.

    python examples/train_lightning.py

Nothing to write for it: Lightning keeps the state of whatever train_dataloader() returns, if that has
state_dict() and load_state_dict(). hr.Loader has both, and a length, so that Lightning fetches nothing ahead.
"""

from __future__ import annotations

import logging
import pathlib
import sys
import tempfile

import headrace as hr
import torch
from headrace.photos import write_class_folders

try:
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint
except ImportError:
    print("this example needs Lightning: pip install lightning")
    sys.exit(0)

EPOCHS, SAVE_AT = 2, 8  # the checkpoint is made two steps into the second epoch


class Pictures(L.LightningDataModule):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.seen: list[int] = []

    def train_dataloader(self) -> hr.Loader:  # called when the processes know their ranks
        fields = {"image": hr.image("jpg").random_resized_crop(32).normalize(hr.IMAGENET), "label": hr.scalar("cls")}
        return hr.Loader(self.source, batch_size=8, fields=fields, seed=1)

    def on_before_batch_transfer(self, batch: hr.Batch, dataloader_idx: int) -> hr.Batch:
        # The transfer to the device makes a plain dict of the batch: whoever wants indices asks here.
        self.seen += batch.indices.tolist()
        return batch


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))

    def training_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.net(batch["image"]), batch["label"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def train(source: str, folder: pathlib.Path, resume: pathlib.Path | None = None) -> list[int]:
    data = Pictures(source)
    trainer = L.Trainer(
        max_epochs=EPOCHS,
        callbacks=[ModelCheckpoint(folder, filename="{step}", every_n_train_steps=SAVE_AT)],
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), datamodule=data, ckpt_path=resume)
    return data.seen


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = write_class_folders(folder / "pictures")
        straight = train(source, folder)
        rest = train(source, folder, resume=folder / f"step={SAVE_AT}.ckpt")
        assert straight[8 * SAVE_AT :] == rest, "the resumed run saw other samples"
        print(f"went on after {8 * SAVE_AT} of {len(straight)} samples with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
