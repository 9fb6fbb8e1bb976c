# SPDX-License-Identifier: Apache-2.0
"""What to make of a field: ``hr.image("jpg").random_resized_crop(224).random_flip()``.

A field is a description and does nothing by itself; the engine checks it when a Loader or a
data set is made, before any data moves.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .errors import UsageError

#: Mean and standard deviation of ImageNet's pixels (values/255), for ``normalize``.
IMAGENET: tuple[tuple[float, ...], tuple[float, ...]] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

Self = TypeVar("Self", bound="Field")


class Field:
    """One output of a batch. Methods return a new field and leave this one as it is."""

    def __init__(self, what: str, field: str, **options: Any) -> None:
        if not isinstance(field, str):
            raise UsageError(f"the name of a field in the data is a text like 'jpg', not {field!r}")
        self.what = what
        self.field = field
        self.options = options
        self.steps: list[tuple[str, dict[str, Any]]] = []
        self.packing: str | None = None
        self.joint = ""  # the group whose draws it shares
        self.leads = False  # the picture that the group follows
        self.functions: list[Callable[[Any], Any]] = []
        self.finish: str = what  # how values reach Python: array, text, bytes, json

    def __repr__(self) -> str:
        chain = "".join(f".{name}({', '.join(f'{k}={v!r}' for k, v in args.items())})" for name, args in self.steps)
        return f"hr.{self.finish}({self.field!r}){chain}" + (f".{self.packing}()" if self.packing else "")

    def _with(self: Self, **changes: Any) -> Self:
        other = copy.copy(self)
        other.steps = list(self.steps)
        other.functions = list(self.functions)
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def _step(self: Self, name: str, **params: Any) -> Self:
        if self.functions:
            raise UsageError(f"field '{self.field}': {name}() after map(): map must come last")
        other = self._with()
        other.steps.append((name, {k: v for k, v in params.items() if v is not None}))
        return other

    def map(self: Self, function: Callable[[Any], Any]) -> Self:
        """Calls ``function(value)`` for every sample: a NumPy array, a number, str or bytes.

        It runs on headrace's compute threads under the GIL, so only one at a time;
        ``loader.stats()["map"]`` says what that costs. The function is called once, on the
        first sample, when the Loader is made, to learn the shape and type of its result.
        """
        other = self._with()
        other.functions.append(function)
        return other

    def list(self: Self) -> Self:
        """A batch holds a list, one value a sample: any shapes."""
        return self._with(packing="list")

    def padded(self: Self) -> Self:
        """A batch holds (values filled up with zeros to the largest, true sizes)."""
        return self._with(packing="padded")

    def ragged(self: Self) -> Self:
        """A batch holds (all values one after the other, where each begins, true sizes)."""
        return self._with(packing="ragged")


class ImageField(Field):
    """A picture. Without ``cast`` and ``layout``: u8, NCHW."""

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        filter: str = "bilinear",
    ) -> ImageField:
        """A random part of the picture, resized to ``size``; drawn as torchvision draws it."""
        return self._step("random_resized_crop", size=size, scale=scale, ratio=ratio, filter=filter)

    def resize(self, size: int | Sequence[int], filter: str = "bilinear") -> ImageField:
        """``s``: the shorter side becomes s, as in torchvision. ``(h, w)``: exactly that."""
        return self._step("resize", size=size, filter=filter)

    def center_crop(self, size: int | Sequence[int]) -> ImageField:
        """The middle of the picture; filled up with zeros where the picture is smaller."""
        return self._step("center_crop", size=size)

    def random_flip(self, p: float = 0.5) -> ImageField:
        """Mirrored left-right with probability ``p``."""
        return self._step("random_flip", p=p)

    def normalize(self, mean: Any, std: Any = None) -> ImageField:
        """``(value/255 - mean) / std`` as f32; ``normalize(hr.IMAGENET)`` gives both."""
        if std is None:
            try:
                mean, std = mean
                len(mean), len(std)
            except (TypeError, ValueError):
                raise UsageError(
                    "normalize takes mean and std: normalize(hr.IMAGENET) or normalize(mean=(...), std=(...))"
                ) from None
        return self._step("normalize", mean=mean, std=std)

    def cast(self, dtype: str) -> ImageField:
        """``"u8"``, ``"f16"``, ``"bf16"`` or ``"f32"``; without ``normalize`` values stay 0 to 255."""
        return self._step("cast", dtype=dtype)

    def layout(self, order: str) -> ImageField:
        """``"NCHW"`` or ``"NHWC"``."""
        return self._step("layout", order=order)


def image(
    field: str, *, mode: str = "RGB", fast: bool = False, strict: bool = True, orient: bool = False, views: int = 1
) -> ImageField:
    """A picture, decoded: JPEG, PNG and WebP by headrace, what else Pillow opens by Pillow, slowly.

    ``mode``: "RGB", "L" (gray) or "RGBA"; whatever is stored becomes that as Pillow's ``convert`` does it.
    "P" takes the numbers as they are stored, palette indices or gray values, and refuses colours.

    ``fast``: JPEGs may be decoded at a half, a quarter or an eighth of their size where that suffices,
    which changes pixels a little.

    ``strict``: damage that the decoder notices is an error. With ``strict=False`` a damaged JPEG or a
    PNG with a wrong checksum is taken as far as it goes, and ``loader.stats()["damaged"]`` counts it.

    ``orient``: turns the picture as its EXIF says, before all other steps. Off, as in torchvision.

    ``views``: so many differently augmented results of one decoded picture, [views,c,h,w] a sample;
    several image fields of the same stored field share one decode too.
    """
    out = ImageField("image", field, mode=mode, fast=fast, strict=strict, orient=orient, views=views)
    out.finish = "array"
    return out


def scalar(field: str, dtype: str | None = None) -> Field:
    """A number: decimal digits or a label of the index, int64 unless ``dtype`` says otherwise."""
    out = Field("scalar", field, **({} if dtype is None else {"dtype": dtype}))
    out.finish = "array"
    return out


def text(field: str) -> Field:
    """UTF-8 text as ``str``, a list in a batch."""
    return Field("text", field)


def bytes_(field: str) -> Field:
    """The bytes as they lie, a list in a batch; ``.ragged()`` and ``.padded()`` give u8 arrays."""
    return Field("bytes", field)


def json_(field: str) -> Field:
    """A JSON value, parsed; a list in a batch."""
    return Field("json", field)


def key() -> Field:
    """The sample's key: its name in the tar or folder."""
    out = Field("key", "")
    out.finish = "text"
    return out
