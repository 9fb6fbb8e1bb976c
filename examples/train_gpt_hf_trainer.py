# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 of Hugging Face's, trained by its Trainer on a blend of two files of tokens.

    python examples/train_gpt_hf_trainer.py

get_train_dataloader() returns the hr.Loader; as_= makes of every batch what the model takes. The Trainer shifts labels
itself, so a row of seq_len + 1 tokens is both input and labels.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from typing import Any

import headrace as hr
import numpy as np

try:
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
except ImportError:
    print("this example needs transformers: pip install transformers accelerate")
    sys.exit(0)

SEQ, BATCH, STEPS, VOCABULARY = 31, 8, 32, 64


def write_tokens(folder: pathlib.Path) -> None:
    """Two files in the form of nanoGPT's: nothing but u16. Web counts up, code counts down."""
    for name, step in (("web", 1), ("code", -1)):
        tokens = np.cumsum(np.random.default_rng(0).integers(1, 3, 20_000) * step) % VOCABULARY
        tokens.astype(np.uint16).tofile(folder / f"{name}.bin")


class GPTTrainer(Trainer):
    def __init__(self, loader: hr.Loader, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.loader = loader

    def get_train_dataloader(self) -> hr.Loader:
        return self.loader


def main() -> None:
    transformers.logging.set_verbosity_error()
    transformers.set_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_tokens(folder)
        blend = hr.blend({f"{folder}/web.bin": 3, f"{folder}/code.bin": 1}, epoch_samples=STEPS * BATCH)
        fields = {"tokens": hr.tokens(seq_len=SEQ, stored="u16")}
        loader = hr.Loader(blend, BATCH, fields, seed=1, as_=lambda b: {"input_ids": b["tokens"], "labels": b["tokens"]})
        config = GPT2Config(vocab_size=VOCABULARY, n_positions=SEQ + 1, n_embd=48, n_layer=2, n_head=4)
        arguments = TrainingArguments(
            output_dir=str(folder / "out"),
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            learning_rate=5e-3,
            logging_steps=1,
            save_strategy="no",
            ignore_data_skip=True,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
        )
        trainer = GPTTrainer(loader, GPT2LMHeadModel(config), arguments)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        rows = {pathlib.Path(name).stem: counts["samples"] for name, counts in loader.stats()["sources"].items()}
        loader.close()
        assert trainer.state.global_step == STEPS
        assert losses[-1] < 0.8 * losses[0], losses
        assert rows == {"web": STEPS * BATCH * 3 // 4, "code": STEPS * BATCH // 4}, rows
        print(
            f"{STEPS} steps, loss {losses[0]:.2f} to {losses[-1]:.2f}, on exactly {rows['web']} rows of web and {rows['code']} of code"
        )


if __name__ == "__main__":
    main()
