# SPDX-License-Identifier: Apache-2.0
"""AG News: a CSV without a header, blanks and quotes in its texts. Compared with pandas.

python examples/first_hour/csv_without_a_header.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import pandas as pd


def make(path: pathlib.Path) -> pathlib.Path:
    rows = [(i % 4 + 1, f' Title "{i}", or so', f"Body of {i} ") for i in range(40)]
    pd.DataFrame(rows).to_csv(path, header=False, index=False, quoting=1)
    return path


with tempfile.TemporaryDirectory() as temporary:
    path = make(pathlib.Path(temporary) / "train.csv")

    ds = hr.open(path, header=["cls", "title", "text"])
    parts = ds.split(train=0.8, val=0.2)
    loader = hr.Loader(parts["train"], batch_size=8, fields={"text": hr.text("text"), "label": hr.scalar("cls")}, tail="keep")

    frame = pd.read_csv(path, names=["cls", "title", "text"])
    assert ds["title"] == frame["title"].tolist() and ds["cls"].tolist() == frame["cls"].tolist()
    assert sum(len(batch["text"]) for batch in loader) + len(parts["val"]) == len(frame)
    print(f"{len(ds)} rows, exactly as pandas has them; {len(parts['train'])} to train")
