# SPDX-License-Identifier: Apache-2.0
"""JPEG to tensor by torchvision, for all peers that leave decoding and transforms to their user."""

from __future__ import annotations

import warnings
from typing import Any

from peers.common import MEAN, SHORT, SIZE, STD, Job


class Picture:
    """Called with a file name or the bytes of a JPEG. `decoder`: "torchvision", or "pil" for Pillow."""

    def __init__(self, job: Job, decoder: str = "torchvision") -> None:
        self.mode, self.exact, self.decoder, self.steps = job.mode, job.exact, decoder, None

    def _pil_steps(self) -> Any:
        from torchvision import transforms as t

        random = [t.RandomResizedCrop(SIZE), t.RandomHorizontalFlip()]
        steps = [t.Resize(SHORT), t.CenterCrop(SIZE)] if self.exact else random
        end = [t.ToTensor(), t.Normalize(MEAN, STD)] if self.mode == "f32" else [t.PILToTensor()]
        return t.Compose(steps + end)

    def _tensor_steps(self) -> Any:
        import torch
        from torchvision.transforms import v2

        random = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
        steps = [v2.Resize(SHORT, antialias=True), v2.CenterCrop(SIZE)] if self.exact else random
        end = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)] if self.mode == "f32" else []
        return v2.Compose(steps + end)

    def _start(self) -> None:
        """In the worker that will do the work: torch's own threads would only get into its way."""
        import torch

        warnings.filterwarnings("ignore", message=".*not writable.*")
        torch.set_num_threads(1)
        self.steps = self._pil_steps() if self.decoder == "pil" else self._tensor_steps()

    def __call__(self, jpeg: str | bytes) -> Any:
        if self.steps is None:
            self._start()
        if self.decoder == "pil":
            import io

            from PIL import Image

            with Image.open(jpeg if isinstance(jpeg, str) else io.BytesIO(jpeg)) as picture:
                return self.steps(picture.convert("RGB"))
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg, read_file

        coded = read_file(jpeg) if isinstance(jpeg, str) else torch.frombuffer(jpeg, dtype=torch.uint8)
        return self.steps(decode_jpeg(coded, mode=ImageReadMode.RGB))
