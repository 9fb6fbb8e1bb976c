# SPDX-License-Identifier: Apache-2.0
"""Augmentations of one's own in processes: the same on any number of them, and after a resume.

    python examples/functions_in_processes.py [SHARDS]

Each picture gets a random patch blanked out and a random brightness, by a function that asks for a generator of its sample.
The batches are compared: on threads, in one process, in two, and gone on with from the middle of the epoch.
"""

from __future__ import annotations

import hashlib
import sys

import headrace as hr
import numpy as np

SHARDS = sys.argv[1] if len(sys.argv) > 1 else "train-{0000..0007}.tar"


def augment(image: np.ndarray, label: int, rng: np.random.Generator) -> dict[str, object]:
    y, x = rng.integers(0, 48, 2)
    out = image * np.float32(rng.uniform(0.7, 1.3))
    out[:, y : y + 16, x : x + 16] = 0
    return {"image": out, "label": label, "patch": np.stack([y, x])}


def loader(processes: int) -> hr.Loader:
    inputs = {"image": hr.image("jpg").random_resized_crop(64), "label": hr.scalar("cls")}
    return hr.Loader(SHARDS, 16, hr.map(inputs, augment, processes=processes), seed=3, output="numpy")


def digests(batches: object) -> list[str]:
    return [hashlib.sha256(b["image"].tobytes() + b["patch"].tobytes()).hexdigest() for b in batches]  # type: ignore[attr-defined]


def main() -> None:
    with loader(0) as threads:
        want = digests(threads.epoch(0))
    for n in (1, 2):
        with loader(n) as processes:
            assert digests(processes.epoch(0)) == want
            print(f"{n} processes: {len(want)} batches, exactly those of the threads")
    with loader(2) as first:
        batches = first.epoch(0)
        begun = digests(next(batches) for _ in range(3))
        state = first.state_dict()
    with loader(1) as second:
        second.load_state_dict(state)
        assert begun + digests(second.epoch(0)) == want
        print("gone on with from the third batch: exactly the rest")


if __name__ == "__main__":
    main()
