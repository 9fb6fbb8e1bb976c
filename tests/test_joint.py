# SPDX-License-Identifier: Apache-2.0
"""Fields that go together: masks, boxes and points follow the picture; variants share one decode."""

from __future__ import annotations

import io
import json
import pathlib
import tarfile
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image

WIDTH, HEIGHT, SAMPLES = 120, 90, 12


def _jpeg(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=95, subsampling=0)
    return out.getvalue()


def _boxes(i: int) -> list[list[float]]:
    rng = np.random.default_rng(i)
    out = []
    for label in range(3):
        x, y = rng.uniform(0, WIDTH - 30), rng.uniform(0, HEIGHT - 30)
        out.append([x, y, x + rng.uniform(8, 30), y + rng.uniform(8, 30), label])
    return out


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Pictures with one bright box, the same picture as `seg.jpg`, boxes as lists and as objects."""
    path = tmp_path_factory.mktemp("joint") / "a.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(SAMPLES):
            pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
            x0, y0, x1, y1, _ = (int(v) for v in _boxes(i)[0])
            pixels[y0:y1, x0:x1] = 255
            jpeg = _jpeg(pixels)
            rows = [[x0, y0, x1, y1, 7]]
            members = {
                "jpg": jpeg,
                "seg.jpg": jpeg,
                "small.jpg": _jpeg(pixels[::2, ::2].copy()),
                "boxes.json": json.dumps(rows).encode(),
                "coco.json": json.dumps(
                    [{"id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0], "segmentation": [[1, 2, {"a": "]"}]], "category_id": 7}]
                ).encode(),
                "share.json": json.dumps(
                    [[(x0 + x1) / 2 / WIDTH, (y0 + y1) / 2 / HEIGHT, (x1 - x0) / WIDTH, (y1 - y0) / HEIGHT, 7]]
                ).encode(),
                "points.json": json.dumps([[x0, y0], [x1, y1], [0, 0]]).encode(),
                "many.json": json.dumps(_boxes(i)).encode(),
            }
            for name, value in members.items():
                info = tarfile.TarInfo(f"s{i:03d}.{name}")
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
    return path


def batches(shard: pathlib.Path, fields: dict[str, hr.Field], threads: int = 2, **options: Any) -> list[hr.Batch]:
    with hr.Loader(shard, 4, fields, seed=3, threads=threads, output="numpy", **options) as loader:
        return list(loader.epoch(0)) + list(loader.epoch(1))


def crop(field: hr.ImageField, **options: Any) -> hr.ImageField:
    return field.random_resized_crop(64, scale=(0.4, 1.0), **options).random_flip()


def test_a_mask_is_cut_as_its_picture(shard: pathlib.Path) -> None:
    fields = hr.joint(image=crop(hr.image("jpg"), filter="nearest"), mask=crop(hr.mask("seg.jpg", mode="RGB")))
    alone = {"image": crop(hr.image("jpg"), filter="nearest"), "mask": crop(hr.mask("seg.jpg", mode="RGB"))}
    for batch in batches(shard, fields):
        assert np.array_equal(batch["image"], batch["mask"])
    assert any(not np.array_equal(b["image"], b["mask"]) for b in batches(shard, alone))  # the test can fail


def test_a_mask_is_never_blended(shard: pathlib.Path) -> None:
    mask = hr.mask("seg.jpg", mode="L").random_resized_crop(64, scale=(0.1, 0.2))
    source = {int(v) for row in hr.open(shard, {"m": hr.image("seg.jpg", mode="L")}) for v in np.unique(row["m"])}
    for batch in batches(shard, {"m": mask}):
        assert batch["m"].shape[1:] == (1, 64, 64)
        assert {int(v) for v in np.unique(batch["m"])} <= source


@pytest.mark.parametrize(
    "boxes",
    [
        hr.boxes("boxes.json", extra="label"),
        hr.boxes("coco.json", "xywh", extra=("category_id",)),
        hr.boxes("share.json", "cxcywh", extra=("label",), normalized=True),
    ],
    ids=["rows", "coco", "shares"],
)
def test_boxes_go_where_the_pixels_go(shard: pathlib.Path, boxes: hr.Field) -> None:
    fields = hr.joint(image=crop(hr.image("jpg", mode="L")), boxes=boxes)
    seen = 0
    for batch in batches(shard, fields):
        for picture, found in zip(batch["image"], batch["boxes"]):
            assert found.dtype == np.float32 and found.shape[1] == 5
            bright = np.argwhere(picture[0] > 127)
            if len(found) == 0:
                assert len(bright) <= 4
                continue
            seen += 1
            x0, y0, x1, y1, label = found[0]
            assert label == 7
            (top, left), (bottom, right) = bright.min(0), bright.max(0) + 1
            assert np.abs(np.array([left, top, right, bottom]) - [x0, y0, x1, y1]).max() <= 1.6
    assert seen > SAMPLES


def test_masks_and_boxes_follow_a_rotation(shard: pathlib.Path) -> None:
    def turned(field: hr.ImageField, **options: Any) -> hr.ImageField:
        return field.resize((90, 90), **options).random_vertical_flip().random_affine(40, translate=(0.1, 0.1), scale=(0.8, 1.2))

    # The picture alone has a colour step in between: the draws of the others do not shift.
    image = hr.image("jpg", mode="RGB").color_jitter(0.1)
    fields = hr.joint(
        image=turned(image, filter="nearest"),
        mask=turned(hr.mask("seg.jpg", mode="RGB")),
        boxes=hr.boxes("boxes.json", extra="label"),
    )
    seen = 0
    for batch in batches(shard, fields):
        for picture, mask, found in zip(batch["image"], batch["mask"], batch["boxes"]):
            bright = np.argwhere(mask[0] > 127)
            assert np.mean((picture[0] > 127) == (mask[0] > 127)) > 0.99
            if len(found) == 0 or len(bright) < 20:
                continue
            # The upright box around the turned one: it holds all bright pixels, and hardly more where nothing is cut off.
            (top, left), (bottom, right) = bright.min(0), bright.max(0) + 1
            beyond = found[0, :4] - np.array([left, top, right, bottom])
            assert (beyond[:2] <= 2.5).all() and (beyond[2:] >= -2.5).all()
            if found[0, :4].min() > 0 and found[0, :4].max() < 90:
                seen += 1
                assert np.abs(beyond).max() <= 2.5
    assert seen > SAMPLES


def test_points_follow_and_are_never_dropped(shard: pathlib.Path) -> None:
    fields = hr.joint(image=crop(hr.image("jpg")), boxes=hr.boxes("boxes.json", extra="label"), points=hr.points("points.json"))
    inside = 0
    for batch in batches(shard, fields):
        for boxes, points in zip(batch["boxes"], batch["points"]):
            assert points.shape == (3, 2)
            x, y = points[:2, 0], points[:2, 1]
            if len(boxes) == 1 and min(x.min(), y.min()) >= 0 and max(x.max(), y.max()) <= 64:
                inside += 1
                assert np.allclose(boxes[0, :4], [x.min(), y.min(), x.max(), y.max()], atol=1e-3)
    assert inside > 3


def test_a_function_may_ask_for_another_sample_between_the_fields_of_a_joint(shard: pathlib.Path) -> None:
    def fields(function: Any) -> dict[str, hr.Field]:
        return hr.joint(image=crop(hr.image("jpg")).map(function), boxes=hr.boxes("many.json", extra="label"))

    plain = hr.open(shard, fields(lambda v: v))
    other = hr.open(
        shard,
        hr.joint(
            image=crop(hr.image("jpg")), boxes=hr.boxes("many.json", extra="label"), mask=crop(hr.mask("seg.jpg", mode="L"))
        ),
    )

    def asks(v: Any) -> Any:
        assert other[1]["mask"] is not None
        return v

    nested = hr.open(shard, fields(asks))
    for i in range(SAMPLES):
        assert np.array_equal(nested[i]["image"], plain[i]["image"])
        assert np.array_equal(nested[i]["boxes"], plain[i]["boxes"])


def test_boxes_are_clipped_and_filtered(shard: pathlib.Path) -> None:
    def run(**options: Any) -> list[np.ndarray]:
        fields = hr.joint(
            image=hr.image("jpg").random_resized_crop(64, scale=(0.2, 0.5)),
            boxes=hr.boxes("many.json", extra="label", **options),
        )
        return [rows for batch in batches(shard, fields) for rows in batch["boxes"]]

    every, large, visible = run(), run(min_area=400), run(min_visible=0.9)
    for rows in every:
        assert rows[:, :4].min(initial=0) >= 0 and rows[:, :4].max(initial=0) <= 64
    count = [sum(len(r) for r in rows) for rows in (every, large, visible)]
    assert count[0] > count[1] > 0 and count[0] > count[2] > 0
    for rows in large:
        assert ((rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1]) >= 399.9).all()


def test_boxes_alone_come_as_they_lie(shard: pathlib.Path) -> None:
    ds = hr.open(shard, {"boxes": hr.boxes("many.json", extra="label")})
    assert np.allclose(ds[5]["boxes"], np.array(_boxes(5), np.float32))
    padded = next(iter(hr.Loader(shard, 4, {"b": hr.boxes("many.json", extra="label").padded()}, output="numpy")))
    assert padded["b"][0].shape == (4, 3, 5)


def test_a_joint_is_the_same_for_any_number_of_threads(shard: pathlib.Path) -> None:
    def run(threads: int) -> bytes:
        fields = hr.joint(
            image=crop(hr.image("jpg")), mask=crop(hr.mask("seg.jpg", mode="L")), boxes=hr.boxes("many.json", extra="label")
        )
        out = b""
        for batch in batches(shard, fields, threads):
            out += batch["image"].tobytes() + batch["mask"].tobytes() + b"".join(b.tobytes() for b in batch["boxes"])
        return out

    assert run(1) == run(2) == run(7)


def test_pictures_of_another_size_do_not_join(shard: pathlib.Path) -> None:
    fields = hr.joint(image=crop(hr.image("jpg")), mask=crop(hr.mask("small.jpg", mode="L")))
    with pytest.raises(hr.DataError, match=r"field 'mask'.*60x45, the one it is joined with 120x90"):
        batches(shard, fields)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: hr.joint(image=hr.image("jpg")), "joins a picture with"),
        (lambda: hr.joint(a=hr.boxes("boxes.json"), b=hr.points("points.json")), "joins a picture with"),
        (lambda: hr.joint(image=hr.image("jpg"), label=hr.scalar("cls")), "joins pictures, masks, boxes and points; 'label'"),
        (lambda: hr.joint(a=hr.joint(b=hr.image("jpg"), c=hr.mask("seg.jpg"))["b"], d=hr.mask("seg.jpg")), "another hr.joint"),
        (lambda: hr.boxes("boxes.json", extra=("a,b",)), "names of members"),
        (lambda: hr.mask("seg.jpg").color_jitter(0.4), "color_jitter.. would change the class numbers"),
        (lambda: hr.joint(a=hr.image("jpg").rand_augment(), m=hr.mask("seg.jpg")), "rand_augment draws whether it moves"),
    ],
)
def test_what_cannot_be_joined_is_refused(make: Any, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        make()


@pytest.mark.parametrize(
    ("field", "says"),
    [
        (hr.boxes("boxes.json", "yxyx"), "no format 'yxyx'; there are xyxy, xywh, cxcywh"),
        (hr.boxes("boxes.json", normalized=True), "normalized coordinates need the picture"),
        (hr.boxes("boxes.json", min_area=-1), "'min_area' must not be negative"),
        (hr.image("jpg", variants=0).resize((8, 8)), "'variants' is a whole number from 1 to 64"),
        (hr.image("jpg", variants=2), "variants need steps that give one size"),
    ],
)
def test_wrong_options_fail_at_construction(shard: pathlib.Path, field: hr.Field, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        hr.Loader(shard, 4, {"x": field}, output="numpy")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (b"{}", "a list of rows is wanted"),
        (b"[[1, 2, 3]]", "a row has 3 numbers, not 4"),
        (b"[[1, 2, 3, 4, 5]]", "a row has more than 4 numbers"),
        (b'[{"box": [1, 2, 3, 4]}]', "an object lacks 'bbox'"),
        (b'[[1, 2, "3", 4]]', "a number is wanted"),
        (b"[[1, 2", "not JSON"),
    ],
)
def test_rows_that_are_none_are_bad_data(tmp_path: pathlib.Path, rows: bytes, says: str) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        info = tarfile.TarInfo("a.json")
        info.size = len(rows)
        tar.addfile(info, io.BytesIO(rows))
    with pytest.raises(hr.DataError, match=says):
        hr.open(tmp_path / "b.tar", {"boxes": hr.boxes("json")})[0]


# -- variants --------------------------------------------------------------------------------------------


def test_views_are_different_crops_of_one_picture(shard: pathlib.Path) -> None:
    fields = {"x": crop(hr.image("jpg", variants=3))}
    for batch in batches(shard, fields):
        assert batch["x"].shape == (4, 3, 3, 64, 64)
        assert not np.array_equal(batch["x"][:, 0], batch["x"][:, 1])


def test_views_do_not_depend_on_threads_or_on_other_fields(shard: pathlib.Path) -> None:
    def run(threads: int, **others: hr.Field) -> bytes:
        fields = {"x": crop(hr.image("jpg", variants=2)).normalize(hr.IMAGENET), **others}
        return b"".join(b["x"].tobytes() for b in batches(shard, fields, threads))

    alone = run(1)
    assert alone == run(2) == run(7)
    # With another field of the same pictures there is one whole decode instead of a part.
    assert alone == run(2, local=hr.image("jpg", variants=6).random_resized_crop(24, scale=(0.05, 0.4)))


def test_fields_of_one_picture_are_as_if_each_were_alone(shard: pathlib.Path) -> None:
    one, other = crop(hr.image("jpg")), hr.image("jpg").resize(32).center_crop(32)
    both = batches(shard, {"one": one, "other": other})
    for a, b, c in zip(both, batches(shard, {"one": one}), batches(shard, {"other": other})):
        assert np.array_equal(a["one"], b["one"]) and np.array_equal(a["other"], c["other"])


def test_each_view_is_a_view_of_the_picture(shard: pathlib.Path) -> None:
    whole = hr.open(shard, {"x": hr.image("jpg").resize((45, 60)), "y": hr.image("jpg", variants=2).resize((45, 60))})
    for sample in whole:
        assert np.array_equal(sample["y"], np.stack([sample["x"]] * 2))
