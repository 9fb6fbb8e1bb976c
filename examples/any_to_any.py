# SPDX-License-Identifier: Apache-2.0
"""One data set in every format that headrace writes: how large it becomes, and that it comes back the same.

    python examples/any_to_any.py

On the command line, each of these is `headrace pack pictures/ packed --to FORMAT`. A format that has no room for a field refuses it
by name before anything is written; `formats()` says which fields such a format holds.
"""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import headrace as hr
import numpy as np
from headrace.photos import write_class_folders


def plain(value: Any) -> Any:
    """A number is a number, whether a format keeps it as a float, an int or an array of one."""
    return value if isinstance(value, (bytes, str)) else float(np.asarray(value).item())


def size_of(path: pathlib.Path) -> int:
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file() and not p.name.startswith("headrace"))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = hr.open(write_class_folders(folder / "pictures"))
        want = [tuple(plain(source[i][name]) for name in ("jpg", "cls")) for i in range(len(source))]
        print(f"{'format':10} {'bytes':>8}  fields")
        print(f"{'pictures':10} {sum(len(jpeg) for jpeg, _ in want):8}  {list(source[0])}")
        held = []
        for known in hr.formats():
            if not known["write"] or known["holds"] == "arrays":
                continue
            name, packed = known["name"], folder / known["name"]
            try:
                hr.pack(source, packed, to=name, keep_order=True)
            except hr.Unsupported as refused:
                print(f"{name:10} {'–':>8}  {str(refused).splitlines()[0][:100]}")
                continue
            back = hr.open(packed)
            print(f"{name:10} {size_of(packed):8}  {list(back[0])}")
            # RecordIO calls its number `label`; in all others the names are as they were.
            label = "cls" if "cls" in back[0] else "label"
            got = [(plain(back[i]["jpg"]), plain(back[i][label])) for i in range(len(back))]
            assert got == want, name
            held.append(name)
        print(f"{', '.join(held)}: all hold exactly the same samples")


if __name__ == "__main__":
    main()
