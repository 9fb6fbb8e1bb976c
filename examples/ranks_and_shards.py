# SPDX-License-Identifier: Apache-2.0
"""Packs a folder into shards and loads them on three ranks: no splitting by hand, no uneven ends.

python examples/ranks_and_shards.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
from headrace.photos import make_photo


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for i in range(50):  # a number that divides by nothing convenient
            place = folder / "pictures" / f"class{i % 5}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i:03d}.jpg").write_bytes(make_photo(i, size=(120, 90)))
        print(hr.pack(folder / "pictures", folder / "shards", shards=4))

        fields = {"image": hr.image("jpg").resize((64, 64)), "label": hr.scalar("cls"), "key": hr.key()}
        seen: list[int] = []
        for rank in range(3):
            # shuffle=False, hence tail="keep": each sample exactly once, as evaluation wants it.
            with hr.Loader(folder / "shards", 4, fields, shuffle=False, rank=rank, world_size=3) as loader:
                mine = [i for batch in loader for i in batch.indices]
                print(f"rank {rank}: {len(loader)} batches, {len(mine)} samples")
                seen += mine
        assert sorted(seen) == list(range(50))
        print("every sample exactly once, the same number of batches on every rank")


if __name__ == "__main__":
    main()
