# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face transformers, stopped in the middle of an epoch and resumed.

    python examples/train_hf_trainer.py

Three things to do: get_train_dataloader() returns the hr.Loader as it is, its state goes into the checkpoint, and
ignore_data_skip=True tells the Trainer that nothing is to be read and thrown away on resume: the loader stands there.
The Trainer finds its epoch from the number of steps: on another number of processes keep the global batch as it was.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

import headrace as hr
import torch
from headrace.photos import write_class_folders

try:
    import transformers
    from transformers import Trainer, TrainerCallback, TrainingArguments
except ImportError:
    print("this example needs transformers: pip install transformers accelerate")
    sys.exit(0)

EPOCHS, SAVE_AT, BATCH = 2, 8, 8  # the checkpoint is made two steps into the second epoch


class SaveLoader(TrainerCallback):
    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        path = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}" / "loader.json"
        path.write_text(json.dumps(others["train_dataloader"].state_dict()))


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 3))

    def forward(self, image: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.net(image)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class PictureTrainer(Trainer):
    def __init__(self, source: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, callbacks=[SaveLoader()], **kwargs)
        fields = {"image": hr.image("jpg").random_resized_crop(32).normalize(hr.IMAGENET), "labels": hr.scalar("cls")}
        # On a GPU: device=self.args.device. With several processes the loader finds its rank by torch.distributed.
        self.loader = hr.Loader(source, self.args.train_batch_size, fields, seed=1, device="cpu")
        self.seen: list[int] = []

    def get_train_dataloader(self) -> hr.Loader:
        return self.loader

    def training_step(self, model: torch.nn.Module, inputs: hr.Batch, *args: Any) -> torch.Tensor:
        self.seen += inputs.indices.tolist()
        return super().training_step(model, inputs, *args)


def train(source: str, folder: pathlib.Path, resume: pathlib.Path | None = None) -> list[int]:
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        save_steps=SAVE_AT,
        ignore_data_skip=True,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = PictureTrainer(source, Classifier(), arguments)
    if resume:
        trainer.loader.load_state_dict(json.loads((resume / "loader.json").read_text()))
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    assert trainer.state.global_step == EPOCHS * len(trainer.loader)
    return trainer.seen


def main() -> None:
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = write_class_folders(folder / "pictures")
        straight = train(source, folder)
        rest = train(source, folder, resume=folder / f"checkpoint-{SAVE_AT}")
        assert straight[BATCH * SAVE_AT :] == rest, "the resumed run saw other samples"
        print(f"went on after {BATCH * SAVE_AT} of {len(straight)} samples with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
