# SPDX-License-Identifier: Apache-2.0
"""Detection sets: pictures with ``boxes`` and ``labels``, any number a sample. COCO's JSON, YOLO's texts, Pascal VOC's XML.

Boxes are x1, y1, x2, y2 in pixels, float32, from the picture's upper left corner; labels count the classes from 0.
``objects`` holds both as JSON, so that ``hr.boxes("objects", extra="label")`` keeps a label with its box where geometry
leaves boxes out.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from .errors import DataError, NotFound, UsageError
from .made import Made, is_picture, keys_of

_IMAGES = ("images", "labels")


def _made(files: list[str], boxes: Sequence[Any], labels: Sequence[Any], classes: list[str]) -> Made:
    made = Made("files", keys_of(files))
    made.add_files(list(files))
    made.add_arrays("boxes", [np.asarray(b, np.float32).reshape(-1, 4) for b in boxes], (None, 4))
    made.add_arrays("labels", [np.asarray(n, np.int64).reshape(-1) for n in labels], (None,))
    rows = [[{"bbox": list(map(float, b)), "label": int(n)} for b, n in zip(*each)] for each in zip(boxes, labels)]
    made._add("objects", "json", values=[json.dumps(row).encode() for row in rows])
    made.classes = classes
    return made


def _size(path: str) -> tuple[int, int]:
    with open(path, "rb") as f:
        head = f.read(1 << 16)
        try:
            return _core.image_size(head)
        except DataError:
            return _core.image_size(head + f.read())


# -- COCO ------------------------------------------------------------------------------------------


def _coco_json(path: str) -> dict[str, Any] | None:
    with open(path, "rb") as f:
        head = f.read(1)
        if head != b"{":
            return None
        try:
            found = json.loads(head + f.read())
        except ValueError:
            return None  # JSON lines, or no JSON: the formats say what is wrong
    is_coco = isinstance(found, dict) and isinstance(found.get("images"), list) and "annotations" in found
    return found if is_coco else None


def _check_members(path: str, found: dict[str, Any], name: str, members: Sequence[str]) -> None:
    rows = found.setdefault(name, [])
    if not isinstance(rows, list):
        raise DataError(f"{path}: '{name}' is no list; is this a file of COCO?")
    for n, row in enumerate(rows):
        lacks = [m for m in members if not isinstance(row, dict) or m not in row]
        if lacks:
            raise DataError(f"{path}: entry {n} of '{name}' has no '{lacks[0]}'")


def _is_box(box: Any) -> bool:
    """Four numbers, the last two no less than 0; some real boxes have no width."""
    if not isinstance(box, list) or len(box) != 4:
        return False
    return all(type(v) in (int, float) and math.isfinite(v) for v in box) and box[2] >= 0 and box[3] >= 0


def _coco_root(path: str, root: str | None, first: str) -> str:
    if root:
        return root
    here = os.path.dirname(path)
    near = [here, os.path.join(here, "images"), os.path.dirname(here), os.path.join(os.path.dirname(here), "images")]
    split = os.path.splitext(os.path.basename(path))[0].rpartition("_")[2]
    near += [os.path.join(os.path.dirname(here), split), os.path.join(here, split)]
    for folder in near:
        if os.path.isfile(os.path.join(folder, first)):
            return folder
    raise NotFound(
        f"{path}: the first picture that it names, '{first}', is in none of {', '.join(near)}; say root=FOLDER, the folder of the pictures"
    )


def coco(path: str, root: str | None) -> _core.Source | None:
    """One JSON for all pictures: images, annotations, categories. Crowds are left out, as torchvision's users do."""
    found = _coco_json(path)
    if found is None:
        return None
    _check_members(path, found, "images", ("id", "file_name"))
    _check_members(path, found, "annotations", ("image_id",))
    _check_members(path, found, "categories", ("id", "name"))
    categories = sorted(found["categories"], key=lambda c: c["id"])
    number = {c["id"]: n for n, c in enumerate(categories)}
    if len(number) < len(categories):
        raise DataError(f"{path}: two categories have one id; give each category an id of its own")
    images = found["images"]
    if not images:
        raise DataError(f"{path}: it names no picture")
    boxes: dict[Any, list[Any]] = {image["id"]: [] for image in images}
    if len(boxes) < len(images):
        ids = [image["id"] for image in images]
        twice = next(i for i in ids if ids.count(i) > 1)
        raise DataError(
            f"{path}: two pictures have the id {twice!r}, so their boxes cannot be told apart; give each picture an id of its own"
        )
    labels: dict[Any, list[int]] = {image["id"]: [] for image in images}
    crowds = 0
    for n, a in enumerate(found["annotations"]):
        image, box, category = a.get("image_id"), a.get("bbox"), a.get("category_id")
        if image not in boxes:
            raise DataError(
                f"{path}: annotation {n} is of picture {image!r}, which is not in 'images'; remove the annotation or add the picture"
            )
        if a.get("iscrowd"):
            crowds += 1
            continue
        if box is None:
            raise DataError(
                f"{path}: annotation {n} has no bbox; captions and masks alone are not read: open a file of instances"
            )
        if category not in number:
            raise DataError(f"{path}: annotation {n} has category {category!r}, which is not in 'categories'")
        if not _is_box(box):
            raise DataError(f"{path}: annotation {n} has the bbox {box!r}; [x, y, width, height] is expected, four numbers")
        boxes[image].append((box[0], box[1], box[0] + box[2], box[1] + box[3]))
        labels[image].append(number[category])
    files = [str(image["file_name"]) for image in images]
    made = _made(files, list(boxes.values()), list(labels.values()), [str(c["name"]) for c in categories])
    made.add_values("image_id", [image["id"] for image in images])
    if crowds:
        made.notices.append(f"{path}: {crowds} annotations of crowds (iscrowd=1) are left out")
    return made.source(_coco_root(os.path.abspath(path), root, files[0]))


# -- YOLO ------------------------------------------------------------------------------------------


def _below(folder: str) -> list[str]:
    out = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        out += [os.path.relpath(os.path.join(at, f), folder) for f in sorted(files) if not f.startswith(".")]
    return out


def _yolo_names(path: str) -> list[str]:
    for name in ("data.yaml", "dataset.yaml", "data.yml"):
        file = os.path.join(path, name)
        if os.path.isfile(file):
            try:
                import yaml
            except ImportError:
                raise UsageError(f"{file} names the classes; reading it needs PyYAML (pip install pyyaml)") from None
            with open(file, encoding="utf-8") as f:
                names = (yaml.safe_load(f) or {}).get("names") or []
            return [str(names[k]) for k in sorted(names)] if isinstance(names, dict) else [str(n) for n in names]
    for file in (os.path.join(path, "classes.txt"), os.path.join(path, "labels", "classes.txt")):  # the second is LabelImg's
        if os.path.isfile(file):
            with open(file, encoding="utf-8") as f:
                return [line.strip() for line in f if line.strip()]
    return []


def _yolo_boxes(path: str, width: int, height: int) -> tuple[list[Any], list[int], int]:
    """Boxes, labels, and how many of the boxes are around polygons ('class x y x y x y …'), as Ultralytics takes them."""
    boxes, labels, polygons = [], [], 0
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            cells = line.split()
            if not cells:
                continue
            try:
                label, values = int(cells[0]), [float(c) for c in cells[1:]]
            except ValueError:
                raise DataError(f"{path}: line {number}: 'class x y width height' is expected, not {line.strip()!r}") from None
            is_polygon = len(values) >= 6 and len(values) % 2 == 0
            if not (len(values) == 4 or is_polygon) or label < 0 or not all(0 <= v <= 1 for v in values):
                raise DataError(
                    f"{path}: line {number}: 'class x y width height' is expected (or a polygon, 'class x y x y x y …'), "
                    f"all but the class between 0 and 1, not {line.strip()!r}"
                )
            if is_polygon:
                xs, ys = values[::2], values[1::2]
                boxes.append((min(xs) * width, min(ys) * height, max(xs) * width, max(ys) * height))
                polygons += 1
            else:
                x, y, w, h = values
                boxes.append(((x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height))
            labels.append(label)
    return boxes, labels, polygons


def _yolo_folders(path: str, part: str) -> tuple[str, str, str] | None:
    """(root with the names, pictures, labels): images/ and labels/, both with or both without splits; or split/images."""
    images, labels = (os.path.join(path, n) for n in _IMAGES)
    if os.path.isdir(images) and os.path.isdir(labels):
        splits = [n for n in sorted(os.listdir(images)) if os.path.isdir(os.path.join(images, n)) and _core.is_split(n)]
        if part and part in splits:
            return path, os.path.join(images, part), os.path.join(labels, part)
        if part:
            known = f"it holds {', '.join(splits)}" if splits else "its pictures are not divided"
            raise UsageError(f"{path} has no split '{part}'; {known}")
        if splits and len(splits) == len([n for n in os.listdir(images) if not n.startswith(".")]):
            raise UsageError(f"{path} holds the splits {', '.join(splits)}: say which, as in '{path}#{splits[0]}'")
        root = path if _yolo_names(path) else os.path.dirname(path)
        return root, images, labels
    return None


def yolo(path: str, part: str) -> _core.Source | None:
    """``images/`` beside ``labels/``: a text a picture, of lines 'class x y width height' in shares of the picture."""
    folders = _yolo_folders(path, part)
    if folders is None:
        return None
    root, images, labels = folders
    files = [f for f in _below(images) if is_picture(f)]
    texts = {os.path.splitext(f)[0] for f in _below(labels) if f.lower().endswith(".txt") and f != "classes.txt"}
    stems = {os.path.splitext(f)[0] for f in files}
    if not files or not texts & stems:
        return None
    lonely = sorted(texts - stems)
    if lonely:
        raise DataError(f"{labels}: '{lonely[0]}.txt' has no picture in {images}; remove the text or add the picture")
    all_boxes, all_labels, polygons = [], [], 0
    for file in files:
        text = os.path.join(labels, os.path.splitext(file)[0] + ".txt")
        if os.path.isfile(text):
            found = _yolo_boxes(text, *_size(os.path.join(images, file)))
        else:
            found = ([], [], 0)  # a picture without objects
        all_boxes.append(found[0])
        all_labels.append(found[1])
        polygons += found[2]
    classes = _yolo_names(root)
    most = max((n for each in all_labels for n in each), default=-1)
    if classes and most >= len(classes):
        raise DataError(
            f"{labels}: there is a box of class {most}, but {root} names only {len(classes)} classes (0 to {len(classes) - 1})"
        )
    made = _made(files, all_boxes, all_labels, classes)
    if polygons:
        made.notices.append(f"{labels}: {polygons} polygons are taken as the boxes around them; masks are not read")
    return made.source(images)


# -- Pascal VOC ------------------------------------------------------------------------------------


def _voc_listed(path: str, part: str) -> set[str] | None:
    """The stems that ``ImageSets/Main/PART.txt`` lists; None where nothing divides the pictures."""
    folder = os.path.join(path, "ImageSets", "Main")
    found = os.listdir(folder) if os.path.isdir(folder) else []
    splits = sorted(n[:-4] for n in found if n.endswith(".txt") and "_" not in n)  # cat_train.txt is of one class
    if part not in splits:
        if part:
            known = f"ImageSets/Main has {', '.join(splits)}" if splits else "its pictures are not divided"
            raise UsageError(f"{path} has no split '{part}'; {known}")
        if len(splits) > 1:
            raise UsageError(f"{path} holds the splits {', '.join(splits)}: say which, as in '{path}#{splits[0]}'")
        return None
    with open(os.path.join(folder, f"{part}.txt"), encoding="utf-8") as f:
        return {line.split()[0] for line in f if line.strip()}


def _voc_picture(root: str, text: str, named: str) -> str:
    """The picture that an XML names; where that is not there, the one with the name of the XML."""
    if os.path.isfile(os.path.join(root, named)):
        return named
    stem = os.path.splitext(text)[0]
    others = (stem + e for e in (".jpg", ".png", ".jpeg", ".JPG", ".PNG", ".JPEG"))
    return next((f for f in others if os.path.isfile(os.path.join(root, f))), named)


def voc(path: str, names: Sequence[str], part: str) -> _core.Source | None:
    """``JPEGImages/`` beside ``Annotations/``, or ``images/`` beside ``annotations/``: an XML a picture. Pixels count from 1
    there, from 0 here."""
    pairs = [p for p in (("JPEGImages", "Annotations"), ("images", "annotations")) if set(p) <= set(names)]
    texts = [f for f in _below(os.path.join(path, pairs[0][1])) if f.lower().endswith(".xml")] if pairs else []
    if not texts:
        return None
    import xml.etree.ElementTree as ET

    pictures, annotations = pairs[0]
    root = os.path.join(path, pictures)
    listed = _voc_listed(path, part)
    if listed is not None:
        texts = [f for f in texts if os.path.splitext(f)[0] in listed]
        if len(texts) < len(listed):
            lacks = sorted(listed - {os.path.splitext(f)[0] for f in texts})
            raise DataError(f"{path}/ImageSets/Main/{part}.txt names '{lacks[0]}', which has no XML in {annotations}")
    files, objects = [], []
    for text in texts:
        where = os.path.join(path, annotations, text)
        try:
            tree = ET.parse(where).getroot()
            files.append(_voc_picture(root, text, tree.findtext("filename") or os.path.splitext(text)[0] + ".jpg"))
            found = []
            for o in tree.iter("object"):
                corners = [float(o.find("bndbox").findtext(n)) - 1 for n in ("xmin", "ymin", "xmax", "ymax")]  # type: ignore[union-attr,arg-type]
                found.append((str(o.findtext("name")), corners))
        except (ET.ParseError, AttributeError, TypeError, ValueError) as e:
            raise DataError(f"{where}: no annotation of Pascal VOC: {e}") from None
        objects.append(found)
    for file in files:
        if not os.path.isfile(os.path.join(root, file)):
            raise NotFound(f"{path}: an annotation names '{file}', which is not in {pictures}; add the picture or remove its XML")
    classes = sorted({name for found in objects for name, _ in found})
    number = {name: n for n, name in enumerate(classes)}
    boxes = [[corners for _, corners in found] for found in objects]
    return _made(files, boxes, [[number[name] for name, _ in found] for found in objects], classes).source(root)
