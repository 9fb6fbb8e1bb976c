# SPDX-License-Identifier: Apache-2.0
"""Pictures with several captions each, as Flickr30k and COCO have them: to Arrow, and back as batches.

    python examples/captions_to_arrow.py

Needs pyarrow to write. A row is a picture with the list of its captions; headrace reads the file without pyarrow, where the bytes lie,
and gives every caption (`many=True`), of which the loop takes one for each epoch.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import headrace as hr
import numpy as np
from headrace.photos import make_photo

try:
    import pyarrow as pa
except ImportError:
    print("this example needs pyarrow: pip install pyarrow")
    sys.exit(0)

PICTURES = 40


def captions(i: int) -> list[str]:
    return [f"caption {k} of picture {i}: Zürich, schön" for k in range(3 + i % 3)]


def write(path: pathlib.Path) -> None:
    schema = pa.schema({"__key__": pa.string(), "jpg": pa.binary(), "captions": pa.list_(pa.string())})
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, schema) as writer:
        for start in range(0, PICTURES, 16):  # a record batch at a time: what is not written yet is in memory
            rows = [
                {"__key__": f"flickr/{i:05d}", "jpg": make_photo(i, (80, 60)), "captions": captions(i)}
                for i in range(start, min(start + 16, PICTURES))
            ]
            writer.write(pa.RecordBatch.from_pylist(rows, schema))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "captions.arrow"
        write(path)
        print(hr.open(path).schema)
        image = hr.image("jpg").random_resized_crop(48).normalize(hr.IMAGENET)
        fields = {"image": image, "captions": hr.text("captions", many=True), "key": hr.key()}
        with hr.Loader(path, batch_size=8, fields=fields, seed=1, tail="keep", output="numpy") as loader:
            for epoch, batches in loader.epochs(2):
                seen: dict[str, list[str]] = {}
                for batch in batches:
                    draws = np.random.default_rng([epoch, *batch.indices])  # of the samples alone: the same after a resume
                    texts = [every[draws.integers(len(every))] for every in batch["captions"]]
                    assert len(texts) == len(batch["image"])
                    seen.update(zip(batch["key"], batch["captions"]))
                print(f"epoch {epoch}: {len(seen)} pictures, the last with {texts[-1]!r}")
                assert seen == {f"flickr/{i:05d}": captions(i) for i in range(PICTURES)}
        print("every picture came exactly once, with all of its captions")


if __name__ == "__main__":
    main()
