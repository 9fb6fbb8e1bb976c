# SPDX-License-Identifier: Apache-2.0
"""A torch.utils.data.Dataset as it is: headrace orders, shards, batches and resumes it.

    python examples/torch_dataset.py

Nothing of the data set changes. One thread of headrace's calls its __getitem__, so that it need not be thread-safe.
"""

from __future__ import annotations

import headrace as hr
import torch
from torch.utils.data import Dataset

SAMPLES, BATCH, STOP_AFTER = 300, 20, 6


class Waves(Dataset[tuple[torch.Tensor, int]]):
    """Sines and cosines, and which of them it is."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        t = torch.linspace(0, 6, 32) + i
        return (torch.sin(t), 0) if i % 2 else (torch.cos(t), 1)


def main() -> None:
    loader = hr.Loader(hr.from_torch(Waves()), BATCH, seed=7, as_=("0", "1"))
    model = torch.nn.Linear(32, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order: list[list[int]] = []
    state = loader.state_dict()
    for batch in loader.epoch(0):
        waves, labels = batch
        loss = torch.nn.functional.cross_entropy(model(waves), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        order.append(batch.indices.tolist())
        if len(order) == STOP_AFTER:
            state = batch.state  # as a checkpoint would keep it
    again = hr.Loader(hr.from_torch(Waves()), BATCH, as_=("0", "1"))
    again.load_state_dict(state)
    rest = [batch.indices.tolist() for batch in again]
    assert rest == order[STOP_AFTER:], "the resumed run saw other samples"
    assert sorted(i for batch in order for i in batch) == list(range(SAMPLES))
    print(f"{len(order)} batches, each sample once; a resume after {STOP_AFTER} gave exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
