# SPDX-License-Identifier: Apache-2.0
"""mixup and cutmix against torchvision's formulas, for the shares that were drawn."""

from __future__ import annotations

import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace.photos import make_photo

CLASSES, BATCH = 10, 8


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("mix")
    for i in range(40):
        (root / f"c{i % CLASSES}").mkdir(exist_ok=True)
        (root / f"c{i % CLASSES}" / f"{i:03d}.jpg").write_bytes(make_photo(i, (64, 48)))
    return root


def run(photos: pathlib.Path, mix: Any = None, layout: str = "NCHW", threads: int = 2, cast: str | None = None) -> list[hr.Batch]:
    image = hr.image("jpg").random_resized_crop(32)
    image = image.cast(cast) if cast else image.normalize(hr.IMAGENET)
    fields = {"image": image.layout(layout), "label": hr.scalar("cls")}
    with hr.Loader(photos, BATCH, fields, seed=5, output="numpy", mix=mix, threads=threads) as loader:
        return [b for epoch in range(3) for b in loader.epoch(epoch)]


def share_of(mixed: hr.Batch, plain: hr.Batch) -> float:
    """λ, read from the labels."""
    before = np.roll(plain["label"], 1)
    for row, own, other in zip(mixed["label"], plain["label"], before):
        if own != other:
            assert row[own] + row[other] == pytest.approx(1) and np.count_nonzero(row) <= 2
            return float(row[own])
    raise AssertionError("all labels of the batch are alike")


def test_mixup_is_torchvisions_formula(photos: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    shares = []
    for mixed, plain in zip(run(photos, hr.mixup(0.4, classes=CLASSES)), run(photos)):
        share = share_of(mixed, plain)
        shares.append(share)
        x = torch.from_numpy(plain["image"])
        wanted = x.roll(1, 0).mul(1.0 - share).add(x.mul(share))
        assert np.abs(mixed["image"] - wanted.numpy()).max() < 1e-5
        one_hot = torch.nn.functional.one_hot(torch.from_numpy(plain["label"]), CLASSES).float()
        wanted = one_hot.roll(1, 0).mul(1.0 - share).add(one_hot.mul(share))
        assert np.abs(mixed["label"] - wanted.numpy()).max() < 1e-6
    assert len(set(shares)) == len(shares)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_cutmix_puts_a_box_of_the_neighbour_in(photos: pathlib.Path, layout: str) -> None:
    cut = 0
    for mixed, plain in zip(run(photos, hr.cutmix(1.0, classes=CLASSES), layout), run(photos, None, layout)):
        share = share_of(mixed, plain)
        x, y = plain["image"], np.roll(plain["image"], 1, 0)
        axis = 1 if layout == "NCHW" else 3
        foreign = (mixed["image"] != x).any(axis)
        assert np.where(np.expand_dims(foreign, axis), mixed["image"] == y, True).all()
        every = foreign.any(0)  # the box is the same in all pictures
        if not every.any():
            continue
        cut += 1
        rows, columns = np.flatnonzero(every.any(1)), np.flatnonzero(every.any(0))
        height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        assert share == pytest.approx(1 - height * width / 32**2, abs=1e-6)
        assert every[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].mean() > 0.98
    assert cut > 5


def test_cutmix_takes_pixels_as_they_are(photos: pathlib.Path) -> None:
    for mixed, plain in zip(run(photos, hr.cutmix(1.0, classes=CLASSES), cast="u8"), run(photos, cast="u8")):
        x, y = plain["image"], np.roll(plain["image"], 1, 0)
        assert mixed["image"].dtype == np.uint8 and ((mixed["image"] == x) | (mixed["image"] == y)).all()


@pytest.mark.parametrize("cast", ["f16", "bf16"])
def test_mixup_of_halves(photos: pathlib.Path, cast: str) -> None:
    pytest.importorskip("ml_dtypes")
    for mixed, plain in zip(run(photos, hr.mixup(0.4, classes=CLASSES), cast=cast), run(photos, cast=cast)):
        share = share_of(mixed, plain)
        x = plain["image"].astype(np.float32)
        wanted = x * share + np.roll(x, 1, 0) * (1 - share)
        assert np.abs(mixed["image"].astype(np.float32) - wanted).max() <= (0.13 if cast == "f16" else 1.01)


def test_one_of_several_is_drawn_and_p_leaves_batches_alone(photos: pathlib.Path) -> None:
    both = [hr.mixup(0.4, classes=CLASSES), hr.cutmix(1.0, classes=CLASSES)]
    kinds = set()
    for mixed, plain in zip(run(photos, both), run(photos)):
        x, y = plain["image"], np.roll(plain["image"], 1, 0)
        kinds.add("cut" if ((mixed["image"] == x) | (mixed["image"] == y)).all() else "mix")
    assert kinds == {"cut", "mix"}
    for mixed, plain in zip(run(photos, hr.mixup(0.4, classes=CLASSES, p=0)), run(photos)):
        assert np.array_equal(mixed["image"], plain["image"])
        assert np.array_equal(mixed["label"], np.eye(CLASSES, dtype=np.float32)[plain["label"]])


def test_the_same_for_any_number_of_threads(photos: pathlib.Path) -> None:
    def one(threads: int) -> bytes:
        return b"".join(
            b["image"].tobytes() + b["label"].tobytes() for b in run(photos, hr.mixup(classes=CLASSES), threads=threads)
        )

    assert one(1) == one(2) == one(7)


@pytest.mark.parametrize(
    ("mix", "cast", "says"),
    [
        (hr.mixup(classes=CLASSES), "u8", "mixup blends floats"),
        (hr.mixup(0, classes=CLASSES), None, "'alpha' must be above 0"),
        (hr.cutmix(classes=CLASSES, p=2), None, r"'p' must be in \[0, 1\]"),
        (hr.mixup(classes=CLASSES, label="cls"), None, "no field 'cls' among the outputs"),
        ([hr.mixup(classes=3), hr.cutmix(classes=4)], None, "the same classes"),
        ("mixup", None, "mix is hr.mixup"),
        ([], None, "mix is hr.mixup"),
    ],
)
def test_wrong_mixes_are_refused(photos: pathlib.Path, mix: Any, cast: str | None, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        run(photos, mix, cast=cast)


def test_a_label_beyond_the_classes_is_bad_data(photos: pathlib.Path) -> None:
    with pytest.raises(hr.DataError, match="is not in 0 to 4, the 5 classes given to mixup"):
        run(photos, hr.mixup(classes=5))
