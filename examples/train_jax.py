# SPDX-License-Identifier: Apache-2.0
"""JAX: batches are JAX arrays without a copy, a Batch is a pytree; stopped in the middle of an epoch and resumed.

python examples/train_jax.py
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

import headrace as hr
import numpy as np
from headrace.photos import write_class_folders

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("this example needs JAX: pip install jax")
    sys.exit(0)

EPOCHS, STOP_AFTER, SIZE, CLASSES = 2, 8, 32, 3


def loss(weights: dict[str, jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
    pixels = batch["image"].reshape(len(batch["image"]), -1)
    scores = jax.nn.log_softmax(pixels @ weights["w"] + weights["b"])
    return -jnp.mean(jnp.take_along_axis(scores, batch["label"][:, None], axis=1))


@jax.jit
def step(weights: dict[str, jax.Array], batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
    gradients = jax.grad(loss)(weights, batch)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)


def train(source: str, folder: pathlib.Path, stop_after: int | None = None, resume: bool = False) -> list[int]:
    fields = {
        "image": hr.image("jpg").random_resized_crop(SIZE).normalize(hr.IMAGENET).layout("NHWC"),
        "label": hr.scalar("cls"),
    }
    weights: Any = {"w": jnp.zeros((SIZE * SIZE * 3, CLASSES)), "b": jnp.zeros(CLASSES)}
    seen: list[int] = []
    steps = 0
    with hr.Loader(source, 8, fields, seed=1, output="jax") as loader:
        if resume:
            weights = {name: jnp.asarray(value) for name, value in np.load(folder / "weights.npz").items()}
            loader.load_state_dict(json.loads((folder / "loader.json").read_text()))
        for _, batches in loader.epochs(EPOCHS):
            for batch in batches:
                weights = step(weights, batch)
                seen += batch.indices.tolist()
                steps += 1
                if steps == stop_after:
                    np.savez(folder / "weights.npz", **weights)
                    (folder / "loader.json").write_text(json.dumps(loader.state_dict()))
                    return seen
    return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = write_class_folders(folder / "pictures", classes=CLASSES)
        first = train(source, folder, stop_after=STOP_AFTER)
        rest = train(source, folder, resume=True)
        assert first + rest == train(source, folder), "the resumed run saw other samples"
        print(f"stopped after {len(first)} samples, went on with exactly the other {len(rest)}")


if __name__ == "__main__":
    main()
