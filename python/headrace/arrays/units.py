# SPDX-License-Identifier: Apache-2.0
"""Units of quantities, as far as it takes to bring the files of one variable to those of the first."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

#: m, kg, s, K, mol, A, cd, rad
_BASE = ("m", "kg", "s", "K", "mol", "A", "cd", "rad")


@dataclass(frozen=True)
class Unit:
    """factor * value + offset, in base units; ``powers`` of those."""

    factor: float
    powers: tuple[int, ...]
    offset: float = 0.0


def _unit(factor: float, offset: float = 0.0, **powers: int) -> Unit:
    return Unit(factor, tuple(powers.get(name, 0) for name in _BASE), offset)


_ONE = _unit(1)
_DEGREE = _unit(math.pi / 180, rad=1)
#: Those that take prefixes ("hPa", "km").
_PREFIXED = {
    "m": _unit(1, m=1),
    "g": _unit(1e-3, kg=1),
    "s": _unit(1, s=1),
    "K": _unit(1, K=1),
    "mol": _unit(1, mol=1),
    "A": _unit(1, A=1),
    "rad": _unit(1, rad=1),
    "Pa": _unit(1, kg=1, m=-1, s=-2),
    "bar": _unit(1e5, kg=1, m=-1, s=-2),
    "N": _unit(1, kg=1, m=1, s=-2),
    "J": _unit(1, kg=1, m=2, s=-2),
    "W": _unit(1, kg=1, m=2, s=-3),
    "V": _unit(1, kg=1, m=2, s=-3, A=-1),
    "Hz": _unit(1, s=-1),
    "L": _unit(1e-3, m=3),
}
_PREFIXES = {"": 0, "n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "c": -2, "d": -1, "h": 2, "k": 3, "M": 6, "G": 9, "T": 12}
_CELSIUS = _unit(1, 273.15, K=1)
_NAMED = {
    **dict.fromkeys(("1", "", "-", "unitless", "dimensionless", "none", "fraction", "(0 - 1)", "0-1", "proportion"), _ONE),
    **{n: _unit(0.01) for n in ("%", "percent")},
    **{n: _unit(1e-6) for n in ("ppm", "ppmv")},
    **{n: _unit(1e-9) for n in ("ppb", "ppbv")},
    **{n: _unit(1, K=1) for n in ("kelvin", "kelvins", "degK", "degrees_kelvin", "degree_kelvin", "deg_K")},
    **dict.fromkeys(
        ("degC", "celsius", "°C", "℃", "degree_celsius", "degrees_celsius", "deg_C", "degree_C", "degrees_C", "C")
        + ("degrees C", "deg C", "degree Celsius", "degrees Celsius"),
        _CELSIUS,
    ),
    **{
        n: _unit(5 / 9, 459.67 * 5 / 9, K=1)
        for n in ("degF", "fahrenheit", "°F", "degree_fahrenheit", "degrees_fahrenheit", "deg_F", "degrees_F", "degree_F", "F")
    },
    **dict.fromkeys(
        ("degree", "degrees", "deg", "°", "degrees_north", "degree_north", "degrees_N", "degree_N")
        + ("degrees_east", "degree_east", "degrees_E", "degree_E"),
        _DEGREE,
    ),
    **{n: _unit(1, m=1) for n in ("meter", "meters", "metre", "metres", "gpm")},
    **{n: _unit(1e3, m=1) for n in ("kilometer", "kilometers", "kilometre")},
    **{n: _unit(1e-3, m=1) for n in ("millimeter", "millimeters", "millimetre")},
    **{n: _unit(100, kg=1, m=-1, s=-2) for n in ("mb", "millibar", "millibars")},
    **{n: _unit(1, kg=1, m=-1, s=-2) for n in ("pascal", "pascals", "Pascal")},
    **{n: _unit(101325, kg=1, m=-1, s=-2) for n in ("atm",)},
    **{n: _unit(1852 / 3600, m=1, s=-1) for n in ("knot", "knots", "kt", "kts")},
    **{n: _unit(1, s=1) for n in ("sec", "second", "seconds")},
    **{n: _unit(60, s=1) for n in ("min", "minute", "minutes")},
    **{n: _unit(3600, s=1) for n in ("h", "hr", "hour", "hours")},
    **{n: _unit(86400, s=1) for n in ("d", "day", "days")},
    **{n: _unit(1, kg=1) for n in ("kilogram", "kilograms")},
    "ft": _unit(0.3048, m=1),
    "mile": _unit(1609.344, m=1),
}
_FACTOR = re.compile(
    r"([^\s\d*/^.·+()-]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:\s*(?:\*\*|\^)\s*\(?([+-]?\d+)\)?|([+-]?\d+))?", re.IGNORECASE
)


def parse_unit(text: str) -> Unit | None:
    """None where it is not understood."""
    text = text.strip()
    for name in (text, text.lower()):
        if name in _NAMED:
            return _NAMED[name]
    factor, powers, sign, at = 1.0, [0] * len(_BASE), 1, 0
    while at < len(text):
        if text[at] in " .*·":
            at += 1
            continue
        if text[at] == "/":
            sign, at = -1, at + 1  # of what follows next
            continue
        found = _FACTOR.match(text, at)
        one = _named(found[1]) if found else None
        if found is None or one is None:
            return None
        power = sign * int(found[2] or found[3] or 1)
        factor *= one.factor**power
        powers = [p + power * q for p, q in zip(powers, one.powers)]
        sign, at = 1, found.end()
    return Unit(factor, tuple(powers)) if text else _ONE


def _named(name: str) -> Unit | None:
    try:
        return Unit(float(name), (0,) * len(_BASE))
    except ValueError:
        pass
    if name in _NAMED or name.lower() in _NAMED:
        known = _NAMED.get(name) or _NAMED[name.lower()]
        return Unit(known.factor, known.powers)  # in a product a degree is a difference
    for length in range(len(name)):
        stem = _PREFIXED.get(name[length:])
        if stem is not None and name[:length] in _PREFIXES:
            return Unit(float(stem.factor * Fraction(10) ** _PREFIXES[name[:length]]), stem.powers)
    return None


def conversion(of: str, to: str) -> tuple[float, float] | None:
    """(scale, offset) that bring a value in ``of`` to ``to``; None where these are not known to be the same quantity."""
    if of.strip() == to.strip():
        return 1.0, 0.0
    a, b = parse_unit(of), parse_unit(to)
    if a is None or b is None or a.powers != b.powers:
        return None
    scale = a.factor / b.factor
    offset = (a.offset - b.offset) / b.factor
    return (1.0 if math.isclose(scale, 1, rel_tol=1e-14) else scale), offset
