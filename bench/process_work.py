# SPDX-License-Identifier: Apache-2.0
"""The functions that bench/processes.py measures, for both sides: processes import them by name."""

from __future__ import annotations

from typing import Any

import numpy as np

MEAN, STD = np.float32([123.7, 116.3, 103.5]), np.float32([58.4, 57.1, 57.4])
SIZE = 224


def turned(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """About 2 ms of NumPy and PIL: turned, resized, normalised."""
    from PIL import Image

    picture = Image.fromarray(a).rotate(float(rng.uniform(-20, 20)), Image.Resampling.BILINEAR)
    small = np.asarray(picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR), np.float32)
    return ((small - MEAN) / STD).transpose(2, 0, 1)


class Pipeline:
    """Augmentations by a library. ``crop``: with the random crop and the flip; else only what comes after them."""

    def __init__(self, crop: bool) -> None:
        self.crop, self.made = crop, None

    def __getstate__(self) -> dict[str, Any]:
        return {"crop": self.crop, "made": None}  # each process makes its own

    def pipeline(self) -> Any:
        if self.made is None:
            self.made = self.make()
        return self.made

    def make(self) -> Any:
        raise NotImplementedError


class Albumentations(Pipeline):
    def make(self) -> Any:
        import albumentations as A
        import cv2

        cv2.setNumThreads(1)
        steps = [A.RandomResizedCrop((SIZE, SIZE)), A.HorizontalFlip()] if self.crop else []
        return A.Compose([*steps, A.ColorJitter(0.4, 0.4, 0.4, 0.1), A.GaussianBlur((3, 5), p=0.5), A.Normalize()])

    def __call__(self, a: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        pipeline = self.pipeline()
        if rng is not None:
            pipeline.set_random_seed(int(rng.integers(1 << 31)))
        return pipeline(image=a)["image"].transpose(2, 0, 1)


class TorchvisionV2(Pipeline):
    """torchvision's second transforms, which want torch in every process."""

    def make(self) -> Any:
        import torch
        from torchvision.transforms import v2

        torch.set_num_threads(1)
        steps = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()] if self.crop else []
        after = [v2.ColorJitter(0.4, 0.4, 0.4), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
        return v2.Compose([*steps, *after])

    def __call__(self, a: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        import torch

        pipeline = self.pipeline()
        if rng is not None:
            torch.default_generator.manual_seed(int(rng.integers(1 << 31)))  # torch.manual_seed takes 0.4 ms: it seeds GPUs too
        return pipeline(torch.from_numpy(a)).numpy()


class Files:
    """A data set for DataLoader that does all the work itself, reading with ``read``."""

    def __init__(self, paths: list[str], read: str, function: Any) -> None:
        self.paths, self.read, self.function = paths, read, function

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        if self.read == "npy":
            return self.function(np.load(self.paths[i]), np.random.default_rng(i))
        if self.read == "cv2":
            import cv2

            return self.function(cv2.cvtColor(cv2.imread(self.paths[i]), cv2.COLOR_BGR2RGB))
        from PIL import Image
        from torchvision.transforms.v2.functional import pil_to_tensor

        with Image.open(self.paths[i]) as picture:
            return self.function(pil_to_tensor(picture.convert("RGB")).numpy())


def nothing(batch: dict[str, Any]) -> None:
    batch["x"][0, 0, 0, 0] += 1
