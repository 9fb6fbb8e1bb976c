# SPDX-License-Identifier: Apache-2.0
"""A corpus of JSON lines, gzipped, with nested members and a filter. Compared with pandas.

python examples/first_hour/jsonl_corpus.py
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile

import headrace as hr
import pandas as pd


def make(path: pathlib.Path) -> pathlib.Path:
    rows = [{"text": f" document {i}\n", "meta": {"lang": "de" if i % 3 else "en", "score": i / 10}} for i in range(100)]
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


with tempfile.TemporaryDirectory() as temporary:
    path = make(pathlib.Path(temporary) / "corpus.jsonl.gz")

    ds = hr.open(path).where("`meta.lang` == 'de' and `meta.score` >= 2")
    loader = hr.Loader(ds, batch_size=8, fields={"text": hr.text("text")}, shuffle=False)
    texts = [text for batch in loader for text in batch["text"]]

    frame = pd.read_json(path, lines=True)
    meta = pd.json_normalize(frame["meta"])
    assert texts == frame["text"][(meta["lang"] == "de") & (meta["score"] >= 2)].tolist()
    print(f"{len(texts)} of {len(frame)} texts, exactly as pandas has them")
