# SPDX-License-Identifier: Apache-2.0
"""Groups of HDF5 and Zarr: as splits that are chosen by ``path#group``, or as names of fields by their path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ..errors import UsageError
from .model import listed

T = TypeVar("T")

#: What groups are called that are parts of one data set, and no fields of a sample.
SPLITS = ("train", "training", "val", "valid", "validation", "test", "testing", "dev", "eval")
#: More groups than these are samples each, or something else that is not looked at one by one.
_MOST_GROUPS = 256


def in_group(path: str, group: str, groups: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    """(prefix of its name, array) for those of a group and of the groups in it; all of the file where none is asked for.

    ``groups``: the arrays that lie in each, by its path. "/" is the root and nothing below it. Where one group alone holds
    arrays, they have their own names."""
    if not groups:
        far = "; a Zarr group on a server that lists no folders needs consolidated metadata (zarr.consolidate_metadata)"
        raise UsageError(f"{path} holds no array{far if '://' in path else ''}")
    inner = group.strip("/")
    if group and not inner:
        if "" not in groups:
            raise UsageError(f"{path} has no array in its root; it has the groups {listed(groups)}")
        return [("", a) for a in groups[""]]
    chosen = {g: arrays for g, arrays in groups.items() if not inner or g == inner or g.startswith(inner + "/")}
    if not chosen:
        raise UsageError(f"{path} has no group or array '{inner}'; it has {listed(groups)}")
    if len(chosen) > _MOST_GROUPS:
        beside = f", or {path}#/ for the arrays beside them" if "" in chosen else ""
        raise UsageError(
            f"{path} has {len(chosen)} groups ({listed(list(chosen)[:3])}, …): write {path}#GROUP for one of them, "
            f'along="group" for a sample of each{beside}'
        )
    if len(chosen) == 1:
        return [("", a) for a in next(iter(chosen.values()))]
    skip = len(inner) + 1 if inner else 0
    return [(f"{g[skip:]}/" if g[skip:] else "", a) for g, arrays in chosen.items() for a in arrays]


def which_group(path: str, names: Iterable[str]) -> str:
    """Why these arrays are not one data set, as they are several splits or groups; "" where they are one."""
    names = list(names)
    tops = list(dict.fromkeys(n.partition("/")[0] for n in names if "/" in n))
    if not tops:
        return ""
    if all(t.lower() in SPLITS for t in tops):
        beside = f"; {path}#/ are the arrays beside them" if any("/" not in n for n in names) else ""
        return f"{path} has the splits {listed(tops)}: write {path}#{tops[0]}{beside}"
    groups = list(dict.fromkeys(n.rpartition("/")[0] for n in names))
    if len(groups) > 1 and "" not in groups:
        return (
            f"{path} has several groups: write {path}#GROUP with one of {listed(groups)}, or name arrays by their path: "
            f"hr.array({names[0]!r})"
        )
    return ""
