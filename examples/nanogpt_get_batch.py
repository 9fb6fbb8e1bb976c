# SPDX-License-Identifier: Apache-2.0
"""A training loop in the manner of nanoGPT's train.py, with its get_batch replaced by three lines.

    python examples/nanogpt_get_batch.py

nanoGPT draws rows at random, with repetition, from one file in memory. With headrace every token is an input once an
epoch, ranks get different rows, and a checkpoint knows where it stands; the files may lie anywhere.
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import numpy as np
import torch
from torch import nn

block_size, batch_size, max_iters = 32, 16, 60
vocab_size, n_embd = 64, 64


class Bigrams(nn.Module):
    """Stands for nanoGPT's model."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Embedding(vocab_size, n_embd), nn.Linear(n_embd, vocab_size))

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.net(idx).view(-1, vocab_size), targets.reshape(-1))


def main() -> None:
    torch.manual_seed(1337)
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = pathlib.Path(temporary)
        tokens = np.cumsum(np.random.default_rng(0).integers(1, 4, 50_000)) % vocab_size
        tokens.astype(np.uint16).tofile(data_dir / "train.bin")

        # The three lines.
        loader = hr.Loader(f"{data_dir}/train.bin", batch_size, {"t": hr.tokens(seq_len=block_size, stored="u16")})
        pairs = ((b["t"][:, :-1], b["t"][:, 1:]) for _, epoch in loader.epochs(10**9) for b in epoch)
        get_batch = pairs.__next__

        model = Bigrams()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
        losses, seen = [], torch.zeros(len(tokens) + 1, dtype=torch.int64)
        x, y = get_batch()
        for _ in range(max_iters):
            loss = model(x, y)
            x, y = get_batch()  # the next one comes while the model computes
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        loader.close()
        assert losses[-1] < 0.6 * losses[0], losses

        with hr.Loader(
            f"{data_dir}/train.bin", batch_size, {"t": hr.tokens(seq_len=block_size, stored="u16")}, tail="keep"
        ) as once:
            for batch in once.epoch(0):
                for row in batch.indices:
                    seen[row * block_size : (row + 1) * block_size] += 1
        rows = (len(tokens) - 1) // block_size
        assert seen[: rows * block_size].eq(1).all() and seen[rows * block_size :].eq(0).all()
        print(
            f"loss {losses[0]:.2f} to {losses[-1]:.2f}; in an epoch every one of {rows * block_size} tokens is an input exactly once"
        )


if __name__ == "__main__":
    main()
