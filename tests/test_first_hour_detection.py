# SPDX-License-Identifier: Apache-2.0
"""COCO, YOLO and Pascal VOC: pictures with boxes and labels, categories as class names."""

from __future__ import annotations

import json
import pathlib

import headrace as hr
import numpy as np
import pytest
from test_first_hour_files import keys, picture, put

SIZES = [(40, 30), (64, 48), (50, 50)]


def coco(root: pathlib.Path) -> dict:
    images, annotations = [], []
    for i, (width, height) in enumerate(SIZES):
        put(root / "images" / f"im.{i}.jpg", picture(i, size=(width, height)))
        images.append({"id": 10 * i + 3, "file_name": f"im.{i}.jpg", "width": width, "height": height})
        for n in range(i):  # the first has none
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": 10 * i + 3,
                    "category_id": 7 if n else 2,
                    "bbox": [n + 1.5, 2, 10, 5.25],
                    "iscrowd": 0,
                }
            )
    annotations.append({"id": 99, "image_id": 3, "category_id": 2, "bbox": [0, 0, 4, 4], "iscrowd": 1})
    out = {"images": images, "annotations": annotations, "categories": [{"id": 7, "name": "dog"}, {"id": 2, "name": "cat"}]}
    put(root / "annotations" / "instances_val.json", json.dumps(out).encode())
    return out


def test_coco(tmp_path: pathlib.Path) -> None:
    theirs = coco(tmp_path)
    for source, root in (
        (tmp_path / "annotations" / "instances_val.json", tmp_path / "images"),
        (tmp_path / "annotations" / "instances_val.json", None),
    ):
        ds = hr.open(source, root=root)
        assert keys(ds) == ["im.0", "im.1", "im.2"] and ds.classes == ["cat", "dog"]
        assert ds["image_id"].tolist() == [3, 13, 23]
        for i, image in enumerate(theirs["images"]):
            mine = [a for a in theirs["annotations"] if a["image_id"] == image["id"] and not a["iscrowd"]]
            boxes = np.array([[x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in mine)], np.float32).reshape(-1, 4)
            assert np.array_equal(ds[i]["boxes"], boxes) and ds[i]["boxes"].dtype == np.float32
            assert ds[i]["labels"].tolist() == [0 if a["category_id"] == 2 else 1 for a in mine]
    assert any("1 annotations of crowds" in n for n in ds.notices)


def test_boxes_follow_the_geometry(tmp_path: pathlib.Path) -> None:
    coco(tmp_path)
    ds = hr.open(
        tmp_path / "annotations" / "instances_val.json",
        hr.joint(image=hr.image("image").resize((60, 80)), boxes=hr.boxes("boxes"), both=hr.boxes("objects", extra="label")),
    )
    plain = hr.open(tmp_path / "annotations" / "instances_val.json")
    for i, (width, height) in enumerate(SIZES):
        expected = plain[i]["boxes"] * np.array([80 / width, 60 / height] * 2, np.float32)
        got = np.asarray(ds[i]["boxes"]).reshape(-1, 4)
        assert np.allclose(got, expected, atol=1e-3)
        assert np.asarray(ds[i]["both"]).reshape(-1, 5)[:, 4].tolist() == plain[i]["labels"].tolist()


def test_coco_that_is_wrong(tmp_path: pathlib.Path) -> None:
    found = coco(tmp_path)
    path = tmp_path / "annotations" / "instances_val.json"
    with pytest.raises(hr.StorageError, match="say root="):
        put(tmp_path / "far" / "x" / "i.json", path.read_bytes())
        hr.open(tmp_path / "far" / "x" / "i.json")
    found["annotations"][0]["image_id"] = 12345
    with pytest.raises(hr.DataError, match="picture 12345"):
        hr.open(put(path, json.dumps(found).encode()))
    found["annotations"][0].update(image_id=3, category_id=1)
    with pytest.raises(hr.DataError, match="category 1"):
        hr.open(put(path, json.dumps(found).encode()))


@pytest.mark.parametrize("seed", range(4))
def test_coco_is_what_pycocotools_reads(tmp_path: pathlib.Path, seed: int) -> None:
    """Ids in any order and with holes, crowds as run lengths, categories that nobody uses, fields that others leave out."""
    theirs = pytest.importorskip("pycocotools.coco")
    rng = np.random.default_rng(seed)
    ids = rng.choice(1000, 12, replace=False).tolist()
    categories = [{"id": int(c), "name": f"c{c}", "supercategory": "s"} for c in rng.choice(90, 5, replace=False)]
    images, annotations = [], []
    for i, number in enumerate(ids):
        width, height = (int(n) for n in rng.integers(20, 60, 2))
        put(tmp_path / "images" / f"{i:012d}.jpg", picture(i, size=(width, height)))
        images.append({"id": number, "file_name": f"{i:012d}.jpg", "width": width, "height": height, "license": 1})
        for _ in range(int(rng.integers(0, 6))):
            x, y, w, h = (round(float(v), 2) for v in rng.uniform(0, 20, 4))
            crowd = bool(rng.random() < 0.2)
            one = {
                "image_id": number,
                "category_id": int(rng.choice([c["id"] for c in categories])),
                "bbox": [x, y, w, h],
                "area": w * h,
            }
            one |= {"iscrowd": 1, "segmentation": {"counts": [3, 4], "size": [height, width]}} if crowd else {"iscrowd": 0}
            if not crowd and rng.random() < 0.5:
                one["segmentation"] = [[x, y, x + w, y, x + w, y + h]]
            annotations.append(one)
    for n, k in enumerate(rng.permutation(len(annotations))):
        annotations[k]["id"] = n + 1
    annotations = [annotations[k] for k in rng.permutation(len(annotations))]
    found = {"info": {}, "licenses": [], "images": images, "annotations": annotations, "categories": categories}
    path = put(tmp_path / "annotations" / "instances_train2017.json", json.dumps(found).encode())
    coco = theirs.COCO(str(path))
    ds = hr.open(path)
    wanted = [c["name"] for c in sorted(coco.loadCats(coco.getCatIds()), key=lambda c: c["id"])]
    assert ds.classes == wanted and ds["image_id"].tolist() == list(coco.imgs)
    for sample in ds:
        mine = coco.loadAnns(coco.getAnnIds(imgIds=[int(sample["image_id"])], iscrowd=False))
        boxes = np.array([a["bbox"] for a in mine], np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        assert np.array_equal(sample["boxes"], boxes.astype(np.float32))
        assert [ds.classes[n] for n in sample["labels"]] == [coco.cats[a["category_id"]]["name"] for a in mine]


def test_coco_with_a_picture_twice(tmp_path: pathlib.Path) -> None:
    found = coco(tmp_path)
    found["images"].append({**found["images"][0], "file_name": "im.1.jpg"})
    with pytest.raises(hr.DataError, match="two pictures have the id 3"):
        hr.open(put(tmp_path / "annotations" / "instances_val.json", json.dumps(found).encode()))


def yolo(root: pathlib.Path, split: str = "") -> None:
    for i, size in enumerate(SIZES):
        put(root / "images" / split / f"im.{i}.jpg", picture(i, size=size))
        if i:
            put(root / "labels" / split / f"im.{i}.txt", "".join(f"{n} 0.5 0.25 0.2 0.1\n" for n in range(i)).encode())


def test_yolo(tmp_path: pathlib.Path) -> None:
    yolo(tmp_path / "d")
    put(tmp_path / "d" / "classes.txt", b"cat\ndog\n")
    ds = hr.open(tmp_path / "d")
    assert keys(ds) == ["im.0", "im.1", "im.2"] and ds.classes == ["cat", "dog"]
    assert ds[0]["boxes"].shape == (0, 4) and ds[2]["labels"].tolist() == [0, 1]
    assert np.allclose(ds[1]["boxes"], [[0.4 * 64, 0.2 * 48, 0.6 * 64, 0.3 * 48]])
    put(tmp_path / "d" / "labels" / "im.1.txt", b"5 0.5 0.5 0.1 0.1\n")
    with pytest.raises(hr.DataError, match="class 5"):
        hr.open(tmp_path / "d")
    put(tmp_path / "d" / "labels" / "im.1.txt", b"1 50 0.5 0.1 0.1\n")
    with pytest.raises(hr.DataError, match=r"im.1.txt: line 1"):
        hr.open(tmp_path / "d")


def test_yolo_with_splits(tmp_path: pathlib.Path) -> None:
    for split in ("train", "val"):
        yolo(tmp_path / "d", split)
    with pytest.raises(hr.UsageError, match="splits train, val"):
        hr.open(tmp_path / "d")
    assert len(hr.open(f"{tmp_path}/d#val")) == 3
    with pytest.raises(hr.UsageError, match="no split 'test'; it holds train, val"):
        hr.open(f"{tmp_path}/d#test")


def test_pascal_voc(tmp_path: pathlib.Path) -> None:
    for i, size in enumerate(SIZES):
        put(tmp_path / "JPEGImages" / f"00{i}.jpg", picture(i, size=size))
        objects = "".join(
            f"<object><name>{'dog' if n else 'cat'}</name><bndbox><xmin>{n + 1}</xmin><ymin>2</ymin><xmax>10</xmax><ymax>12</ymax></bndbox></object>"
            for n in range(i)
        )
        put(tmp_path / "Annotations" / f"00{i}.xml", f"<annotation><filename>00{i}.jpg</filename>{objects}</annotation>".encode())
    ds = hr.open(tmp_path)
    assert keys(ds) == ["000", "001", "002"] and ds.classes == ["cat", "dog"]
    assert ds[2]["boxes"].tolist() == [[0, 1, 9, 11], [1, 1, 9, 11]] and ds[2]["labels"].tolist() == [0, 1]
    with pytest.raises(hr.UsageError, match="no split 'train'; its pictures are not divided"):
        hr.open(f"{tmp_path}#train")
    for split, stems in (("train", "000\n002\n"), ("val", "001\n"), ("cat_train", "000  1\n002 -1\n")):
        put(tmp_path / "ImageSets" / "Main" / f"{split}.txt", stems.encode())
    assert keys(hr.open(f"{tmp_path}#train")) == ["000", "002"] and keys(hr.open(f"{tmp_path}#val")) == ["001"]
    with pytest.raises(hr.UsageError, match="holds the splits train, val: say which"):
        hr.open(tmp_path)
    with pytest.raises(hr.UsageError, match="no split 'test'; ImageSets/Main has train, val"):
        hr.open(f"{tmp_path}#test")
    put(tmp_path / "Annotations" / "002.xml", b"<annotation><object></annotation>")
    with pytest.raises(hr.DataError, match=r"002.xml"):
        hr.open(f"{tmp_path}#train")
    (tmp_path / "Annotations" / "002.xml").unlink()
    with pytest.raises(hr.DataError, match=r"train.txt names '002'"):
        hr.open(f"{tmp_path}#train")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bbox": ["1", "2", "3", "4"]}, "bbox .*four numbers"),
        ({"bbox": [None, 1, 2, 3]}, "bbox .*four numbers"),
        ({"bbox": [1, 2, -3, 4]}, "bbox .*four numbers"),
        ({"bbox": [float("nan"), 2, 3, 4]}, "bbox .*four numbers"),
        ({"bbox": [True, 2, 3, 4]}, "bbox .*four numbers"),
        ({"bbox": None}, "annotation 0 has no bbox"),
        ({"category_id": None}, "category None"),
        ({"image_id": "13"}, "picture '13'"),
    ],
)
def test_a_box_that_may_be_wrong_is_refused(tmp_path: pathlib.Path, change: dict, message: str) -> None:
    found = coco(tmp_path)
    found["annotations"][0].update(change)
    with pytest.raises(hr.DataError, match=message):
        hr.open(put(tmp_path / "annotations" / "instances_val.json", json.dumps(found).encode()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": None}, "'annotations' is no list"),
        ({"images": [{"id": 3}]}, "entry 0 of 'images' has no 'file_name'"),
        ({"categories": [{"name": "cat"}]}, "entry 0 of 'categories' has no 'id'"),
        ({"categories": [{"id": 2, "name": "a"}, {"id": 2, "name": "b"}, {"id": 7, "name": "c"}]}, "two categories have one id"),
    ],
)
def test_a_coco_file_that_lacks_something_says_what(tmp_path: pathlib.Path, change: dict, message: str) -> None:
    found = coco(tmp_path) | change
    with pytest.raises(hr.DataError, match=message):
        hr.open(put(tmp_path / "annotations" / "instances_val.json", json.dumps(found).encode()))


def test_boxes_without_a_width_and_beyond_the_picture_stay(tmp_path: pathlib.Path) -> None:
    found = coco(tmp_path)
    found["annotations"] = [
        {"id": n, "image_id": 3, "category_id": 2, "bbox": box} for n, box in enumerate([[1, 2, 0, 0], [30, 20, 400, 400]])
    ]
    ds = hr.open(put(tmp_path / "annotations" / "instances_val.json", json.dumps(found).encode()))
    assert ds[0]["boxes"].tolist() == [[1, 2, 1, 2], [30, 20, 430, 420]]


def test_the_folder_of_a_coco_set_is_no_class_folder(tmp_path: pathlib.Path) -> None:
    coco(tmp_path)
    with pytest.raises(hr.UsageError, match="annotations, images of a detection set"):
        hr.open(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-1 0.5 0.5 0.1 0.1", "expected"),
        ("1 0.5 0.5 0.1 0.1 0.2 0.2 0.3 1.3", "expected"),
        ("1 0.5 0.5 0.1 0.1 0.9", "expected"),
    ],
)
def test_a_line_of_yolo_that_may_be_wrong_is_refused(tmp_path: pathlib.Path, line: str, message: str) -> None:
    yolo(tmp_path / "d")
    put(tmp_path / "d" / "labels" / "im.1.txt", f"{line}\n".encode())
    with pytest.raises(hr.DataError, match=f"im.1.txt: line 1.*{message}"):
        hr.open(tmp_path / "d")


def test_yolo_as_roboflow_exports_it(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    for split in ("train", "valid"):
        for i in range(2):
            put(tmp_path / split / "images" / f"{i}.jpg", picture(i, size=(40, 30)))
            put(tmp_path / split / "labels" / f"{i}.txt", b"0 0.5 0.5 0.2 0.2\n" if i else b"")
    put(tmp_path / "data.yaml", b"train: ../train/images\nval: ../valid/images\nnc: 1\nnames: [cat]\n")
    ds = hr.open(f"{tmp_path}#valid")
    assert ds.classes == ["cat"] and [len(s["boxes"]) for s in ds] == [0, 1]


def test_polygons_of_yolo_are_the_boxes_around_them(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "images" / "a.jpg", picture(0, size=(100, 50)))
    put(tmp_path / "images" / "b.jpg", picture(1, size=(100, 50)))
    put(tmp_path / "labels" / "a.txt", b"1 0.1 0.2 0.5 0.1 0.3 0.8\n0 0.5 0.5 0.2 0.4\n")
    put(tmp_path / "labels" / "classes.txt", b"cat\ndog\n")  # where LabelImg puts it
    ds = hr.open(tmp_path)
    np.testing.assert_allclose(ds[0]["boxes"], [[10, 5, 50, 40], [40, 15, 60, 35]], rtol=1e-6)
    assert ds[0]["labels"].tolist() == [1, 0] and ds.classes == ["cat", "dog"]
    assert any("1 polygons are taken as the boxes around them" in n for n in ds.notices)
    assert ds[1]["boxes"].shape == (0, 4)


def xml(name: str, box: tuple[int, int, int, int]) -> bytes:
    corners = "".join(f"<{n}>{v}</{n}>" for n, v in zip(("xmin", "ymin", "xmax", "ymax"), box))
    return f"<annotation><filename>{name}</filename><object><name>mask</name><bndbox>{corners}</bndbox></object></annotation>".encode()


def test_xml_in_images_and_annotations_as_on_kaggle(tmp_path: pathlib.Path) -> None:
    for i in range(2):
        put(tmp_path / "d" / "images" / f"{i}.png", picture(i, "PNG"))
        put(tmp_path / "d" / "annotations" / f"{i}.xml", xml(f"{i}.jpg", (1, 2, 5 + i, 6)))  # the names are out of date
    ds = hr.open(tmp_path / "d")
    assert keys(ds) == ["0", "1"] and ds.classes == ["mask"]
    assert ds[1]["boxes"].tolist() == [[0, 1, 5, 5]] and ds[1]["png"] == picture(1, "PNG")
    (tmp_path / "d" / "images" / "1.png").unlink()
    with pytest.raises(hr.Error, match=r"'1\.jpg', which is not in images"):
        hr.open(tmp_path / "d")


def test_voc_further_down_names_the_folder(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages" / "0.jpg", picture(0))
    put(tmp_path / "VOCdevkit" / "VOC2007" / "Annotations" / "0.xml", xml("0.jpg", (1, 1, 2, 2)))
    with pytest.raises(hr.UsageError, match=r"open '.*VOCdevkit/VOC2007'"):
        hr.open(tmp_path)


@pytest.mark.parametrize("names", [("images", "masks"), ("Image", "Mask"), ("input", "target")])
def test_pictures_and_what_belongs_to_them_are_no_classes(tmp_path: pathlib.Path, names: tuple[str, str]) -> None:
    for name in names:
        for i in range(2):
            put(tmp_path / name / f"{i}.png", picture(i, "PNG"))
    with pytest.raises(hr.UsageError, match="which are no classes; join them: ") as e:
        hr.open(tmp_path)
    joined = eval(str(e.value).partition("join them: ")[2], {"hr": hr})  # what the message says to type
    assert len(joined) == 2 and joined[1][f"{names[1]}.png"] == picture(1, "PNG")


def test_one_class_with_folders_below_is_said(tmp_path: pathlib.Path) -> None:
    for name in ("cat", "dog"):
        put(tmp_path / "dataset" / name / "1.jpg", picture(0))
    ds = hr.open(tmp_path)
    assert ds.classes == ["dataset"]
    (notice,) = ds.notices
    assert "all samples are of one class, 'dataset', whose folder holds cat, dog" in notice
    assert hr.open(tmp_path / "dataset").classes == ["cat", "dog"] and not hr.open(tmp_path / "dataset").notices
