# SPDX-License-Identifier: Apache-2.0

"""Bad input: a clear error each.  The cases below are docs/errors.md.

python tests/test_bad_input.py --write       after a message or a case has changed
"""

from __future__ import annotations

import base64
import bz2
import io
import os
import pathlib
import pickle
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import ranks
from support import run_python

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/errors.md"

# 16 x 12 pixels, the same bytes whatever made the other pictures.
JPEG = base64.b85decode(
    "|JeWF01!$>Nk#wx0RR9200961|JwjV02B@n5)Ta&5)cv>6%-gAG9exu93DL^E+jHZKuk+VKt@GST61DhRc%&9Mr4R(ZFhTtf`Lw8jhBplmUDiAeE-`3Lje^R"
    "7akfOJ0T%Ed{ahKe0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0+R-e0=}F01*fP3;+-V0U`hb5di}c0sq7R6aWDL00000000000"
    "0000000I5!~hx)00RI60RR91000000000000SWc1TkU%!~him0RaF20000000000000000t5fV02dJe0|5X40000000000000000t5m7+5ij#0RRFK0}%i}02"
    "LY@2%|%gMG3+|6ekG)ucYLykN?>"
)
IMAGE = {"image": hr.image("jpg").resize((8, 8))}


class Place:
    """A folder with good data in it, and ways to make bad data beside it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        for c in "ab":
            (root / f"photos/{c}").mkdir(parents=True)
            for i in range(4):
                (root / f"photos/{c}/{c}{i}.jpg").write_bytes(JPEG)
        self.tar("train-0.tar", [(f"a{i}.jpg", JPEG) for i in range(4)])
        self.tar("train-1.tar", [(f"b{i}.jpg", JPEG) for i in range(4)])

    def __getitem__(self, name: str) -> pathlib.Path:
        return self.root / name

    def tar(self, name: str, members: list[tuple[str, bytes]]) -> pathlib.Path:
        with tarfile.open(self[name], "w", format=tarfile.USTAR_FORMAT) as tar:
            for key, value in members:
                info = tarfile.TarInfo(key)
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
        return self[name]

    def write(self, name: str, value: bytes) -> pathlib.Path:
        self[name].parent.mkdir(parents=True, exist_ok=True)
        self[name].write_bytes(value)
        return self[name]

    def change(self, name: str, change: Callable[[bytearray], Any], to: str) -> pathlib.Path:
        value = bytearray(self[name].read_bytes())
        cut = change(value)
        return self.write(to, cut if isinstance(cut, (bytes, bytearray)) else bytes(value))

    def loader(self, **options: Any) -> hr.Loader:
        return hr.Loader(self["photos"], **{"batch_size": 2, "fields": IMAGE, "output": "numpy", **options})

    def sample(self, name: str, value: bytes, field: hr.Field) -> Any:
        """The second of two samples, whose value is bad."""
        good = JPEG if name == "jpg" else {"cls": b"1", "txt": b"text", "json": b"{}"}[name]
        return hr.open(self.tar("x.tar", [(f"k0.{name}", good), (f"k1.{name}", value)]), {"x": field})[1]

    def state(self, **changes: Any) -> Any:
        with self.loader() as loader:
            return loader.load_state_dict({**loader.state_dict(), **changes})


@dataclass(frozen=True)
class Case:
    what: str  # you did
    error: type[BaseException]
    run: Callable[[Place], Any]
    remedy: str
    waits_for: str = ""  # a fix: the message is not what it should be yet


class Code:
    """Executes when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/headrace-was-here",)


def set_byte(at: int, value: int) -> Callable[[bytearray], None]:
    def change(b: bytearray) -> None:
        b[at] = value

    return change


def flip_last(b: bytearray) -> None:
    b[-1] ^= 1


def sparse(p: Place) -> pathlib.Path:
    path = p.tar("x.tar", [("a.jpg", JPEG)])
    block = bytearray(path.read_bytes()[:512])
    block[156] = ord("S")
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return p.change("x.tar", lambda b: b.__setitem__(slice(0, 512), block), "x.tar")


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def bomb() -> bytes:
    """65,500 x 65,500 pixels are declared."""
    at = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:at] + b"\xff\xdc\xff\xdc" + JPEG[at + 4 :]


def image(p: Place, make: Callable[[hr.ImageField], hr.ImageField]) -> Any:
    return p.loader(fields={"image": make(hr.image("jpg"))})


def many_shards(p: Place) -> Any:
    p["many"].mkdir()
    one = p["train-0.tar"].read_bytes()
    for i in range(1001):
        p.write(f"many/{i:04d}.tar", one)
    return hr.open(p["many"])


def all_bad(p: Place, policy: Any, good: int = 0) -> Any:
    p.tar("x.tar", [(f"k{i}.jpg", JPEG if i < good else JPEG[:200]) for i in range(6)])
    with hr.Loader(p["x.tar"], 2, IMAGE, shuffle=False, threads=1, output="numpy", bad_samples=policy) as loader:
        return list(loader.epoch(0))


def use_closed(p: Place) -> Any:
    loader = p.loader()
    loader.close()
    return loader.epoch(0)


def old_epoch(p: Place) -> Any:
    with p.loader() as loader:
        old = loader.epoch(0)
        loader.epoch(1)
        return next(old)


def other_epoch(p: Place) -> Any:
    with p.loader() as loader:
        next(loader.epoch(2))
        loader.load_state_dict(loader.state_dict())
        return loader.epoch(5)


def other_data(p: Place) -> Any:
    with hr.Loader(p["train-0.tar"], 2, IMAGE, output="numpy") as one, p.loader() as other:
        return other.load_state_dict(one.state_dict())


def index_of_other(p: Place) -> Any:
    hr.build_index(p["train-0.tar"], p["index"])
    return hr.open(p["train-1.tar"], index=p["index"])


def damaged_index(p: Place) -> Any:
    hr.build_index(p["train-0.tar"], p["index"])
    manifest = next(f for f in sorted(p["index"].iterdir()) if "manifest" in f.name)
    p.change(f"index/{manifest.name}", flip_last, f"index/{manifest.name}")
    return hr.open(p["train-0.tar"], index=p["index"])


def in_a_fork(p: Place) -> Any:
    """In a process of its own: this one may have threads of other libraries."""
    code = """
import os, sys, headrace as hr
loader = hr.Loader(sys.argv[1], 2, {"jpg": hr.bytes("jpg")}, output="numpy")
it = loader.epoch(0)
next(it)
if os.fork() == 0:
    try: next(it)
    except hr.UsageError as e: print(e, end="", flush=True)
    os._exit(0)
os.wait()
"""
    raise hr.UsageError(run_python(code, str(p["photos"])).stdout)


def shrink(p: Place) -> Any:
    ds = hr.open(p["train-0.tar"])
    os.truncate(p["train-0.tar"], 600)
    return ds[2]


def vanish(p: Place) -> Any:
    ds = hr.open(p["photos"])
    p["photos/a/a2.jpg"].unlink()
    return ds[2]


def map_of(function: Callable[[Any], Any], p: Place) -> Any:
    with p.loader(fields={"x": hr.scalar("cls").map(function)}, shuffle=False) as loader:
        return list(loader.epoch(0))


def batch_map(p: Place) -> Any:
    with p.loader() as loader:
        return next(iter(loader.map(lambda b: 7)))  # type: ignore[arg-type, return-value]


USAGE, DATA, STORAGE, UNSUPPORTED = hr.UsageError, hr.DataError, hr.StorageError, hr.Unsupported

CASES: dict[str, list[Case]] = {
    "Finding the data": [
        Case("a path where nothing is", STORAGE, lambda p: hr.open(p["missing.tar"]), "correct the path; it is also a `FileNotFoundError`"),
        Case("a glob that matches nothing", STORAGE, lambda p: hr.open(p["val-*.tar"]), "correct the pattern"),
        Case("a range of shards of which one is missing", STORAGE, lambda p: hr.open(p["train-{0..2}.tar"]), "fetch the shard, or name the range that is there"),
        Case("a brace that is not closed", USAGE, lambda p: hr.open(p["train-{0..1.tar"]), "close it; in a shell, quote the pattern"),
        Case("an empty list", USAGE, lambda p: hr.open([]), "name something"),
        Case("something that is no path", USAGE, lambda p: hr.open(7), "give a path, a list, a data set or a blend"),
        Case("an empty folder", DATA, lambda p: (p["empty"].mkdir(), hr.open(p["empty"])), "put data there, or name another folder"),
        Case("class folders without a file", DATA, lambda p: (p["empty/a"].mkdir(parents=True), hr.open(p["empty"])), "put pictures there"),
        Case("files without an extension", DATA, lambda p: hr.open(p.write("odd/picture", JPEG).parent), "give them one, or list them in a text file"),
        Case("a file of no known format", USAGE, lambda p: hr.open(p.write("x.bin", b"\0\1\2\3" * 300)), "`headrace formats` lists what is read"),
        Case("a tar in bzip2", UNSUPPORTED, lambda p: hr.open(p.write("x.tar.bz2", bz2.compress(p["train-0.tar"].read_bytes()))), "unpack it; gzip, zstd and xz are read"),
        Case("shards of two formats", USAGE, lambda p: hr.open([p["train-0.tar"], p["photos"]]), "open them apart, and blend them"),
        Case("more than 1,000 shards without an index", USAGE, many_shards, "run the command that is named, once"),
        Case('`in_memory="pixels"`', USAGE, lambda p: hr.open(p["photos"], in_memory="pixels"), "say True to hold files, 'decoded' to hold pixels"),
    ],
    "Indexes": [
        Case("an index place that cannot be written", STORAGE, lambda p: hr.build_index(p["train-0.tar"], p.write("file", b"").parent / "file/index"), "name a folder that can be made and written"),
        Case("`index=` where there is no index", STORAGE, lambda p: hr.open(p["train-0.tar"], index=p["nowhere"]), "build it: `headrace index SRC --to URL`"),
        Case("`index=` of other data", USAGE, index_of_other, "build one of this data"),
        Case("a damaged index", DATA, damaged_index, "build it again"),
        Case("`index=7`", USAGE, lambda p: hr.open(p["train-0.tar"], index=7), "give a path"),
    ],
    "Tar shards": [
        Case("a shard of 0 bytes", DATA, lambda p: hr.open(p.write("x.tar", b"")), "fetch it again"),
        Case("a shard that was cut inside a member", DATA, lambda p: hr.open(p.change("train-0.tar", lambda b: b[:1700], "x.tar")), "fetch it again"),
        Case("a shard that was cut between members", DATA, lambda p: hr.open(p.change("train-0.tar", lambda b: b[:2048], "x.tar")), "fetch it again"),
        Case("a shard with a damaged header", DATA, lambda p: hr.open(p.change("train-0.tar", set_byte(1024 + 3, 7), "x.tar")), "fetch it again"),
        Case("two shards joined into one file", DATA, lambda p: hr.open(p.write("x.tar", p["train-0.tar"].read_bytes() * 2)), "keep them apart"),
        Case("a shard with an end mark and nothing else", DATA, lambda p: hr.open(p.tar("x.tar", [])), "pack it again; beside shards with samples it counts 0"),
        Case("a shard that holds no `key.extension`", DATA, lambda p: hr.open(p.tar("x.tar", [("README", b"text")])), "name the members `key.extension`"),
        Case("one field twice in a sample", DATA, lambda p: hr.open(p.tar("x.tar", [("a.jpg", JPEG), ("a.JPG", JPEG)])), "rename one"),
        Case("a key that comes again later", DATA, lambda p: hr.open(p.tar("x.tar", [("a.jpg", JPEG), ("b.jpg", JPEG), ("a.cls", b"1")])), "put the members of a sample together: `tar --sort=name`"),
        Case("a sparse member", UNSUPPORTED, lambda p: hr.open(sparse(p)), "write the shard without `--sparse`"),
        Case("a shard that shrank after it was opened", DATA, shrink, "do not write to data in use"),
    ],
    "NumPy's files and pickled arrays": [
        Case("an .npz with an object array", UNSUPPORTED, lambda p: hr.open(p.write("x.npz", npz(x=np.array([{}, 1], dtype=object)))), "save numbers or text"),
        Case("an .npz that was cut", DATA, lambda p: hr.open(p.write("x.npz", npz(x=np.arange(9))[:-9])), "fetch it again"),
        Case("`#rows` of arrays of several lengths", USAGE, lambda p: hr.open(str(p.write("x.npz", npz(x=np.arange(9), y=np.arange(8)))) + "#rows"), "leave `#rows` away: one sample"),
        Case("a pickled object array", UNSUPPORTED, lambda p: hr.open(p.write("x.pkl", pickle.dumps({"x": np.array([{}, 1], dtype=object)}, 4))), "save numbers or text"),
        Case("pickled arrays with code among them", DATA, lambda p: hr.open(p.write("x.pkl", pickle.dumps({"x": np.arange(3), "y": Code()}, 4))), "save arrays and lists only"),
    ],
    "Records, tables and images": [
        Case("an .arrow that is none", DATA, lambda p: hr.open(p.write("x.arrow", b"something else entirely")), "give the right file"),
        Case("a Parquet file that was cut", DATA, lambda p: hr.open(p.write("x.parquet", b"PAR1" + bytes(40))), "fetch it again"),
        Case("a RecordIO file that is none", DATA, lambda p: hr.open(p.write("x.rec", b"something else entirely")), "give the right file"),
        Case("a SquashFS image that is none", DATA, lambda p: hr.open(p.write("x.sqfs", b"something else".ljust(96))), "give the right file"),
        Case("an LMDB file that is none", DATA, lambda p: hr.open(p.write("x.lmdb", bytes(8192))), "give the right file"),
        Case("a .beton of another version", UNSUPPORTED, lambda p: hr.open(p.write("x.beton", b"\x03" + bytes(99))), "write it with FFCV 1.0"),
        Case("a TFRecord with a flipped bit", DATA, lambda p: hr.open(p.write("x.tfrecord", b"\x05" + bytes(40))), "fetch it again"),
        Case("a part of a format without parts", USAGE, lambda p: hr.open(f"{p['train-0.tar']}#train"), "leave the part away"),
        Case("a part that is no way to read an .npz", USAGE, lambda p: hr.open(str(p.write("x.npz", npz(x=np.arange(9)))) + "#row"), "say one that is named"),
    ],
    "Lists and pickles": [
        Case("a list whose files are elsewhere", STORAGE, lambda p: hr.open(p.write("list.txt", b"a/a0.jpg 0\n")), "`root=` says what paths are relative to"),
        Case("labels in some lines only", DATA, lambda p: hr.open(p.write("photos/l.txt", b"a/a0.jpg 0\na/a1.jpg\n")), "label all or none"),
        Case("a CSV row of another width", DATA, lambda p: hr.open(p.write("photos/l.csv", b"path,cls\na/a0.jpg,0\na/a1.jpg,0,1\n")), "mend the row"),
        Case("a CSV quote that is not closed", DATA, lambda p: hr.open(p.write("photos/l.csv", b'path,t\na/a0.jpg,"text\n')), "close it"),
        Case("a CSV with a name twice", DATA, lambda p: hr.open(p.write("photos/l.csv", b"path,a,a\na/a0.jpg,1,2\n")), "rename a column"),
        Case("JSON lines that do not parse", DATA, lambda p: hr.open(p.write("photos/l.jsonl", b'{"path": "a/a0.jpg"}\n{"path": \n')), "mend the line"),
        Case("a pickle with code in it", DATA, lambda p: hr.open(p.write("photos/l.pkl", pickle.dumps({"a/a0.jpg": Code()}))), "nothing was executed; write plain dicts, lists, numbers and text"),
        Case("a pickle of NumPy labels", DATA, lambda p: hr.open(p.write("photos/l.pkl", pickle.dumps({"a/a0.jpg": np.int64(3)}, 4))), "`{path: int(label)}`"),
        Case("a pickle that was cut", DATA, lambda p: hr.open(p.write("photos/l.pkl", pickle.dumps({"a/a0.jpg": 1}, 4)[:-9])), "write it again"),
        Case("a pickle of something else", DATA, lambda p: hr.open(p.write("photos/l.pkl", pickle.dumps(7))), "a dict path → label, or a list of pairs"),
        Case("an empty list file", DATA, lambda p: hr.open(p.write("photos/l.txt", b"")), "list something"),
    ],
    "Samples": [
        Case("a JPEG that was cut", DATA, lambda p: p.sample("jpg", JPEG[:250], IMAGE["image"]), 'replace the file, or `bad_samples="replace"`'),
        Case("a JPEG damaged inside", DATA, lambda p: p.sample("jpg", JPEG[:300] + b"\xff\xd9" + JPEG[302:], IMAGE["image"]), 'replace the file, or `bad_samples="replace"`'),
        Case("a file that is no picture", DATA, lambda p: p.sample("jpg", b"<html>", IMAGE["image"]), "replace the file"),
        Case("a file of 0 bytes", DATA, lambda p: p.sample("jpg", b"", IMAGE["image"]), "replace the file"),
        Case("a picture of four thousand million pixels", DATA, lambda p: p.sample("jpg", bomb(), IMAGE["image"]), "nothing was allocated; replace the file"),
        Case("a label that is no number", DATA, lambda p: p.sample("cls", b"cat", hr.scalar("cls")), "`hr.text`, and `.map` to a number"),
        Case("a label too large for its type", DATA, lambda p: p.sample("cls", b"300", hr.scalar("cls", dtype="u8")), "ask for a larger `dtype`"),
        Case("text that is no UTF-8", DATA, lambda p: p.sample("txt", b"caf\xe9", hr.text("txt")), "`hr.bytes`, and `.map(lambda b: b.decode('latin-1'))`"),
        Case("JSON that does not parse", DATA, lambda p: p.sample("json", b'{"a": ', hr.json("json")), "mend the member"),
        Case("a sample without the field", DATA, lambda p: hr.open(p.tar("x.tar", [("k0.jpg", JPEG), ("k0.cls", b"1"), ("k1.jpg", JPEG)]), {"x": hr.scalar("cls")})[1], "`default=` or `optional=True`; or pack again"),
        Case("a file that vanished after it was opened", STORAGE, vanish, "do not delete data in use"),
        Case("more bad samples than allowed", DATA, lambda p: all_bad(p, 0, good=5), "mend the data (`loader.quarantine` lists it), or allow more"),
        Case("no good sample at all", DATA, lambda p: all_bad(p, "replace"), "mend the data"),
    ],
    "Fields and steps": [
        Case("a field that is not there", USAGE, lambda p: p.loader(fields={"image": hr.image("jpeg").resize((8, 8))}), "the text lists what there is"),
        Case("`fields` that is no dict", USAGE, lambda p: p.loader(fields=[hr.image("jpg")]), "`{name: hr.image(...)}`"),
        Case("a field that is only a name", USAGE, lambda p: p.loader(fields={"image": "jpg"}), '`hr.image("jpg")`'),
        Case("a field name that is no text", USAGE, lambda p: p.loader(fields={"image": hr.image(7)}), "give the extension"),
        Case("an output name that is no text", USAGE, lambda p: p.loader(fields={1: IMAGE["image"]}), "name it"),
        Case("a typo in a step", AttributeError, lambda p: hr.image("jpg").resise(8), "Python names the step that was meant"),
        Case("a typo in a parameter", TypeError, lambda p: hr.image("jpg").resize(8, fliter="bicubic"), "`help(hr.ImageField.resize)`"),
        Case("a size of 0", USAGE, lambda p: image(p, lambda i: i.resize(0)), "from 1 on"),
        Case("a size that is no number", USAGE, lambda p: image(p, lambda i: i.resize((8, "8"))), "numbers"),
        Case("a size of three numbers", USAGE, lambda p: image(p, lambda i: i.resize((8, 8, 3))), "`(height, width)`"),
        Case("an unknown filter", USAGE, lambda p: image(p, lambda i: i.resize((8, 8), filter="box")), "one of those named"),
        Case("a range the wrong way round", USAGE, lambda p: image(p, lambda i: i.random_resized_crop(8, scale=(1.0, 0.1))), "`(low, high)`"),
        Case("a jitter of hue beyond half a turn", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).color_jitter(hue=0.7)), "at most 0.5"),
        Case("a fill of three levels for gray pictures", USAGE, lambda p: p.loader(fields={"image": hr.image("jpg", mode="L").resize((8, 8)).random_rotation(9, fill=(1, 2, 3))}), "one a channel, or one number"),
        Case("a kernel of even size", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).gaussian_blur(4)), "odd numbers"),
        Case("a crop larger than its picture", DATA, lambda p: p.sample("jpg", JPEG, hr.image("jpg").random_crop(99)), "`pad_if_needed=True`, or resize first"),
        Case("a probability above 1", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).random_flip(1.5)), "0 to 1"),
        Case("two means for three channels", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).normalize((0.5, 0.5), (0.1, 0.1))), "one a channel, or one number"),
        Case("a mean without its standard deviation", USAGE, lambda p: hr.image("jpg").normalize((0.5, 0.5, 0.5)), "`normalize(mean, std)`, `normalize(hr.IMAGENET)`"),
        Case("a standard deviation of 0", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).normalize(0.5, 0)), "above 0"),
        Case("normalized pictures as u8", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).normalize(hr.IMAGENET).cast("u8")), "f16, bf16 or f32"),
        Case("an unknown type", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).cast("int8")), "one of those named"),
        Case("an unknown layout", USAGE, lambda p: image(p, lambda i: i.resize((8, 8)).layout("CHW")), "one of those named"),
        Case("an unknown mode", USAGE, lambda p: p.loader(fields={"image": hr.image("jpg", mode="CMYK")}), "one of those named"),
        Case("a crop after `normalize`", USAGE, lambda p: image(p, lambda i: i.normalize(hr.IMAGENET).center_crop(8)), "geometry first"),
        Case("pictures of different sizes in one batch", USAGE, lambda p: image(p, lambda i: i.resize(8)), "one of the ways named"),
        Case("a picture of a number", USAGE, lambda p: p.loader(fields={"image": hr.image("cls")}), '`hr.scalar("cls")`'),
        Case("an unknown type of number", USAGE, lambda p: p.loader(fields={"label": hr.scalar("cls", dtype="int")}), "u8 … i64, f32, f64"),
        Case("a step after `map`", USAGE, lambda p: hr.image("jpg").map(abs).resize(8), "`map` last"),
        Case("a function that fails at once", USAGE, lambda p: map_of(lambda v: 1 // v, p), "mend the function"),
        Case("a function that fails later", USAGE, lambda p: map_of(lambda v: 1 // (1 - v), p), "mend the function; it is no bad sample"),
        Case("a function whose shapes differ", USAGE, lambda p: map_of(lambda v: [0] * (v + 1), p), "`.list()`, `.padded()` or `.ragged()`"),
        Case("a function whose types differ", USAGE, lambda p: map_of(lambda v: v if v == 0 else v / 2, p), "return one type"),
        Case("a function that returns nothing", USAGE, lambda p: map_of(lambda v: None, p), "return something"),
        Case("a function on batches that returns no dict", USAGE, batch_map, "return a dict, or None"),
    ],
    "Arguments of Loader": [
        Case("neither batch size", USAGE, lambda p: p.loader(batch_size=None), "one of the two"),
        Case("both batch sizes", USAGE, lambda p: p.loader(global_batch_size=4), "one of the two"),
        Case("a batch size of 0", USAGE, lambda p: p.loader(batch_size=0), "from 1 on"),
        Case("a batch size that is no whole number", USAGE, lambda p: p.loader(batch_size=2.5), "whole"),
        Case("a batch size without end", USAGE, lambda p: p.loader(batch_size=2**70), "smaller"),
        Case("a batch larger than the data", USAGE, lambda p: p.loader(batch_size=100), "smaller, or another `tail`"),
        Case("a global batch that ranks cannot share", USAGE, lambda p: p.loader(batch_size=None, global_batch_size=7, rank=0, world_size=2), "a multiple of the ranks"),
        Case("an unknown `shuffle`", USAGE, lambda p: p.loader(shuffle="blocks"), "one of those named"),
        Case("an unknown `tail`", USAGE, lambda p: p.loader(tail="cut"), "one of those named"),
        Case("an unknown `output`", USAGE, lambda p: p.loader(output="tensorflow"), "one of those named"),
        Case("a device without torch's tensors", USAGE, lambda p: p.loader(device="cuda"), '`output="torch"`'),
        Case("an unknown device", USAGE, lambda p: p.loader(output="torch", device="gpu"), '`"cuda"`, `"cpu"`, …'),
        Case("a negative seed", USAGE, lambda p: p.loader(seed=-1), "from 0 on"),
        Case("a seed that is no number", USAGE, lambda p: p.loader(seed="x"), "a whole number"),
        Case("no threads", USAGE, lambda p: p.loader(threads=0), '`"auto"`, or from 1 on'),
        Case("memory that is no number", USAGE, lambda p: p.loader(memory_budget="plenty"), '`2**30`, `"1GiB"`'),
        Case("a window that is no number", USAGE, lambda p: p.loader(shuffle_window="wide"), '`2**30`, `"1GiB"`'),
        Case("`reassign_every=0`", USAGE, lambda p: p.loader(reassign_every=0), "from 1 on"),
        Case("an unknown `bad_samples`", USAGE, lambda p: p.loader(bad_samples="ignore"), "one of those named"),
        Case("an index for a data set that is open", USAGE, lambda p: hr.Loader(hr.open(p["photos"]), 2, IMAGE, index="x", output="numpy"), "give it to `hr.open`"),
        Case("an epoch below 0", USAGE, lambda p: p.loader().epoch(-1), "from 0 on"),
        Case("an epoch that is no whole number", USAGE, lambda p: p.loader().epoch(0.5), "whole"),
        Case("a closed loader", USAGE, use_closed, "make another"),
        Case("an epoch that another one ended", USAGE, old_epoch, "one epoch at a time"),
        Case("a loader in a forked child", USAGE, in_a_fork, "make it in the child"),
    ],
    "Samples by number": [
        Case("a number that is not there", IndexError, lambda p: hr.open(p["photos"])[8], "0 to len-1"),
        Case("a text", USAGE, lambda p: hr.open(p["photos"])["a0"], "a number, or the name of a field"),
        Case("numbers with fractions", USAGE, lambda p: hr.open(p["photos"])[[0.5]], "whole ones"),
        Case("a mask of another length", USAGE, lambda p: hr.open(p["photos"])[[True, False]], "as long as the data set"),
    ],
    "Ranks": [
        Case("a rank without their number", USAGE, lambda p: p.loader(rank=0), "both or neither"),
        Case("a rank that is not one of them", USAGE, lambda p: p.loader(rank=2, world_size=2), "0 to world_size-1"),
        Case("a rank that is no number", USAGE, lambda p: p.loader(rank="0", world_size=2), "a whole number"),
        Case("launchers that disagree", USAGE, lambda p: ranks.find(env={"RANK": "0", "WORLD_SIZE": "1", "PMI_RANK": "1", "PMI_SIZE": "4"}), "say which: `rank=`, `world_size=`"),
        Case("a launcher that says nonsense", USAGE, lambda p: ranks.find(env={"RANK": "one", "WORLD_SIZE": "4"}), "mend the environment"),
        Case("half of a launcher's variables", USAGE, lambda p: ranks.find(env={"WORLD_SIZE": "4"}), "set both"),
    ],
    "Blends": [
        Case("something that is no dict", USAGE, lambda p: hr.blend([(p["photos"], 1)]), "`{name: (source, weight)}`"),
        Case("a source without its weight", USAGE, lambda p: hr.blend({"a": "photos"}), "`{name: (source, weight)}` or `{url: weight}`"),
        Case("a negative weight", USAGE, lambda p: hr.Loader(hr.blend({"a": (p["photos"], -1.0)}), 2, IMAGE, output="numpy"), "from 0 on"),
        Case("weights that are all 0", USAGE, lambda p: hr.Loader(hr.blend({"a": (p["photos"], 0)}), 2, IMAGE, output="numpy"), "one above 0"),
        Case("a weight that is no number", USAGE, lambda p: hr.Loader(hr.blend({"a": (p["photos"], "much")}), 2, IMAGE, output="numpy"), "a number"),
        Case("an epoch of -1 samples", USAGE, lambda p: hr.Loader(hr.blend({"a": (p["photos"], 1)}, epoch_samples=-1), 2, IMAGE, output="numpy"), "from 0 on"),
        Case("weights where there is no blend", USAGE, lambda p: p.loader().set_weights({"a": 1.0}, at_step=3), "`hr.blend`"),
    ],
    "States": [
        Case("the state of another data set", USAGE, other_data, "load it where it belongs; moving data is no change, other names, sizes or counts are"),
        Case("something that is no state", USAGE, lambda p: p.loader().load_state_dict({"model": 1}), "`loader.state_dict()` gives one"),
        Case("a state of a later headrace", USAGE, lambda p: p.state(headrace=2), "upgrade"),
        Case("a state of another plan version", UNSUPPORTED, lambda p: p.state(plan_version=9), "use the headrace that wrote it"),
        Case("a state with an entry missing", USAGE, lambda p: p.loader().load_state_dict({"headrace": 1}), "keep all of it"),
        Case("a state with an entry of another type", USAGE, lambda p: p.state(seed="7"), "keep it as it was"),
        Case("a position beyond the epoch", USAGE, lambda p: p.state(g=1000), "keep it as it was"),
        Case("another epoch than the loaded state's", USAGE, other_epoch, "the text says how to go on, and how to begin anew"),
    ],
}  # fmt: skip


def normal(text: str, root: pathlib.Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(root), "/data")
    return re.sub(r"\b[0-9a-f]{32}\b", lambda m: m[0][:4] + "…", text)


def public_name(error: type[BaseException]) -> str:
    if error.__module__ == "builtins":
        return error.__name__
    return "hr." + next(t.__name__ for t in error.__mro__ if hasattr(hr, t.__name__))


def happens(case: Case, root: pathlib.Path) -> tuple[BaseException, str]:
    place = Place(root)
    try:
        result = case.run(place)
    except BaseException as e:
        return e, normal(str(e), root)
    raise AssertionError(f"no error: {case.what}: {result!r}")


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def row_of(case: Case, message: str) -> str:
    return f"| {cell(case.what)} | `{public_name(case.error)}` | {cell(message).replace('<', '&lt;')} | {cell(case.remedy)} |"


HEAD = """# Errors

The errors that headrace raises, and what to do about them. Each row is a test: `python tests/test_bad_input.py --write`
writes this page, and the tests compare it.

- `hr.UsageError`, also a `ValueError`: the call is wrong. Correct it.
- `hr.DataError`: the data are wrong. It has `.file`, `.offset`, `.sample` and `.key` where they are known. Replace the file, or use `bad_samples="replace"`.
- `hr.StorageError`, also an `OSError`: a path, a permission, the disk or the network. Correct it, or try again.
- `hr.Unsupported`, also a `NotImplementedError`: headrace cannot read this. The message says what to do.

All of them are `hr.Error`. `bad_samples="replace"` applies only to samples that cannot be read or decoded; every other error stops the run.
"""


def document() -> str:
    lines = [HEAD]
    for title, cases in CASES.items():
        lines += [f"## {title}", "", "| what you did | exception | what it says | what to do |", "|---|---|---|---|"]
        for case in cases:
            if case.waits_for:
                continue
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder).resolve()
                error, message = happens(case, root)
                if not isinstance(error, case.error):
                    print(f"{case.what}: {type(error).__name__}: {message}", file=sys.stderr)
                lines.append(row_of(case, message))
        lines.append("")
    return "\n".join(lines)


def parameters() -> list[Any]:
    out = []
    for cases in CASES.values():
        for case in cases:
            marks = [pytest.mark.xfail(strict=True, reason=case.waits_for)] if case.waits_for else []
            out.append(pytest.param(case, id=case.what.replace("`", ""), marks=marks))
    return out


@pytest.mark.parametrize("case", parameters())
def test_bad_input_is_a_clear_error(case: Case, tmp_path: pathlib.Path) -> None:
    error, message = happens(case, tmp_path)
    assert isinstance(error, case.error), f"{type(error).__name__}: {message}"
    if case.error.__module__ != "builtins":
        assert isinstance(error, hr.Error)
    assert not re.search(r"std::|bad_cast|incompatible function|'NoneType' object|0x[0-9a-f]{6}|Traceback", message), message
    assert len(message) > 15 and "\n" not in message


@pytest.mark.parametrize("case", parameters())
def test_the_table_says_what_happens(case: Case, tmp_path: pathlib.Path) -> None:
    error, message = happens(case, tmp_path)
    assert isinstance(error, case.error)
    rows = DOCUMENT.read_text().splitlines() if DOCUMENT.exists() else []
    assert row_of(case, message) in rows, "python tests/test_bad_input.py --write"


def test_the_table_has_no_other_rows() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ") and not line.startswith("| what you did")]
    assert len(rows) == sum(not case.waits_for for cases in CASES.values() for case in cases), (
        "python tests/test_bad_input.py --write"
    )


def test_a_pickle_with_code_was_not_executed(tmp_path: pathlib.Path) -> None:
    class Touch:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "was here"),)

    for protocol in range(6):
        (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a.jpg": Touch()}, protocol))
        with pytest.raises(hr.DataError, match="nothing was executed"):
            hr.open(tmp_path / "x.pkl")
    assert not (tmp_path / "was here").exists()


@pytest.mark.parametrize("at", range(0, 6144, 97))
def test_a_tar_cut_anywhere_is_never_fewer_samples(at: int, tmp_path: pathlib.Path) -> None:
    place = Place(tmp_path)
    whole = place["train-0.tar"].read_bytes()
    end = 4 * 1024 + 1024
    (tmp_path / "x.tar").write_bytes(whole[:at])
    if at >= end:
        assert len(hr.open(tmp_path / "x.tar")) == 4
        return
    with pytest.raises(hr.DataError, match=r"x\.tar"):
        hr.open(tmp_path / "x.tar")


def test_errors_can_be_caught_as_the_builtins_they_are() -> None:
    assert issubclass(hr.UsageError, ValueError)
    assert issubclass(hr.StorageError, OSError)
    assert issubclass(hr.Unsupported, NotImplementedError)
    for error in (hr.UsageError, hr.DataError, hr.StorageError, hr.Unsupported):
        assert issubclass(error, hr.Error)
    with pytest.raises(FileNotFoundError):
        hr.open("/nothing/here.tar")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document())
    print(f"{DOCUMENT}: {sum(len(c) for c in CASES.values())} cases")
