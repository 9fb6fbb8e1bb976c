# SPDX-License-Identifier: Apache-2.0
"""Writes tar files with Python's tarfile and with WebDataset, for our reader to agree with; reads ours with both.

peer | write FOLDER | check FOLDER: see golden_script.py. Both are in the tests' own environment, so nothing is committed.

Each x.tar comes with x.members: a line per regular file as Python's tarfile reads it back, in order:
"<offset of the data> <size> <name>".  src/format/golden_test.cc reads both where HEADRACE_GOLDEN_DIR is set.
"""

import io
import pathlib
import tarfile
import tempfile
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from golden_script import agree, run, sets_in, shards_in

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def add(tar: tarfile.TarFile, name: str, data: bytes, **attributes: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in attributes.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def write_plain(path: pathlib.Path, fmt: int) -> None:
    with tarfile.open(path, "w", format=fmt) as tar:
        for i in range(100):
            add(tar, f"train/{i:06d}.jpg", bytes([i]) * (i * 37), mtime=1700000000 + i, uname="someone")
            add(tar, f"train/{i:06d}.cls", str(i % 10).encode())


def write_long_names(path: pathlib.Path, fmt: int) -> None:
    """Names just around the 100 and 155 bytes that ustar has, and beyond where the format can."""
    with tarfile.open(path, "w", format=fmt) as tar:
        for n in (90, 95, 96, 97, 100, 101, 150, 155, 200, 250):
            name = "d" * (n // 2) + "/" + "f" * (n - n // 2) + ".jpg"
            try:
                add(tar, name, name.encode())
            except ValueError:  # too long for ustar
                continue
        if fmt != tarfile.USTAR_FORMAT:
            add(tar, "x" * 600 + ".seg.png", b"six hundred")
            add(tar, "/".join(["deep" * 5] * 60) + "/leaf.json", b"{}")


def write_unicode(path: pathlib.Path, fmt: int) -> None:
    with tarfile.open(path, "w", format=fmt, encoding="utf-8") as tar:
        for name in ("Zürich.jpg", "日本語/写真.jpg", "emoji 🎉.txt", "with space/a b.cls", "tab\tname.cls"):
            add(tar, name, name.encode())


def write_mixed(path: pathlib.Path, fmt: int) -> None:
    """Folders, links, devices, empty files, members that are no samples."""
    with tarfile.open(path, "w", format=fmt) as tar:
        add(tar, "a/", b"", type=tarfile.DIRTYPE, mode=0o755)
        add(tar, "a/1.jpg", b"one")
        add(tar, "a/1.cls", b"")
        add(tar, "a/link.jpg", b"", type=tarfile.SYMTYPE, linkname="1.jpg")
        add(tar, "a/hard.jpg", b"", type=tarfile.LNKTYPE, linkname="a/1.jpg")
        add(tar, "a/fifo", b"", type=tarfile.FIFOTYPE)
        add(tar, "README", b"no extension")
        add(tar, "a/.hidden.jpg", b"hidden")
        add(tar, "a.b/2.SEG.PNG", b"x" * 512)
        add(tar, "a.b/3.jpg", b"x" * 513, type=tarfile.AREGTYPE)
        add(tar, "a.b/4.jpg", b"x" * 511, type=tarfile.CONTTYPE)


def write_global_pax(path: pathlib.Path) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "made for a test"}) as tar:
        info = tarfile.TarInfo("a.jpg")
        info.size = 3
        info.pax_headers = {"mtime": "1700000000.5", "SCHILY.xattr.user.tag": "value", "path": "renamed.jpg"}
        tar.addfile(info, io.BytesIO(b"abc"))
        add(tar, "b.jpg", b"def")


def write_huge(path: pathlib.Path, fmt: int) -> None:
    """A member above 8 GiB (base-256 or a PAX size).  The file is a hole: it takes no space."""
    size = (8 << 30) + 12345
    with open(path, "wb") as out:
        for name, n in (("small.bin", 5), ("huge.bin", size), ("after.bin", 7)):
            info = tarfile.TarInfo(name)
            info.size = n
            out.write(info.tobuf(fmt))
            out.seek((n + 511) // 512 * 512, io.SEEK_CUR)
        out.truncate(out.tell() + 1024)


def write_webdataset(path: pathlib.Path) -> None:
    try:
        import webdataset
    except ImportError:
        print("webdataset is not installed: its shard is left out")
        return
    with webdataset.TarWriter(str(path)) as writer:
        for i in range(50):
            writer.write(
                {
                    "__key__": f"sample{i:05d}",
                    "jpg": bytes([i % 256]) * 1000,
                    "cls": i % 7,
                    "json": {"i": i},
                    "txt": f"caption {i}",
                }
            )


def write_members(path: pathlib.Path) -> None:
    with tarfile.open(path) as tar, open(path.with_suffix(".members"), "w", encoding="utf-8") as out:
        for member in tar:
            if member.isreg():
                out.write(f"{member.offset_data} {member.size} {member.name}\n")


def write(folder: pathlib.Path) -> None:
    for name, fmt in FORMATS.items():
        write_plain(folder / f"plain-{name}.tar", fmt)
        write_long_names(folder / f"long-{name}.tar", fmt)
        write_unicode(folder / f"unicode-{name}.tar", fmt)
        write_mixed(folder / f"mixed-{name}.tar", fmt)
        if fmt != tarfile.USTAR_FORMAT:
            write_huge(folder / f"huge-{name}.tar", fmt)
    write_global_pax(folder / "global-pax.tar")
    write_webdataset(folder / "webdataset.tar")
    for path in sorted(folder.glob("*.tar")):
        write_members(path)
    print(f"{len(list(folder.glob('*.tar')))} tar files in {folder}")


def peer() -> str:
    try:
        return f"tarfile of Python {python_version()}, webdataset {version('webdataset')}"
    except PackageNotFoundError:
        return f"tarfile of Python {python_version()}"


def by_tarfile(paths: list[pathlib.Path]) -> list[Any]:
    out = []
    for path in paths:
        with tarfile.open(path) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None:
                    out.append({"name": member.name, "bytes": stream.read()})
    return sorted(out, key=lambda m: str(m["name"]))


def by_webdataset(paths: list[pathlib.Path]) -> list[Any]:
    import webdataset

    samples = webdataset.WebDataset([str(p) for p in paths], shardshuffle=False)
    return [{k: v for k, v in s.items() if k not in ("__url__", "__local_path__")} for s in samples]


def check(folder: pathlib.Path) -> None:
    """FOLDER/SET is what headrace packed of SET.tar: the same members, and the same samples for WebDataset."""
    with tempfile.TemporaryDirectory() as temporary:
        write(pathlib.Path(temporary))
        for packed in sets_in(folder):
            shards, source = shards_in(packed, ".tar"), pathlib.Path(temporary) / f"{packed.name}.tar"
            agree(f"{packed.name} by tarfile", by_tarfile(shards), by_tarfile([source]))
            if "webdataset" in peer():
                agree(f"{packed.name} by webdataset", by_webdataset(shards), by_webdataset([source]))


if __name__ == "__main__":
    run(peer(), write, check)
