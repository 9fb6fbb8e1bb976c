# SPDX-License-Identifier: Apache-2.0
"""A small GPT trained on a blend of two corpora, stopped in the middle and resumed on other ranks.

    python examples/train_gpt_blend.py

Texts become files of tokens once (hr.tokenize); a blend takes 7 rows of the web for 3 of code, to the sample. The state of
the loader is a few numbers: with it two ranks go on where one stopped.
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import tempfile

import headrace as hr
import torch
from torch import nn

try:
    import tokenizers
except ImportError:
    print("this example needs tokenizers: pip install tokenizers")
    sys.exit(0)

SEQ, BATCH, STEPS, STOP = 64, 8, 40, 25
SUBJECTS = {
    "web": ["river", "water", "wheel", "mill", "stone", "bread"],
    "code": ["def", "return", "self", "import", "for", "while"],
}


def write_corpora(folder: pathlib.Path) -> None:
    """Two corpora of JSON lines, a tokenizer trained on both, and their tokens."""
    draw = random.Random(1)
    texts = {
        name: [" ".join(draw.choices(words, k=draw.randint(20, 200))) for _ in range(120)] for name, words in SUBJECTS.items()
    }
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False)
    bpe.train_from_iterator([t for some in texts.values() for t in some], trainer)
    for name, some in texts.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in some))
        hr.tokenize(str(folder / f"{name}.jsonl"), folder / name, tokenizer=bpe)


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 300, width: int = 64) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(SEQ, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        hidden = self.blocks(self.token(x) + self.place.weight, mask=mask, is_causal=True)
        return nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), y.flatten())


def loader_of(folder: pathlib.Path, rank: int = 0, world: int = 1) -> hr.Loader:
    blend = hr.blend({f"{folder}/web/*.bin": 0.7, f"{folder}/code/*.bin": 0.3}, epoch_samples=STEPS * BATCH)
    fields = {"tokens": hr.tokens(seq_len=SEQ)}
    return hr.Loader(blend, fields=fields, global_batch_size=BATCH, seed=1, rank=rank, world_size=world)


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_corpora(folder)
        model = GPT()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        losses, seen, state = [], [], {}
        with loader_of(folder) as loader:
            for step, batch in enumerate(loader.epoch(0)):
                rows = batch["tokens"]
                loss = model(rows[:, :-1], rows[:, 1:])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                seen.append(sorted(zip(batch.sources.tolist(), batch.indices.tolist())))
                if step + 1 == STOP:
                    state = loader.state_dict()
            counts = [s["samples"] for s in loader.stats()["sources"].values()]
        assert losses[-1] < 0.8 * losses[0], losses
        assert all(abs(n - STEPS * BATCH * w) <= 1 for n, w in zip(counts, (0.7, 0.3))), counts
        # Two ranks go on where one stopped: together they get the same rows, step by step.
        ranks = []
        for rank in range(2):
            with loader_of(folder, rank, 2) as loader:
                loader.load_state_dict(state)
                ranks.append([list(zip(b.sources.tolist(), b.indices.tolist())) for b in loader.epoch(0)])
        assert [sorted(a + b) for a, b in zip(*ranks)] == seen[STOP:]
        print(
            f"loss {losses[0]:.2f} to {losses[-1]:.2f}; {counts[0]} rows of web, {counts[1]} of code; "
            f"two ranks went on after step {STOP} with exactly the rows that one would have had"
        )


if __name__ == "__main__":
    main()
