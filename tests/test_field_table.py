# SPDX-License-Identifier: Apache-2.0
"""Parameters and defaults are said once, in the engine; Python's methods and functions say the same."""

from __future__ import annotations

import inspect
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from headrace import _core
from headrace.dtypes import NAMES
from support import Data

STEPS = {name: parameters for name, _, parameters in _core.steps()}
# What every field has, and what Python itself makes something of.
COMMON = {"field", "self", "many", "default", "optional"}


def plain(value: Any) -> Any:
    """As the engine has it: a number alone is a list of one, None an empty one."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [float(v) for v in value]
    return [float(value)] if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def said(parameters: list[Any]) -> dict[str, Any]:
    return {name: None if default is None else plain(default) for name, _, default, _ in parameters}


def of_signature(function: Any, without: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    parameters = inspect.signature(function).parameters.values()
    return {p.name: None if p.default is p.empty else plain(p.default) for p in parameters if p.name not in without}


@pytest.mark.parametrize("name", [n for n in STEPS if n != "normalize"])
def test_methods_have_the_parameters_and_defaults_of_the_engine(name: str) -> None:
    assert of_signature(getattr(hr.ImageField, name), {"self"}) == said(STEPS[name])


def test_normalize_by_hand_has_the_names_of_the_engine() -> None:
    for method, known in (
        (hr.ImageField.normalize, STEPS["normalize"]),
        (hr.ArrayField.normalize, _core.array_step("normalize")),
    ):
        assert set(of_signature(method, {"self"})) == {name for name, *_ in known} - {"repeat"}


@pytest.mark.parametrize("step", ["random_flip", "cast"])
def test_steps_of_arrays_have_the_defaults_of_the_engine(step: str) -> None:
    mine, engine = of_signature(getattr(hr.ArrayField, step), {"self"}), said(_core.array_step(step))
    assert set(mine) == set(engine)
    for name, default in engine.items():
        assert default is None or mine[name] == default, name


@pytest.mark.parametrize(
    ("what", "function", "left_out"),
    # max_pixels and defer are the engine's own; layout and shape are left out by None.
    [
        ("image", hr.image, {"max_pixels", "defer", "layout", "shape"}),
        ("boxes", hr.boxes, {"extra"}),
        ("points", hr.points, {"extra"}),
    ],
)
def test_options_of_fields_have_the_defaults_of_the_engine(what: str, function: Any, left_out: set[str]) -> None:
    engine, mine = said(_core.field_options(what)), of_signature(function, COMMON)
    assert set(mine) - set(engine) == set() and set(engine) - set(mine) <= left_out
    assert {n: v for n, v in mine.items() if n not in left_out} == {n: v for n, v in engine.items() if n not in left_out}


def test_a_step_without_parameters_does_what_its_defaults_do(data: Data) -> None:
    """The engine's own defaults, as C++ programs get them, and Python's."""
    needed = {"size": 16, "padding": 2, "degrees": 20.0, "kernel_size": 3, "sharpness_factor": 2.0, "threshold": 100.0, "bits": 4}
    for name, parameters in STEPS.items():
        if name in ("normalize", "cast", "layout"):
            continue
        must = {p: needed[p] for p, _, default, _ in parameters if default is None}
        base = hr.image("jpg").resize((32, 32))
        bare = base._step(name, **must)
        ours = getattr(base, name)(**must)
        a, b = (hr.open(data.tar, {"x": f})[3]["x"] for f in (bare, ours))
        assert np.array_equal(a, b), name


def test_random_horizontal_flip_is_random_flip(data: Data) -> None:
    base = hr.image("jpg").resize((16, 16))
    one, two = hr.open(data.tar, {"x": base.random_flip(0.4)}), hr.open(data.tar, {"x": base.random_horizontal_flip(0.4)})
    assert all(np.array_equal(one[i]["x"], two[i]["x"]) for i in range(20))
    assert isinstance(hr.mask("png").random_horizontal_flip(), hr.MaskField)


@pytest.mark.parametrize("ours", sorted(set(NAMES.values()) - {"bf16", "u16", "u32", "u64"}))
def test_types_by_any_name(data: Data, ours: str) -> None:
    name = next(n for n, o in NAMES.items() if o == ours)
    for given in (name, getattr(np, name), np.dtype(name), getattr(torch, name)):
        assert hr.scalar("cls", given).options == {"dtype": ours}
        assert hr.array("x", dtype=given).options == {"dtype": ours}
        assert hr.array("x").cast(given).steps == [("cast", {"dtype": ours})]
        assert hr.tokens(seq_len=4, dtype=given, stored=given).stored == ours
        assert hr.columns(["a"], dtype=given).dtype == ours
    if ours != "f16":  # no digits are read as these
        assert hr.open(data.tar, {"y": hr.scalar("cls", name)})[0]["y"] == data.samples[0].label


def test_pictures_are_cast_by_any_name(data: Data) -> None:
    for given in ("float32", np.float32, torch.float32, "f32"):
        picture = hr.open(data.tar, {"x": hr.image("jpg").resize((4, 4)).cast(given)})[0]["x"]
        assert picture.dtype == np.float32
    assert hr.image("jpg").cast(torch.bfloat16).steps == [("cast", {"dtype": "bf16"})]


@pytest.mark.parametrize(
    ("given", "says"), [(float, "no one width"), (np.complex64, "no such type"), (3.5, "or a type of NumPy's")]
)
def test_types_that_are_none(given: Any, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        hr.scalar("cls", given)
