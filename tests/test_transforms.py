# SPDX-License-Identifier: Apache-2.0
"""Every step equals torchvision's or Pillow's.  What is measured here is the table in docs/transforms.md.

python tests/test_transforms.py --write       after a step or a row has changed
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import headrace as hr
import pytest
import torch
import transform_cases
import transform_draws
import transform_rows

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/transforms.md"
LIMIT = 1  # levels
STORE_STEPS = {"normalize", "cast", "layout"}  # how the last pass writes; test_against_torchvision.py

HEAD = """# Transforms

Steps of `hr.image(...)`, each one line of `src/transform/transforms.inc`. They take u8 pixels and give u8 pixels; `normalize`,
`cast` and `layout` say how the last pass writes them. Parameters, defaults and distributions are those of the class of the same
name in `torchvision.transforms.v2`; the random numbers are headrace's own, named by (seed, epoch, sample, step). Pictures of every
step: [gallery.md](gallery.md).

Where torchvision's functions differ between tensors and Pillow images, ours are those of **v2 on u8 tensors**; resizing is **Pillow's**
(torchvision's on Pillow images), whose nearest is `nearest-exact` to tensors. Gray pictures have one colour; alpha is left alone by
changes of colour, and goes along with the others where pixels move, blur or are erased.

The table is made by `python tests/test_transforms.py --write` and checked by the tests: the largest difference, in levels of 255,
between a pixel of ours and theirs, over {pictures} pictures of different sizes in colour and gray, with {cases} settings; for steps
that draw out of a set (the last rows), over {draws} pictures drawn, each compared with all that torchvision could have made.
`F` is `torchvision.transforms.v2.functional`.

| step | what | equals | largest difference |
|---|---|---|---|
"""

TAIL = """
- `random_rotation` and `random_affine`: a position just between two pixels may go to either, as the processor's rounding has it: 1 in
  2,000 pixels is set aside in the measurement. The size stays; `expand` is not there.
- `gaussian_blur`, hue and bilinear sampling: f32 sums in another order than torch's may round to the next level.
- `random_erasing` comes before `normalize`, so its `value` is a level; `"random"` is noise that `normalize(hr.IMAGENET)` makes nearly
  normal, of mean 0 and deviation 1, cut where colours end.
- `color_jitter` and `gaussian_blur` take `p`, as if in torchvision's `RandomApply`.
"""


def line(row: transform_rows.Row | transform_draws.Row, difference: object) -> str:
    return f"| `{row.step}` | {row.does} | {row.equals} | {difference} |"


def rows() -> list[transform_rows.Row | transform_draws.Row]:
    return [*transform_rows.ROWS, *transform_draws.ROWS]


def measured(row: transform_rows.Row | transform_draws.Row) -> int:
    return transform_rows.worst(row) if isinstance(row, transform_rows.Row) else transform_draws.worst(row)


def head() -> str:
    cases = sum(len(row.cases) for row in transform_rows.ROWS)
    draws = sum(row.draws for row in transform_draws.ROWS)
    return HEAD.format(pictures=len(transform_cases.SIZES), cases=cases, draws=f"{draws:,}")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """For pictures this small, torch's threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.step} {row.does}")
def test_a_step_is_torchvisions_or_pillows(row: transform_rows.Row | transform_draws.Row) -> None:
    pattern = re.compile(re.escape(line(row, "@")).replace("@", r"(\d+)"))
    documented = pattern.search(DOCUMENT.read_text())
    assert documented, "python tests/test_transforms.py --write"
    assert measured(row) <= int(documented[1]) <= LIMIT


def test_the_table_has_every_step_and_no_other() -> None:
    text = DOCUMENT.read_text()
    assert text.startswith(head()) and text.endswith(TAIL), "python tests/test_transforms.py --write"
    assert text.count("\n| `") == len(rows())
    inc = (DOCUMENT.parent.parent / "src/transform/transforms.inc").read_text()
    steps = set(re.findall(r"HEADRACE_TRANSFORM\((\w+)\)", inc))
    assert {row.step for row in rows()} | STORE_STEPS == steps
    assert all(callable(getattr(hr.ImageField, step)) for step in steps)


def test_the_gallery_shows_every_step() -> None:
    subprocess.run([sys.executable, DOCUMENT.parent.parent / "tools/make_gallery.py", "--check"], check=True)
    assert DOCUMENT.with_name("gallery.jpg").stat().st_size < 300 << 10


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    DOCUMENT.write_text(head() + "".join(line(row, measured(row)) + "\n" for row in rows()) + TAIL)
    print(f"{DOCUMENT}: {len(rows())} rows")
