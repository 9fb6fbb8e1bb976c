# SPDX-License-Identifier: Apache-2.0
"""Times as CF has them: numbers of ``hours since 1900-01-01``, in one of its calendars; and dates as people write them.

Moments are whole nanoseconds since a day 0 of the calendar, so that nothing is lost on the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError

_SECOND = 10**9
_DAY = 86_400 * _SECOND
#: In nanoseconds; months and years have no one length, and CF advises against them.
_UNITS = {
    "nanosecond": 1,
    "ns": 1,
    "microsecond": 10**3,
    "microsec": 10**3,
    "us": 10**3,
    "millisecond": 10**6,
    "millisec": 10**6,
    "msec": 10**6,
    "ms": 10**6,
    "second": _SECOND,
    "sec": _SECOND,
    "s": _SECOND,
    "minute": 60 * _SECOND,
    "min": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "hr": 3600 * _SECOND,
    "h": 3600 * _SECOND,
    "day": _DAY,
    "d": _DAY,
}
_ALIASES = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap", "": "standard"}
_CALENDARS = ("standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day")
_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SINCE = re.compile(r"\s*(\w+)\s+(?:since|after|from|ref)\s+(.+?)\s*$", re.IGNORECASE)
_DATE = re.compile(
    r"\s*([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ]\s*(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Times:
    """How a variable counts time: value * unit + start, in nanoseconds of the calendar."""

    units: str
    calendar: str
    unit: int
    start: int

    def at(self, value: float) -> int:
        """The moment that a stored number means, to the nanosecond."""
        whole = int(value)
        return self.start + whole * self.unit + round((value - whole) * self.unit)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def times_of(attributes: Any) -> Times | None:
    """What ``units`` and ``calendar`` say; None where they speak of no time."""
    units = _text(attributes.get("units", ""))
    found = _SINCE.match(units)
    if not found:
        return None
    name = found[1].lower()
    unit = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    calendar = _text(attributes.get("calendar", "")).strip().lower()
    calendar = _ALIASES.get(calendar, calendar)
    if unit is None or calendar not in _CALENDARS:
        return None
    parsed = parse_date(found[2], calendar)
    return None if parsed is None else Times(units, calendar, unit, parsed[0])


def same_calendar(a: Times, b: Times) -> bool:
    """The two Gregorian ones are one from 1582-10-15 on."""
    if a.calendar == b.calendar:
        return True
    gregorian = ("standard", "proleptic_gregorian")
    change = _days(1582, 10, 15, "proleptic_gregorian") * _DAY
    return a.calendar in gregorian and b.calendar in gregorian and min(a.start, b.start) >= change


def parse_date(text: str, calendar: str) -> tuple[int, int] | None:
    """The first moment of what is written, and that of what comes after it: "1990" is a year. None: no date."""
    found = _DATE.match(text)
    if not found or (found[4] is None and found[8] and found[8][0] in "+-"):  # a zone goes with a time of day
        return None
    given = [int(g) if g is not None else None for g in found.groups()[:6]]
    year, month, day, hour, minute, second = (g if g is not None else (1 if i in (1, 2) else 0) for i, g in enumerate(given))
    if not (1 <= month <= 12 and 1 <= day <= _month_days(year, month, calendar) and hour <= 24 and minute < 60 and second <= 60):
        return None
    nano = int((found[7] or "0")[:9].ljust(9, "0"))
    zone = _zone(found[8])
    begin = _days(year, month, day, calendar) * _DAY + ((hour * 60 + minute) * 60 + second) * _SECOND + nano - zone
    if given[1] is None:
        end = _days(year + 1, 1, 1, calendar) * _DAY - zone
    elif given[2] is None:
        end = _days(year + month // 12, month % 12 + 1, 1, calendar) * _DAY - zone
    else:
        lengths = (_DAY, 3600 * _SECOND, 60 * _SECOND, _SECOND)
        end = begin + lengths[sum(g is not None for g in given[3:])]
    return begin, end


def _zone(text: str | None) -> int:
    if not text or not text[-1].isdigit():
        return 0
    digits = text[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return (-1 if text[0] == "-" else 1) * (hours * 60 + minutes) * 60 * _SECOND


def _leaps(year: int, month: int, calendar: str) -> bool:
    if calendar in ("noleap", "360_day"):
        return False
    if calendar == "all_leap":
        return True
    julian = calendar == "julian" or (calendar == "standard" and (year, month) < (1582, 10))
    return year % 4 == 0 and (julian or year % 100 != 0 or year % 400 == 0)


def _month_days(year: int, month: int, calendar: str) -> int:
    if calendar == "360_day":
        return 30
    return 29 if month == 2 and _leaps(year, month, calendar) else _MONTHS[month - 1]


def _days(year: int, month: int, day: int, calendar: str) -> int:
    """Of the calendar, from its own day 0 on."""
    if calendar == "360_day":
        return (year * 12 + month - 1) * 30 + day - 1
    if calendar in ("noleap", "all_leap"):
        before = sum(_MONTHS[: month - 1]) + (calendar == "all_leap" and month > 2)
        return year * (366 if calendar == "all_leap" else 365) + before + day - 1
    # March first, so that the day that some years have more is the last.
    y, m = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = 365 * y + y // 4 + (153 * m + 2) // 5 + day - 1
    if calendar == "julian" or (calendar == "standard" and (year, month, day) < (1582, 10, 15)):
        return days - 2  # so that 1582-10-04 is the day before 1582-10-15
    return days - y // 100 + y // 400


def date_text(value: Any, dim: str) -> str:
    """A date as somebody gives it: a text, or what prints as one (datetime, numpy.datetime64, cftime)."""
    if isinstance(value, str):
        return value
    if type(value).__module__.partition(".")[0] in ("datetime", "numpy", "pandas", "cftime") and not isinstance(
        value, (int, float)
    ):
        return str(value)[:29]  # nanoseconds
    raise UsageError(f"sel: '{dim}' wants dates like '1990-01-31' or numbers of its coordinate, not {value!r}")
