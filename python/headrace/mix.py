# SPDX-License-Identifier: Apache-2.0
"""mixup and cutmix: samples of a batch are mixed with their neighbours, labels with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from . import _core, checks
from .errors import UsageError
from .fields import Field


@dataclasses.dataclass(frozen=True)
class Mix:
    """What ``hr.mixup`` and ``hr.cutmix`` give, for ``hr.Loader(..., mix=...)``."""

    name: str
    alpha: float
    classes: int
    p: float
    image: str
    label: str


def mixup(alpha: float = 1.0, *, classes: int, p: float = 1.0, image: str = "image", label: str = "label") -> Mix:
    """Each picture is blended with the one before it in the batch, by a share drawn from Beta(alpha, alpha).

    Labels become f32[batch, classes]: the shares. ``p``: the share of batches that are mixed. As torchvision's MixUp.
    """
    return Mix("mixup", checks.real(alpha, "alpha"), checks.whole(classes, "classes", 1), checks.real(p, "p"), image, label)


def cutmix(alpha: float = 1.0, *, classes: int, p: float = 1.0, image: str = "image", label: str = "label") -> Mix:
    """A box of each picture comes from the one before it in the batch; its area is drawn from Beta(alpha, alpha).

    Labels become f32[batch, classes]: the shares. ``p``: the share of batches that are mixed. As torchvision's CutMix.
    """
    return Mix("cutmix", checks.real(alpha, "alpha"), checks.whole(classes, "classes", 1), checks.real(p, "p"), image, label)


def mix_options(mix: Mix | Sequence[Mix], fields: Mapping[str, Field] | None) -> _core.MixOptions:
    """As the engine takes them."""
    kinds = [mix] if isinstance(mix, Mix) else list(mix) if isinstance(mix, Sequence) else [mix]
    if not kinds or not all(isinstance(k, Mix) for k in kinds):
        raise UsageError(f"mix is hr.mixup(...), hr.cutmix(...) or a list of them, not {mix!r}")
    first = kinds[0]
    if len({(k.classes, k.image, k.label) for k in kinds}) > 1:
        raise UsageError("mix: all entries must name the same classes, image and label")
    picture = (fields or {}).get(first.image)
    order = [step for step in picture.steps if step[0] == "layout"] if picture is not None else []
    return _core.MixOptions(
        kinds=[(k.name, k.alpha, k.p) for k in kinds],
        image=first.image,
        label=first.label,
        classes=first.classes,
        channels_last=bool(order) and order[-1][1].get("order") == "NHWC",
    )
