# SPDX-License-Identifier: Apache-2.0
"""Documents with any number of pictures and paragraphs, as vision-language models take them.

    python examples/interleaved_documents.py

Makes a small Parquet file in which a field has several values, or none, and prints what a batch holds: lists of texts, and one
tensor of all pictures with the place where each document begins. Lists in Arrow, MDS and TFRecord files come the same way.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import headrace as hr
from headrace import photos

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    print("this example needs pyarrow: pip install pyarrow")
    sys.exit(0)

COUNTS = [3, 0, 1, 5, 2, 2, 0, 4]  # pictures of each document


def document(n: int) -> dict[str, list[bytes] | list[str]]:
    return {
        "pictures": [photos.make_photo(10 * n + k, (32 + 4 * k, 24)) for k in range(COUNTS[n])],
        "texts": [f"paragraph {k} of document {n}" for k in range(COUNTS[n] + 1)],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "documents.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([document(n) for n in range(len(COUNTS))]), path)
        fields = {
            "pictures": hr.image("pictures", many=True).random_resized_crop(16).random_flip().ragged(),
            "texts": hr.text("texts", many=True),
        }
        seen = 0
        with hr.Loader(path, batch_size=4, fields=fields, seed=1, output="numpy") as loader:
            for batch in loader.epoch(0):
                pixels, begins = batch["pictures"]
                print(f"documents {batch.indices.tolist()}: pictures {pixels.shape}, begins {begins.tolist()}")
                for k, n in enumerate(batch.indices):
                    own, texts = pixels[begins[k] : begins[k + 1]], batch["texts"][k]
                    assert len(own) == COUNTS[n] and texts == document(n)["texts"]
                    print(f"  {n}: {len(own)} pictures, {len(texts)} texts, the last {texts[-1]!r}")
                seen += len(pixels)
        assert seen == sum(COUNTS)
        print(f"every picture came exactly once: {seen}")


if __name__ == "__main__":
    main()
