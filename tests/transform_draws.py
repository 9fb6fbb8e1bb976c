# SPDX-License-Identifier: Apache-2.0
"""Steps that draw out of a set: all that torchvision could make of one picture, and how likely each is.

A picture that was drawn is looked for among those that our own steps make one by one, and each of these
is compared with what is exact and with what torchvision makes of the same picture.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import pathlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import torch
from headrace import photos
from PIL import Image
from pixel_reference import Answer, Pixels, sure
from support import write_tar
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from transform_cases import tensor, wanted, with_steps
from transform_changes import Change, Look, amounts, changes, jitters
from transform_rows import Measured

Path = tuple[Change, ...]  # one after another
WIDTH, HEIGHT = 40, 32


@dataclass
class Outcome:
    """Ways to one result; more than one where an amount lies on a tie."""

    chance: float  # those of all outcomes add up to 1
    paths: list[Path]
    picture: torch.Tensor | None = None  # of those without changes: copied bytes


Outcomes = list[Outcome]


@dataclass
class Row:
    step: str
    does: str
    equals: str
    field: hr.ImageField
    outcomes: Callable[[torch.Tensor], Outcomes]
    draws: int


@functools.lru_cache(maxsize=1)
def place() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    out = io.BytesIO()
    Image.fromarray(photos.make_pixels(3, (WIDTH, HEIGHT))).save(out, "JPEG", quality=95, subsampling=0)
    write_tar(pathlib.Path(folder.name) / "x.tar", [("0.jpg", out.getvalue())])
    return folder


def drawn(field: hr.ImageField, draws: int) -> list[Pixels]:
    """The same picture so many times, each with draws of its own."""
    ds = hr.open(pathlib.Path(place().name) / "x.tar")[[0] * draws]
    with hr.Loader(ds, 50, {"i": field.layout("NHWC").list()}, seed=7, shuffle=False, output="numpy") as loader:
        return [pixels.copy() for batch in loader.epoch(0) for pixels in batch["i"]]


@functools.lru_cache(maxsize=1)
def source() -> torch.Tensor:
    return tensor(drawn(hr.image("jpg"), 50)[0])


# -- the same by single steps ------------------------------------------------------------------------


@functools.cache
def ours(how: str) -> Pixels:
    """What our steps make of the picture."""
    ds = hr.open(pathlib.Path(place().name) / "x.tar", {"image": with_steps(how, hr.image("jpg")).layout("NHWC")})
    return np.asarray(ds[0]["image"]).copy()


def steps(path: Path) -> str:
    return "".join(change.how for change in path)


@functools.cache
def answer(path: Path) -> Answer:
    """Exactly, of the last change; those before it are ours, and have answers of their own."""
    return path[-1].exact(ours(steps(path[:-1]))) if path else sure(ours(""))


def measured_path(path: Path, out: Measured) -> None:
    before, after = ours(steps(path[:-1])), ours(steps(path))
    out.add(after, answer(path), wanted(path[-1].want, before))


@dataclass
class Expected:
    """What a row may draw."""

    chances: dict[bytes, float]  # by picture
    names: dict[bytes, bytes]  # of other pictures that count as one of these
    answers: dict[bytes, list[Answer]]  # by picture: what is right
    measured: Measured


@functools.lru_cache(maxsize=64)
def expected(which: int) -> Expected:
    """Of ROWS[which]."""
    out = Expected(collections.defaultdict(float), {}, collections.defaultdict(list), Measured())
    seen = set()
    for outcome in ROWS[which].outcomes(source()):
        if outcome.picture is not None:
            pixels = np.ascontiguousarray(outcome.picture.numpy().transpose(1, 2, 0))
            pictures, answers = [pixels], [sure(pixels)]
        else:
            pictures, answers = [ours(steps(path)) for path in outcome.paths], [answer(path) for path in outcome.paths]
        name = pictures[0].tobytes()
        name = out.names.get(name, name)
        out.chances[name] += outcome.chance
        out.answers[name] += answers
        for other in pictures:
            out.names.setdefault(other.tobytes(), name)
        for path in outcome.paths:
            for prefix in (path[: n + 1] for n in range(len(path))):
                if steps(prefix) not in seen:
                    seen.add(steps(prefix))
                    measured_path(prefix, out.measured)
    assert abs(sum(out.chances.values()) - 1) < 1e-9
    return out


@functools.lru_cache(maxsize=64)
def found(which: int) -> tuple[int, dict[bytes, int]]:
    """The largest difference from the nearest outcome, and how often each was drawn."""
    row = ROWS[which]
    want = expected(which)
    most = 0
    counts: collections.Counter[bytes] = collections.Counter()
    for pixels in drawn(row.field, row.draws):
        name = want.names.get(pixels.tobytes())
        if name is None:
            away = {n: min(a.difference(pixels) for a in answers) for n, answers in want.answers.items()}
            name = min(away, key=lambda n: away[n])
            most = max(most, away[name])
        counts[name] += 1
    return most, dict(counts)


def measure(row: Row) -> Measured:
    which = ROWS.index(row)
    out = expected(which).measured
    most, _ = found(which)
    return Measured(max(out.exact, most), max(out.theirs, most), max(out.pixels, 1), out.undecided)


# -- what torchvision could make ---------------------------------------------------------------------


def copied(chance: float, picture: torch.Tensor) -> Outcome:
    return Outcome(chance, [], picture)


def crops(t: torch.Tensor, size: tuple[int, int]) -> Outcomes:
    h, w = size
    places = list(itertools.product(range(t.shape[1] - h + 1), range(t.shape[2] - w + 1)))
    return [copied(1 / len(places), t[:, y : y + h, x : x + w]) for y, x in places]


def jitter_orders(t: torch.Tensor) -> Outcomes:
    return [Outcome(1 / 24, [order]) for order in itertools.permutations(jitters())]


def erased(t: torch.Tensor, side: int) -> Outcomes:
    places = list(itertools.product(range(HEIGHT - side + 1), range(WIDTH - side + 1)))
    value = torch.tensor([250.0, 3.0, 99.0])[:, None, None]
    out = [copied(0.75 / len(places), F.erase(t, y, x, side, side, value)) for y, x in places]
    return [copied(0.25, t), *out]


def one_change(augment: Any, name: str, bin: Iterable[int], bins: int, look: Look) -> Outcomes:
    """A change of torchvision's own table, at each of these bins, to either side."""
    of_bins, signed = amounts(augment, name, bins, look)
    chosen = [0.0] if of_bins is None else [of_bins[b] for b in bin]
    sides = (1, -1) if signed else (1,)
    chance = 1 / len(chosen) / len(sides)
    return [Outcome(chance, [(c,) for c in changes(name, m * side, look)]) for m in chosen for side in sides]


def any_change(augment: Any, bin: Iterable[int], bins: int, look: Look) -> Outcomes:
    names = list(augment._AUGMENTATION_SPACE)
    each = [(name, one_change(augment, name, list(bin), bins, look)) for name in names]
    return [Outcome(o.chance / len(names), o.paths) for _, outcomes in each for o in outcomes]


def then(one: Outcomes, other: Outcomes) -> Outcomes:
    return [Outcome(a.chance * b.chance, [p + q for p in a.paths for q in b.paths]) for a, b in itertools.product(one, other)]


def randaugment(t: torch.Tensor, magnitude: int, ops: int = 1, **options: Any) -> Outcomes:
    each = any_change(v2.RandAugment(ops, magnitude), [magnitude], 31, Look(WIDTH, HEIGHT, **options))
    return functools.reduce(then, [each] * ops)


def autoaugment(t: torch.Tensor, policy: v2.AutoAugmentPolicy) -> Outcomes:
    augment = v2.AutoAugment(policy)
    look = Look(WIDTH, HEIGHT)
    all_of_them: Outcomes = []
    for pair in augment._policies:
        out = [Outcome(1 / len(augment._policies), [()])]
        for name, chance, bin in pair:
            made = one_change(augment, name, [bin or 0], 10, look)
            out = [Outcome(o.chance * (1 - chance), o.paths) for o in out] + then(
                out, [Outcome(o.chance * chance, o.paths) for o in made]
            )
        all_of_them += out
    return all_of_them


def image() -> hr.ImageField:
    return hr.image("jpg")


def row(
    step: str,
    does: str,
    equals: str,
    field: hr.ImageField,
    outcomes: Callable[..., Outcomes],
    draws: int,
    *args: Any,
    **options: Any,
) -> Row:
    return Row(step, does, equals, field, lambda t: outcomes(t, *args, **options), draws)


ROWS = [
    row("random_crop", "at every place", "`F.crop`", image().random_crop((27, 36)), crops, 1000, (27, 36)),
    Row(
        "random_crop",
        "with padding, at every place",
        "`F.pad` (reflect), then `F.crop`",
        image().random_crop((32, 38), padding=(3, 2), padding_mode="reflect"),
        lambda t: crops(F.pad(t, [3, 2], padding_mode="reflect"), (32, 38)),
        1000,
    ),
    Row(
        "random_crop",
        "larger than the picture",
        "`v2.RandomCrop(pad_if_needed=True)`",
        image().random_crop((34, 38), pad_if_needed=True, fill=77),
        lambda t: crops(F.pad(t, [0, 2], fill=77), (34, 38)),
        600,
    ),
    row(
        "color_jitter",
        "all four, in each order",
        "the four functions in that order",
        image().color_jitter((1.2187, 1.2187), (0.6113, 0.6113), (1.4771, 1.4771), (0.2339, 0.2339)),
        jitter_orders,
        1000,
    ),
    row(
        "random_erasing",
        "a part covered",
        "`F.erase`",
        image().random_erasing(p=0.75, scale=(0.61, 0.61), ratio=(1, 1), value=(250, 3, 99)),
        erased,
        1500,
        28,
    ),
    *(
        row("rand_augment", f"one change, magnitude {m}", "`v2.RandAugment`", image().rand_augment(1, m), randaugment, 800, m)
        for m in (0, 9, 30)
    ),
    row(
        "rand_augment",
        "one change, bilinear, filled",
        "`v2.RandAugment`",
        image().rand_augment(1, 17, interpolation="bilinear", fill=128),
        randaugment,
        800,
        17,
        interpolation="bilinear",
        fill=128,
    ),
    row("rand_augment", "two changes, as by default", "`v2.RandAugment()`", image().rand_augment(), randaugment, 1500, 9, 2),
    Row(
        "trivial_augment",
        "each change at each magnitude",
        "`v2.TrivialAugmentWide()`",
        image().trivial_augment(),
        lambda t: any_change(v2.TrivialAugmentWide(), range(31), 31, Look(WIDTH, HEIGHT)),
        4000,
    ),
    *(
        row(
            "auto_augment",
            f"all pairs of {p.value}",
            f"`v2.AutoAugment({p})`",
            image().auto_augment(p.value),
            autoaugment,
            1500,
            p,
        )
        for p in v2.AutoAugmentPolicy
    ),
]
