# SPDX-License-Identifier: Apache-2.0
"""Every step is exact, and equals torchvision's or Pillow's.  What is measured here is the table in docs/transforms.md.

python tests/test_transforms.py --write       after a step or a row has changed
"""

from __future__ import annotations

import math
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Union

import headrace as hr
import pixel_reference
import pytest
import torch
import transform_cases
import transform_draws
import transform_rows

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/transforms.md"
LIMIT = 0  # levels
MOST_UNDECIDED = {transform_rows.Row: 5.0, transform_draws.Row: 20.0}  # % of a row's pixels; round amounts lie on ties
STORE_STEPS = {"normalize", "cast", "layout"}  # how the last pass writes; test_against_torchvision.py

HEAD = """# Transforms

These are the steps that can follow `hr.image(...)`. Parameters, defaults and distributions are those of the class of the same
name in `torchvision.transforms.v2` (`random_flip`, which may also be called `random_horizontal_flip`, is its `RandomHorizontalFlip`). The random numbers are headrace's own: they follow from (seed, epoch, sample,
step). [gallery.md](gallery.md) shows a picture of every step.

Steps take u8 pixels and give u8 pixels; `normalize`, `cast` and `layout` are applied at the end. If torchvision's functions differ between tensors and Pillow images, headrace's results are those of
**v2 on u8 tensors**. Resizing is **Pillow's** (what torchvision does with Pillow images); for tensors torchvision calls its nearest filter `nearest-exact`. Gray pictures have one channel. Steps that change
colours do not change alpha; steps that move, blur or erase pixels do.

The tests make this table (`python tests/test_transforms.py --write`) and check it. They use {pictures} pictures of different sizes
in colour and gray, with {cases} settings. For steps that choose out of a set (the last rows) they draw {draws} pictures and look for each
among all that torchvision could have made. `F` is `torchvision.transforms.v2.functional`. Each step is compared twice. The table has the largest difference of any pixel, in levels of
255:

- *from exact*: against the same formula in doubles (`tests/pixel_reference.py`), which gives the same on every processor. torch and headrace
  compute in f32. Where a position lies within {tie} of the middle between two pixels, or a level within {tie} of a rounding
  border, processors may differ. Such a pixel is *undecided*: it must have one of the two values (at a corner, of the
  four). The last column says how many there are. Where torchvision or Pillow only copies bytes or computes in whole numbers (resizing, crops,
  padding, flips, erasing), theirs is the exact result.
- *from theirs*: against what torchvision or Pillow makes on this machine, at all pixels that are not undecided.

| step | what | equals | from exact | from theirs | undecided |
|---|---|---|---|---|---|
"""

TAIL = """
- `random_rotation` and `random_affine` keep the size; there is no `expand`.
- `gaussian_blur`: undecided levels may differ on processors without a fused multiply-add (before AVX2).
- `rand_augment` and the like have more undecided pixels, because many of their amounts are tenths, whose products with levels are whole numbers.
- `random_erasing` comes before `normalize`, so its `value` is a level. With `"random"` it is noise that has about mean 0 and deviation 1 after `normalize(hr.IMAGENET)`.
- `color_jitter` and `gaussian_blur` take `p`, as if in torchvision's `RandomApply`.
"""

AnyRow = Union[transform_rows.Row, transform_draws.Row]


def line(row: AnyRow, measured: transform_rows.Measured) -> str:
    undecided = f"{percent(measured):.1f} %" if measured.undecided else "0"
    return f"| `{row.step}` | {row.does} | {row.equals} | {measured.exact} | {measured.theirs} | {undecided} |"


def percent(measured: transform_rows.Measured) -> float:
    return math.ceil(1000 * measured.share) / 10


def documented(row: AnyRow) -> tuple[int, int, float]:
    """From exact, from theirs, undecided in percent."""
    pattern = re.escape(f"| `{row.step}` | {row.does} | {row.equals} |") + r" (\d+) \| (\d+) \| ([\d.]+)"
    found = re.search(pattern, DOCUMENT.read_text())
    assert found, "python tests/test_transforms.py --write"
    return int(found[1]), int(found[2]), float(found[3])


def rows() -> list[AnyRow]:
    return [*transform_rows.ROWS, *transform_draws.ROWS]


def measure(row: AnyRow) -> transform_rows.Measured:
    return transform_rows.measure(row) if isinstance(row, transform_rows.Row) else transform_draws.measure(row)


def head() -> str:
    cases = sum(len(row.cases) for row in transform_rows.ROWS)
    draws = sum(row.draws for row in transform_draws.ROWS)
    return HEAD.format(pictures=len(transform_cases.SIZES), cases=cases, draws=f"{draws:,}", tie=pixel_reference.TIE)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """For pictures this small, torch's threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.step} {row.does}")
def test_a_step_is_exact_and_torchvisions_or_pillows(row: AnyRow) -> None:
    measured = measure(row)
    exact, theirs, undecided = documented(row)
    assert measured.exact <= exact <= LIMIT
    assert measured.theirs <= theirs <= LIMIT
    assert percent(measured) <= undecided + 0.1 <= MOST_UNDECIDED[type(row)] + 0.1


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
    DOCUMENT.write_text(head() + "".join(line(row, measure(row)) + "\n" for row in rows()) + TAIL)
    print(f"{DOCUMENT}: {len(rows())} rows")
