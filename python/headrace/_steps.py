# SPDX-License-Identifier: Apache-2.0
"""The steps of pictures. Made by ./dev docs from the engine's table (src/transform): change them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .field import Field, Self


class ImageSteps(Field):
    """What follows ``hr.image``: each method returns a new field with one step more."""

    def random_resized_crop(
        self: Self,
        size: int | Sequence[int],
        scale: float | Sequence[float] | None = (0.08, 1),
        ratio: float | Sequence[float] | None = (3 / 4, 4 / 3),
        filter: str = "bilinear",
    ) -> Self:
        """A random part of the picture, resized to ``size``; drawn as torchvision draws it.

        ``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's.
        """
        return self._step("random_resized_crop", size=size, scale=scale, ratio=ratio, filter=filter)

    def resize(self: Self, size: int | Sequence[int], filter: str = "bilinear") -> Self:
        """``s``: the shorter side becomes s, as in torchvision. ``(h, w)``: exactly that.

        ``filter``: "nearest", "bilinear", "bicubic" or "lanczos", antialiased as Pillow's.
        """
        return self._step("resize", size=size, filter=filter)

    def center_crop(self: Self, size: int | Sequence[int]) -> Self:
        """The middle of the picture; filled up with zeros where the picture is smaller."""
        return self._step("center_crop", size=size)

    def random_crop(
        self: Self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = 0,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] | None = 0,
        padding_mode: str = "constant",
    ) -> Self:
        """A part of ``size`` at a random place, of the picture with ``padding`` around it.

        ``padding``, ``fill`` and ``padding_mode``: as for ``pad``. A picture that is smaller with
        its padding is an error unless ``pad_if_needed``.
        """
        return self._step(
            "random_crop", size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode
        )

    def pad(
        self: Self, padding: int | Sequence[int], fill: float | Sequence[float] | None = 0, padding_mode: str = "constant"
    ) -> Self:
        """Wider and higher. ``padding``: one number for all sides, (left and right, top and bottom),
        or (left, top, right, bottom). ``fill``: a level, or one for each channel. ``padding_mode``:
        "constant", "edge", "reflect" or "symmetric".
        """
        return self._step("pad", padding=padding, fill=fill, padding_mode=padding_mode)

    def random_flip(self: Self, p: float = 0.5) -> Self:
        """Mirrored left-right with probability ``p``."""
        return self._step("random_flip", p=p)

    def random_vertical_flip(self: Self, p: float = 0.5) -> Self:
        """Mirrored top-bottom with probability ``p``."""
        return self._step("random_vertical_flip", p=p)

    def random_rotation(
        self: Self,
        degrees: float | Sequence[float],
        interpolation: str = "nearest",
        center: float | Sequence[float] | None = None,
        fill: float | Sequence[float] | None = 0,
    ) -> Self:
        """Turned counter-clockwise by an angle uniform in ``degrees``: (low, high), or v for (-v, v).

        About ``center`` (x, y) or the middle; the size stays. ``interpolation``: "nearest" or
        "bilinear". Pixels are those of torchvision's v2 functions on u8 tensors.
        """
        return self._step("random_rotation", degrees=degrees, interpolation=interpolation, center=center, fill=fill)

    def random_affine(
        self: Self,
        degrees: float | Sequence[float],
        translate: float | Sequence[float] | None = (0, 0),
        scale: float | Sequence[float] | None = (1, 1),
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = 0,
        center: float | Sequence[float] | None = None,
    ) -> Self:
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
        self: Self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
        p: float = 1,
    ) -> Self:
        """Brightness, contrast, saturation and hue change by random factors, in random order.

        v means factors from max(0, 1 - v) to 1 + v, for hue turns from -v to v (at most 0.5);
        (low, high) means just that. ``p``: the probability that anything happens, as
        torchvision's RandomApply gives it.
        """
        return self._step("color_jitter", brightness=brightness, contrast=contrast, saturation=saturation, hue=hue, p=p)

    def random_grayscale(self: Self, p: float = 0.1) -> Self:
        """Gray with probability ``p``, in as many channels as before."""
        return self._step("random_grayscale", p=p)

    def gaussian_blur(
        self: Self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = (0.1, 2), p: float = 1
    ) -> Self:
        """A Gaussian blur of ``kernel_size`` pixels (odd; one number, or across and down), its
        deviation uniform in ``sigma``. ``p``: the probability that it happens.
        """
        return self._step("gaussian_blur", kernel_size=kernel_size, sigma=sigma, p=p)

    def random_adjust_sharpness(self: Self, sharpness_factor: float | Sequence[float], p: float = 0.5) -> Self:
        """With probability ``p`` blurred (factor 0) or sharpened (factor above 1)."""
        return self._step("random_adjust_sharpness", sharpness_factor=sharpness_factor, p=p)

    def random_solarize(self: Self, threshold: float | Sequence[float], p: float = 0.5) -> Self:
        """With probability ``p`` levels from ``threshold`` on become 255 minus themselves."""
        return self._step("random_solarize", threshold=threshold, p=p)

    def random_posterize(self: Self, bits: int | Sequence[int], p: float = 0.5) -> Self:
        """With probability ``p`` only the first ``bits`` bits of each level stay."""
        return self._step("random_posterize", bits=bits, p=p)

    def random_autocontrast(self: Self, p: float = 0.5) -> Self:
        """With probability ``p`` each colour is stretched from its darkest and lightest to 0 and 255."""
        return self._step("random_autocontrast", p=p)

    def random_equalize(self: Self, p: float = 0.5) -> Self:
        """With probability ``p`` the levels of each colour become equally frequent."""
        return self._step("random_equalize", p=p)

    def random_invert(self: Self, p: float = 0.5) -> Self:
        """With probability ``p`` every level becomes 255 minus itself."""
        return self._step("random_invert", p=p)

    def random_erasing(
        self: Self,
        p: float = 0.5,
        scale: float | Sequence[float] | None = (0.02, 0.33),
        ratio: float | Sequence[float] | None = (0.3, 3.3),
        value: float | Sequence[float] | str | None = 0,
    ) -> Self:
        """With probability ``p`` a random part of the picture is covered by ``value``.

        ``value``: a level from 0 to 255, one for each channel, or ``"random"``. It stands before
        ``normalize``: where torchvision erases with 0 after it, say ``value=(124, 116, 104)``, the
        mean of ImageNet. ``"random"`` is noise that ``normalize(hr.IMAGENET)`` makes nearly normal.
        """
        return self._step("random_erasing", p=p, scale=scale, ratio=ratio, value=value)

    def rand_augment(
        self: Self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
    ) -> Self:
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
        self: Self, num_magnitude_bins: int = 31, interpolation: str = "nearest", fill: float | Sequence[float] | None = None
    ) -> Self:
        """TrivialAugment (torchvision's TrivialAugmentWide): one change of random magnitude."""
        return self._step("trivial_augment", num_magnitude_bins=num_magnitude_bins, interpolation=interpolation, fill=fill)

    def auto_augment(
        self: Self, policy: str = "imagenet", interpolation: str = "nearest", fill: float | Sequence[float] | None = None
    ) -> Self:
        """AutoAugment: a pair of changes of ``policy``: "imagenet", "cifar10" or "svhn"."""
        return self._step("auto_augment", policy=policy, interpolation=interpolation, fill=fill)

    def cast(self: Self, dtype: Any) -> Self:
        """``"u8"``, ``"f16"``, ``"bf16"`` or ``"f32"``; without ``normalize`` values stay 0 to 255."""
        return self._step("cast", dtype=dtype)

    def layout(self: Self, order: str) -> Self:
        """``"NCHW"`` or ``"NHWC"``."""
        return self._step("layout", order=order)
