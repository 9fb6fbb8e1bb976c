# SPDX-License-Identifier: Apache-2.0
"""What is here, and whether headrace reaches it: python bench/gpu/build.py."""

from __future__ import annotations

import sys

import common
import headrace as hr


def main() -> None:
    shards = common.photos(256)
    result = {"python": sys.version.split()[0], "headrace": hr.__version__, "device": "none", "decodes": False}
    if not common.is_dry():
        import torch

        made = common.loader(shards, device="cuda", decode="gpu")
        batch = next(iter(made))
        torch.cuda.synchronize()
        device = made.stats()["device"]
        made.close()
        result |= {"torch": torch.__version__, "device": device["name"], "decodes": device["decoded_on_device"] > 0}
        assert batch["image"].device.type == "cuda"
    common.record("build", result)


if __name__ == "__main__":
    main()
