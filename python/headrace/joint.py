# SPDX-License-Identifier: Apache-2.0
"""Fields that go together: masks, boxes and points follow the picture they belong to."""

from __future__ import annotations

from typing import Any

from .errors import UsageError
from .fields import Field, ImageField

# Steps that change where pixels are and nothing else, or how they are stored.
_OF_MASKS = {
    "random_resized_crop", "resize", "center_crop", "random_crop", "pad", "random_flip", "random_vertical_flip",
    "random_rotation", "random_affine", "cast", "layout",
}  # fmt: skip
# Steps that draw whether they move pixels or change colours: no other picture could follow.
_DRAWN_KINDS = {"rand_augment", "trivial_augment", "auto_augment"}


class MaskField(ImageField):
    """A picture of class numbers: resampled to the nearest pixel, never blended."""

    def _step(self, name: str, **params: Any) -> MaskField:
        if name not in _OF_MASKS:
            raise UsageError(f"field '{self.field}': {name}() would change the class numbers of a mask; hr.image takes it")
        for choice in ("filter", "interpolation"):
            if choice in params:
                params[choice] = "nearest"
        return super()._step(name, **params)


def mask(field: str, *, mode: str = "P", default: Any = None, optional: bool = False) -> MaskField:
    """A mask: one u8 class number a pixel, u8[1,h,w]. Its steps take the nearest pixel.

    ``mode="P"``: the numbers as they are stored, which are a palette's indices where there is one
    (Pascal VOC, ADE20K); a picture of colours is refused. Other modes as for ``hr.image``.

    ``default``: the class number of every pixel where a sample has no mask (255, which losses ignore), or a u8 array [h, w];
    ``optional``: as for ``hr.scalar``.
    """
    return MaskField("image", field, mode=mode)._as("array", False, default, optional)


def boxes(
    field: str,
    format: str = "xyxy",
    *,
    extra: str | tuple[str, ...] = (),
    key: str = "bbox",
    normalized: bool = False,
    min_area: float = 1.0,
    min_visible: float = 0.0,
    default: Any = None,
    optional: bool = False,
) -> Field:
    """Boxes in a JSON or array field, as f32[n, 4 + extra] in pixels of the result: x0, y0, x1, y1.

    An array is [n, 4 + extra] (HDF5, Zarr, ``.npy``), or a list or lists of numbers (Parquet, Arrow). The JSON is a list of rows ``[a, b, c, d, extra...]``, or of objects whose member ``key`` holds
    the four numbers and whose members ``extra`` (``("category_id",)``) follow them. ``format``: what
    the four are, "xyxy", "xywh" (COCO) or "cxcywh"; ``normalized``: as shares of width and height.

    Within ``hr.joint`` boxes go where the picture goes; they are clipped to it, and those with less
    than ``min_area`` pixels, or less than the share ``min_visible`` of themselves, are left out.

    ``default``: the rows of samples without the field, ``[]`` for none; ``optional``: as for ``hr.scalar``, with no row.
    """
    names = (extra,) if isinstance(extra, str) else tuple(extra)
    out = Field(
        "boxes",
        field,
        format=format,
        extra=_names(names),
        key=key,
        normalized=normalized,
        min_area=float(min_area),
        min_visible=float(min_visible),
    )
    return out._as("array", False, default, optional)


def points(
    field: str,
    *,
    extra: str | tuple[str, ...] = (),
    key: str = "keypoints",
    normalized: bool = False,
    default: Any = None,
    optional: bool = False,
) -> Field:
    """Points in a JSON or array field, as f32[n, 2 + extra] in pixels of the result: x, y.

    Rows as for ``hr.boxes``, of two numbers; ``default`` and ``optional`` too. None is left out, wherever it goes.
    """
    names = (extra,) if isinstance(extra, str) else tuple(extra)
    out = Field("points", field, extra=_names(names), key=key, normalized=normalized)
    return out._as("array", False, default, optional)


def _names(names: tuple[str, ...]) -> str:
    for name in names:
        if not isinstance(name, str) or not name or "," in name:
            raise UsageError(f"extra holds the names of members, like ('category_id',), not {name!r}")
    return ",".join(names)


def joint(**fields: Field) -> dict[str, Field]:
    """Fields that share their draws: every crop, flip and rotation falls alike on all of them.

    ``fields={**hr.joint(image=hr.image("jpg").random_resized_crop(224), mask=hr.mask("png").random_resized_crop(224)),
    "label": hr.scalar("cls")}``. The first picture leads; pictures that follow must be of its size and
    go through the same steps that move pixels (colour steps may differ); boxes and points take no steps.
    """
    pictures = [name for name, field in fields.items() if isinstance(field, Field) and field.what == "image"]
    if len(fields) < 2 or not pictures:
        raise UsageError("hr.joint joins a picture with masks, boxes or points: hr.joint(image=hr.image('jpg')…, mask=…)")
    leader = pictures[0]
    group = "joint " + " ".join(sorted(fields))
    out = {}
    for name in [leader, *(n for n in fields if n != leader)]:
        field = fields[name]
        if not isinstance(field, Field) or field.what not in ("image", "boxes", "points"):
            raise UsageError(f"hr.joint joins pictures, masks, boxes and points; '{name}' is {field!r}")
        if field.joint:
            raise UsageError(f"'{name}' belongs to another hr.joint already")
        drawn = [step for step, _ in field.steps if step in _DRAWN_KINDS]
        if drawn and len(pictures) > 1:
            raise UsageError(
                f"'{name}': {drawn[0]} draws whether it moves pixels, and the other picture of the joint cannot follow; "
                "use steps that only move pixels on both, and colour steps on the image"
            )
        out[name] = field._with(joint=group, leads=name == leader)
    return out
