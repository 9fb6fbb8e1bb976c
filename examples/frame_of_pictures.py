# SPDX-License-Identifier: Apache-2.0
"""A frame of pandas with paths of pictures: the engine reads and decodes them, the other columns come along.

python examples/frame_of_pictures.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import pandas as pd
from headrace.photos import write_class_folders


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_class_folders(folder)
        paths = sorted(folder.rglob("*.jpg"))
        frame = pd.DataFrame({"path": [str(p.relative_to(folder)) for p in paths]})
        frame["kind"] = [p.parent.name for p in paths]
        frame["age"] = range(len(frame))

        ds = hr.from_python(frame, files="path", root=folder)
        old = ds.where("age >= 4")  # a view: no picture is opened
        fields = {"image": hr.image("jpg").resize((32, 32)), "age": hr.scalar("age"), "kind": hr.text("kind")}
        seen = 0
        for batch in hr.Loader(old, 8, fields, tail="keep"):
            assert batch["image"].shape[0] == len(batch["age"]) == len(batch["kind"])
            assert all(kind == frame["kind"][age] for kind, age in zip(batch["kind"], batch["age"].tolist()))
            seen += len(batch["age"])
        assert seen == len(frame) - 4
        print(f"exactly the {seen} of {len(frame)} pictures that were asked for, with their columns")


if __name__ == "__main__":
    main()
