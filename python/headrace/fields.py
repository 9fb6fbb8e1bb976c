# SPDX-License-Identifier: Apache-2.0
"""What to make of a field: ``hr.image("jpg").random_resized_crop(224).random_flip()``.

A field is a description and does nothing by itself; the engine checks it when a Loader or a
data set is made, before any data moves.
"""

from __future__ import annotations

import copy
import json
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .errors import UsageError

#: Mean and standard deviation of ImageNet's pixels (values/255), for ``normalize``.
IMAGENET: tuple[tuple[float, ...], tuple[float, ...]] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

#: Options that go without saying.
_USUAL = {"mode": "RGB", "strict": True, "views": 1, "format": "xyxy", "key": "bbox", "min_area": 1.0}

Self = TypeVar("Self", bound="Field")


class Starts:
    """A table of samples: rows of a position, and of the corner of the patch."""

    def __init__(self, table: Any) -> None:
        import numpy as np

        rows = np.asarray(table)
        if rows.dtype.kind not in "iu" or rows.ndim not in (1, 2) or rows.size == 0:
            raise UsageError(f"starts is a list of positions, or of rows (position, corner of the patch), not {table!r}")
        self.rows = np.ascontiguousarray(rows.reshape(len(rows), -1), np.int64)

    def __repr__(self) -> str:
        return f"<{len(self.rows)} starts>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Starts) and self.rows.shape == other.rows.shape and bool((self.rows == other.rows).all())

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())


class Stats(dict[str, dict[str, Any]]):
    """Statistics of variables, as ``hr.stats`` gives them."""

    def __repr__(self) -> str:
        return f"<statistics of {', '.join(self)}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON, for ``normalize(path)``."""
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self, f, indent=1)
            f.write("\n")


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
        self.pad_value: int | float = 0  # what padded values are filled up with
        self.many = False  # any number of values a sample
        self.joint = ""  # the group whose draws it shares
        self.leads = False  # the picture that the group follows
        self.functions: list[Callable[[Any], Any]] = []
        self.finish: str = what  # how values reach Python: array, text, bytes, json

    def __repr__(self) -> str:
        chain = "".join(f".{name}({', '.join(f'{k}={v!r}' for k, v in args.items())})" for name, args in self.steps)
        name = repr(self.field) if self.field else ""  # a key has none
        said = {k: v for k, v in self.options.items() if v not in (None, False, "", ()) and _USUAL.get(k) != v}
        given = {**said, **getattr(self, "windows", {})}
        if self.many:
            given["many"] = True
        words = ", ".join([*([name] if name else []), *(f"{k}={v!r}" for k, v in given.items())])
        maps = "".join(f".map({getattr(f, '__name__', repr(f))})" for f in self.functions)
        pad = f"value={self.pad_value!r}" if self.packing == "padded" and self.pad_value != 0 else ""
        return f"hr.{self.what}({words}){chain}{maps}" + (f".{self.packing}({pad})" if self.packing else "")

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
        """A batch holds a list, one value a sample: any shapes. With ``many``: a list of lists."""
        return self._with(packing="list")

    def padded(self: Self, value: float = 0) -> Self:
        """A batch holds (values filled up with ``value`` to the largest, true sizes). Not with ``many``.

        ``value`` must be a number of the field's type: ``hr.tokens("ids").cast("i64").padded(value=-100)``. One that the
        type cannot hold is a ``UsageError``; ``float("nan")`` goes with floating point."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):  # NumPy's numbers are such, too
            raise UsageError(f"field '{self.field}': padded(value={value!r}): the padding is a number")
        return self._with(packing="padded", pad_value=int(value) if isinstance(value, numbers.Integral) else float(value))

    def ragged(self: Self) -> Self:
        """A batch holds (all values one after the other, where each begins, true sizes).

        With ``many``, for values of one shape: (all values of all samples, [total, …], and where each
        sample begins, int64 [samples + 1])."""
        return self._with(packing="ragged")


class ArrayField(Field):
    """Numbers: arrays and tokens."""

    def __init__(self, what: str, field: str, **options: Any) -> None:
        super().__init__(what, field, **options)
        self.variables = [field]  # of a file of arrays
        self.windows: dict[str, Any] = {}  # what a sample takes of them

    def normalize(self, mean: Any, std: float | Sequence[float] | None = None) -> ArrayField:
        """``(value - mean) / std`` as f32. One number each, or one for each of the last axis.

        Or ``normalize(stats)``: what ``hr.stats`` gives, or the path of the JSON that ``headrace stats --to`` writes;
        each variable by its own, and each level where they are kept apart (``per="level"``)."""
        if std is None:
            from .arrays.statistics import load

            return self._step("normalize", stats=load(mean))
        return self._step("normalize", mean=mean, std=std)

    def random_flip(self, axes: int | Sequence[int] = -1, p: float = 0.5) -> ArrayField:
        """Turned round along each of ``axes`` with probability ``p``; axes count from the last, -1.

        Drawn for a sample by the axis alone: fields of one sample that flip the same axis do it together. Comes last,
        wherever it stands."""
        return self._step("random_flip", axes=axes, p=p)

    def cast(self, dtype: str) -> ArrayField:
        """To another type: ``"f32"``, ``"i64"``, … A number that an integer type cannot hold is an error."""
        return self._step("cast", dtype=dtype)


class ImageField(Field):
    """A picture. Without ``cast`` and ``layout``: u8, NCHW."""

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        filter: str = "bilinear",
    ) -> ImageField:
        """A random part of the picture, resized to ``size``; drawn as torchvision draws it.

        ``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's."""
        return self._step("random_resized_crop", size=size, scale=scale, ratio=ratio, filter=filter)

    def resize(self, size: int | Sequence[int], filter: str = "bilinear") -> ImageField:
        """``s``: the shorter side becomes s, as in torchvision. ``(h, w)``: exactly that.

        ``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's."""
        return self._step("resize", size=size, filter=filter)

    def center_crop(self, size: int | Sequence[int]) -> ImageField:
        """The middle of the picture; filled up with zeros where the picture is smaller."""
        return self._step("center_crop", size=size)

    def random_crop(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] = 0,
        padding_mode: str = "constant",
    ) -> ImageField:
        """A part of ``size`` at a random place, of the picture with ``padding`` around it.

        ``padding``, ``fill`` and ``padding_mode``: as for ``pad``. A picture that is smaller with
        its padding is an error unless ``pad_if_needed``.
        """
        return self._step(
            "random_crop", size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode
        )

    def pad(self, padding: int | Sequence[int], fill: float | Sequence[float] = 0, padding_mode: str = "constant") -> ImageField:
        """Wider and higher. ``padding``: one number for all sides, (left and right, top and bottom),
        or (left, top, right, bottom). ``fill``: a level, or one for each channel. ``padding_mode``:
        "constant", "edge", "reflect" or "symmetric"."""
        return self._step("pad", padding=padding, fill=fill, padding_mode=padding_mode)

    def random_flip(self, p: float = 0.5) -> ImageField:
        """Mirrored left-right with probability ``p``."""
        return self._step("random_flip", p=p)

    def random_vertical_flip(self, p: float = 0.5) -> ImageField:
        """Mirrored top-bottom with probability ``p``."""
        return self._step("random_vertical_flip", p=p)

    def random_rotation(
        self,
        degrees: float | Sequence[float],
        interpolation: str = "nearest",
        center: Sequence[float] | None = None,
        fill: float | Sequence[float] = 0,
    ) -> ImageField:
        """Turned counter-clockwise by an angle uniform in ``degrees``: (low, high), or v for (-v, v).

        About ``center`` (x, y) or the middle; the size stays. ``interpolation``: "nearest" or
        "bilinear". Pixels are those of torchvision's v2 functions on u8 tensors.
        """
        return self._step("random_rotation", degrees=degrees, interpolation=interpolation, center=center, fill=fill)

    def random_affine(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: float | Sequence[float] = 0,
        center: Sequence[float] | None = None,
    ) -> ImageField:
        """Turned, moved, scaled and sheared; the size stays.

        ``degrees`` as for ``random_rotation``, but clockwise; ``translate``: at most so much of the
        width and of the height; ``scale``: (low, high); ``shear``: v for (-v, v), (low, high) along x,
        or (low x, high x, low y, high y), in degrees. What is left out is left alone.
        """
        return self._step(
            "random_affine",
            degrees=degrees,
            translate=translate,
            scale=scale,
            shear=shear,
            interpolation=interpolation,
            fill=fill,
            center=center,
        )

    def color_jitter(
        self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
        p: float = 1.0,
    ) -> ImageField:
        """Brightness, contrast, saturation and hue change by random factors, in random order.

        v means factors from max(0, 1 - v) to 1 + v, for hue turns from -v to v (at most 0.5);
        (low, high) means just that. ``p``: the probability that anything happens, as
        torchvision's RandomApply gives it.
        """
        return self._step("color_jitter", brightness=brightness, contrast=contrast, saturation=saturation, hue=hue, p=p)

    def random_grayscale(self, p: float = 0.1) -> ImageField:
        """Gray with probability ``p``, in as many channels as before."""
        return self._step("random_grayscale", p=p)

    def gaussian_blur(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0), p: float = 1.0
    ) -> ImageField:
        """A Gaussian blur of ``kernel_size`` pixels (odd; one number, or across and down), its
        deviation uniform in ``sigma``. ``p``: the probability that it happens."""
        return self._step("gaussian_blur", kernel_size=kernel_size, sigma=sigma, p=p)

    def random_adjust_sharpness(self, sharpness_factor: float, p: float = 0.5) -> ImageField:
        """With probability ``p`` blurred (factor 0) or sharpened (factor above 1)."""
        return self._step("random_adjust_sharpness", sharpness_factor=sharpness_factor, p=p)

    def random_solarize(self, threshold: float, p: float = 0.5) -> ImageField:
        """With probability ``p`` levels from ``threshold`` on become 255 minus themselves."""
        return self._step("random_solarize", threshold=threshold, p=p)

    def random_posterize(self, bits: int, p: float = 0.5) -> ImageField:
        """With probability ``p`` only the first ``bits`` bits of each level stay."""
        return self._step("random_posterize", bits=bits, p=p)

    def random_autocontrast(self, p: float = 0.5) -> ImageField:
        """With probability ``p`` each colour is stretched from its darkest and lightest to 0 and 255."""
        return self._step("random_autocontrast", p=p)

    def random_equalize(self, p: float = 0.5) -> ImageField:
        """With probability ``p`` the levels of each colour become equally frequent."""
        return self._step("random_equalize", p=p)

    def random_invert(self, p: float = 0.5) -> ImageField:
        """With probability ``p`` every level becomes 255 minus itself."""
        return self._step("random_invert", p=p)

    def random_erasing(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
    ) -> ImageField:
        """With probability ``p`` a random part of the picture is covered by ``value``.

        ``value``: a level from 0 to 255, one for each channel, or ``"random"``. It stands before
        ``normalize``: where torchvision erases with 0 after it, say ``value=(124, 116, 104)``, the
        mean of ImageNet. ``"random"`` is noise that ``normalize(hr.IMAGENET)`` makes nearly normal.
        """
        return self._step("random_erasing", p=p, scale=scale, ratio=ratio, value=value)

    def rand_augment(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
    ) -> ImageField:
        """RandAugment: ``num_ops`` changes drawn out of fourteen, all of one magnitude."""
        return self._step(
            "rand_augment",
            num_ops=num_ops,
            magnitude=magnitude,
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=fill,
        )

    def trivial_augment(
        self,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
    ) -> ImageField:
        """TrivialAugment (torchvision's TrivialAugmentWide): one change of random magnitude."""
        return self._step("trivial_augment", num_magnitude_bins=num_magnitude_bins, interpolation=interpolation, fill=fill)

    def auto_augment(
        self,
        policy: str = "imagenet",
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
    ) -> ImageField:
        """AutoAugment: a pair of changes of ``policy``: "imagenet", "cifar10" or "svhn"."""
        return self._step("auto_augment", policy=policy, interpolation=interpolation, fill=fill)

    def normalize(self, mean: Any, std: Any = None) -> ImageField:
        """``(value/255 - mean) / std`` as f32; ``normalize(hr.IMAGENET)`` gives both, and so does ``normalize(stats["image"])``
        of ``stats = hr.stats("photos")``, or the path of the JSON that ``headrace stats --to`` writes."""
        if std is None and isinstance(mean, (Mapping, str, os.PathLike)):
            from .picture_stats import mean_and_std

            mean, std = mean_and_std(mean, self.field)
        elif std is None:
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
    field: str,
    *,
    mode: str = "RGB",
    fast: bool = False,
    strict: bool = True,
    orient: bool = False,
    views: int = 1,
    layout: str | None = None,
    shape: Sequence[int] | None = None,
    many: bool = False,
) -> ImageField:
    """A picture, decoded: JPEG, PNG and WebP by headrace, what else Pillow opens by Pillow, slowly.
    Or a picture as numbers: u8 arrays and ``.npy`` files of shape (h, w), (h, w, 1), (h, w, 3) or (h, w, 4).

    ``mode``: "RGB", "L" (gray) or "RGBA"; whatever is stored becomes that as Pillow's ``convert`` does it.
    "P" takes the numbers as they are stored, palette indices or gray values, and refuses colours.

    ``fast``: JPEGs may be decoded at a half, a quarter or an eighth of their size where that suffices,
    which changes pixels a little.

    ``strict``: damage that the decoder notices is an error. With ``strict=False`` a damaged JPEG or a
    PNG with a wrong checksum is taken as far as it goes, and ``loader.stats()["damaged"]`` counts it.

    ``orient``: turns the picture as its EXIF says, before all other steps. Off, as in torchvision.

    ``views``: so many differently augmented results of one decoded picture, [views,c,h,w] a sample;
    several image fields of the same stored field share one decode too.

    ``layout``: of pictures that are arrays, "HWC" or "CHW", the channels first. ``shape``: of pictures that are
    plain bytes, which they do not say themselves: ``shape=(32, 32, 3)``; -1 once, where the length tells.

    ``many``: a sample may have any number of pictures, none among them; each is a list. Random steps
    draw for each picture by itself. ``.ragged()`` makes one tensor of all of them, see there.
    """
    raw = {k: v for k, v in (("layout", layout), ("shape", shape)) if v is not None}
    out = ImageField("image", field, mode=mode, fast=fast, strict=strict, orient=orient, views=views, **raw)
    out.finish = "array"
    out.many = _flag(many)
    return out


def _flag(many: bool) -> bool:
    if not isinstance(many, bool):
        raise UsageError(f"many is True or False, not {many!r}")
    return many


def _plain(what: str, field: str, many: bool) -> Field:
    out = Field(what, field)
    out.many = _flag(many)
    return out


def scalar(field: str, dtype: str | None = None, *, many: bool = False) -> Field:
    """A number: decimal digits, a label of the index, or an array of one element.

    int64 or float64, whatever width the data hold, unless ``dtype`` says otherwise. ``many``: as for ``hr.array``.
    """
    out = Field("scalar", field, **({} if dtype is None else {"dtype": dtype}))
    out.finish = "array"
    out.many = _flag(many)
    return out


def _numbers(what: str, field: str, dtype: str | None, shape: int | Sequence[int] | None, many: bool) -> ArrayField:
    options: dict[str, Any] = {}
    if dtype is not None:
        options["dtype"] = dtype
    if shape is not None:
        options["shape"] = shape
    out = ArrayField(what, field, **options)
    out.finish = "array"
    out.many = _flag(many)
    return out


def _window_options(options: dict[str, Any]) -> dict[str, Any]:
    """Checked, without those that were not given."""
    from .checks import whole

    out: dict[str, Any] = {k: v for k, v in options.items() if v is not None and v is not False}
    for name, least in (("window", 1), ("stride", 1), ("horizon", 1), ("dilation", 1)):
        if name in out:
            out[name] = whole(out[name], name, least, 1 << 40)
    if "along" in out and not isinstance(out["along"], str):
        raise UsageError(f"along is the name of an axis, not {out['along']!r}")
    if "patch" in out:
        sizes = out["patch"] if isinstance(out["patch"], Sequence) else [out["patch"]]
        out["patch"] = tuple(whole(n, "patch", 1, 1 << 40) for n in sizes)
    if "periodic" in out:
        names = [out["periodic"]] if isinstance(out["periodic"], str) else out["periodic"]
        if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
            raise UsageError(f"periodic is the name of an axis or a list of names, not {out['periodic']!r}")
        out["periodic"] = tuple(names)
    if "sel" in out and not isinstance(out["sel"], dict):
        raise UsageError(f"sel is a dict of axes and values, not {out['sel']!r}")
    if "starts" in out:
        out["starts"] = Starts(out["starts"])
    if "foreground" in out and not isinstance(out["foreground"], str):
        raise UsageError(f"foreground is the name of the label, not {out['foreground']!r}")
    if ("foreground" in out) != ("share" in out):
        raise UsageError("foreground and share go together: foreground='y', share=0.4")
    if "share" in out and not (isinstance(out["share"], (int, float)) and 0 < out["share"] <= 1):
        raise UsageError(f"share is a number above 0, at most 1, not {out['share']!r}")
    if out.get("tiled") not in (None, True):
        raise UsageError(f"tiled is True or False, not {out['tiled']!r}")
    if out.get("tiled") and "patch" not in out:
        raise UsageError("tiled=True goes with patch=(…)")
    return out


def array(
    field: str | Sequence[str],
    *,
    dtype: str | None = None,
    shape: int | Sequence[int] | None = None,
    many: bool = False,
    along: str | None = None,
    window: int | None = None,
    stride: int | None = None,
    horizon: int | None = None,
    dilation: int | None = None,
    gaps: bool = False,
    patch: int | Sequence[int] | None = None,
    tiled: bool = False,
    periodic: str | Sequence[str] | None = None,
    sel: dict[str, Any] | None = None,
    starts: Any = None,
    foreground: str | None = None,
    share: float | None = None,
) -> ArrayField:
    """An array: of a format that has arrays, a ``.npy`` file, a number, or bytes that hold elements.

    ``dtype``: "u8", "i8", … "u64", "i64", "f16", "bf16", "f32", "f64". Of bytes it says what they hold,
    little-endian; of all others what they become, as ``cast`` does. ``shape``: what values are brought into,
    the last axis fastest; -1 once, where the length tells. ``hr.array("emb", dtype="f32", shape=(512,))``.

    Arrays of one shape are dense in a batch, [n, …]; where the data say that the shape varies, a list.
    The shape of ``.npy`` values is the first sample's, which is looked at when the Loader is made; a sample
    of another shape is then an error, unless ``.list()``, ``.padded()`` or ``.ragged()`` is asked for.

    ``many``: a sample may have any number of values, none among them; each sample is a list of them.

    Of files of arrays (HDF5, NetCDF-4, Zarr, npy; docs/arrays.md), a sample is a position ``along`` an axis, the first
    unless given. ``window``: so many steps from there on; without it one, and no axis for it. ``horizon``: so many
    steps after them, as ``NAME_target``. ``stride``: from one sample's position to the next one's. ``dilation``: from one
    step of a window to the next. Windows do not go over a gap in the axis's times unless ``gaps=True``. ``patch``: so much of
    the last axes, from a place that is drawn; ``tiled``: side by side, each a sample. ``periodic``: the axes over whose
    end a patch may go. ``sel``: ``{"level": [500, 850]}``, values of the coordinate, or indexes where there is none;
    ``{"time": ("1990", "2000")}``, dates, both ends included. Several names: stacked on a new first axis; where some have a
    level axis and others not, each level is one. ``starts``: the samples, as a table: positions, or rows of a position
    and the corner of the patch.

    ``along="file"``: each file is one sample (npy, npz, HDF5, NetCDF, Zarr; ``case_0_x.npy`` and ``case_0_y.npy`` are ``x`` and
    ``y`` of one); ``along="group"``: each group of an HDF5 file. Extents may differ where ``patch`` cuts, and on the
    first axis. ``foreground`` and ``share``: so many of the patches, at least, hold an element of that label that is not 0,
    its classes equally often.
    """
    names = [field] if isinstance(field, str) else field
    if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"the name of a field in the data is a text like 'jpg', or a list of them, not {field!r}")
    out = _numbers("array", ",".join(names), dtype, shape, many)
    out.variables = list(names)
    out.windows = _window_options(
        {"along": along, "window": window, "stride": stride, "horizon": horizon, "patch": patch, "tiled": tiled}
        | {"dilation": dilation, "gaps": gaps or None}
        | {"periodic": periodic, "sel": sel, "starts": starts, "foreground": foreground, "share": share}
    )
    return out


class ColumnsField(ArrayField):
    """Columns of numbers, side by side."""

    columns: list[str]
    dtype: str
    missing: str | float


def columns(names: Sequence[str], *, dtype: str = "f32", missing: str | float = "error") -> ColumnsField:
    """Columns of a table (CSV, Parquet, Arrow), side by side: [n, len(names)] in a batch.

    ``dtype``: "f32", "f64" or an integer, which holds every number exactly or the sample is bad; ``normalize`` and
    ``cast`` follow as for ``hr.array``. ``missing``: what a null or an empty cell is. "error": bad data that names
    column and sample; a number: that number; "nan"; "drop": rows without a value in one of the columns are left out of
    the data set, so that ``len`` and batches do not count them. A NaN that is stored is a number, and stays.
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"columns takes a list of names of columns, not {names!r}")
    number = isinstance(missing, (int, float)) and not isinstance(missing, bool)
    if not number and missing not in ("error", "nan", "drop"):
        raise UsageError(f'missing is "error", "nan", "drop" or a number, not {missing!r}')
    if not isinstance(dtype, str):
        raise UsageError(f"dtype is a name like 'f32', not {dtype!r}")
    if missing == "nan" and dtype[:1] in "iu":
        raise UsageError(f'missing="nan" goes with "f32" or "f64"; {dtype} has no NaN')
    out = ColumnsField("array", ",".join(names))
    out.columns, out.missing, out.dtype, out.finish = list(names), missing, dtype, "array"
    return out


def text(field: str, *, many: bool = False) -> Field:
    """UTF-8 text as ``str``, a list in a batch. ``many``: as for ``hr.array``."""
    return _plain("text", field, many)


def bytes_(field: str, *, many: bool = False) -> Field:
    """The bytes as they lie, a list in a batch; ``.ragged()`` and ``.padded()`` give u8 arrays.
    Large values are a subclass of ``bytes`` in the memory that they were read into, uncopied.
    ``many``: as for ``hr.array``."""
    return _plain("bytes", field, many)


def json_(field: str, *, many: bool = False) -> Field:
    """A JSON value, parsed; a list in a batch. ``many``: as for ``hr.array``."""
    return _plain("json", field, many)


def key() -> Field:
    """The sample's key: its name in the tar or folder."""
    out = Field("key", "")
    out.finish = "text"
    return out
