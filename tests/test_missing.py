# SPDX-License-Identifier: Apache-2.0
"""Fields that some samples lack: default=, optional=True with NAME_valid, lists with None; fields per source in a blend."""

from __future__ import annotations

import io
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import headrace as hr
import jax
import numpy as np
import pytest
import support
import torch
from PIL import Image

N = 12
HAS = np.array([i % 3 != 1 for i in range(N)])  # samples 1, 4, 7, 10 lack what may be missing


def png(i: int, mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    shape = (8, 10, 3) if mode == "RGB" else (8, 10)
    Image.fromarray(np.full(shape, 10 + i, np.uint8), mode).save(out, "png")
    return out.getvalue()


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write_tar(path: pathlib.Path, samples: list[Mapping[str, bytes]]) -> pathlib.Path:
    return support.write_tar(
        path, [(f"{i:04d}.{name}", data) for i, sample in enumerate(samples) for name, data in sample.items()]
    )


def sample(i: int) -> dict[str, bytes]:
    out = {"id": f"{i}".encode()}
    if HAS[i]:
        out |= {
            "jpg": png(i),  # whatever its name says, it is a PNG
            "seg.png": png(i, "L"),
            "cls": str(i).encode(),
            "txt": f"text {i}".encode(),
            "bin": bytes([i, i]),
            "json": json.dumps({"n": i}).encode(),
            "box.json": json.dumps([[0, 0, i + 1, 4]]).encode(),
            "vec.npy": npy(np.full(3, i, np.float32)),
            "tok.npy": npy(np.arange(i + 1, dtype=np.int32)),
        }
    return out


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_tar(tmp_path_factory.mktemp("holes") / "x.tar", [sample(i) for i in range(N)])


def one_batch(source: Any, fields: Any, **options: Any) -> hr.Batch:
    with hr.Loader(source, N, fields, **{"shuffle": False, "output": "numpy", "threads": 2, **options}) as loader:
        return next(iter(loader))


# -- default= ------------------------------------------------------------------------------------------


def test_a_default_stands_for_a_number_that_is_missing(holes: pathlib.Path) -> None:
    b = one_batch(holes, {"y": hr.scalar("cls", default=-1), "z": hr.scalar("cls", "f32", default=0.5)})
    assert b["y"].tolist() == [i if HAS[i] else -1 for i in range(N)] and b["y"].dtype == np.int64
    assert b["z"].tolist() == [float(i) if HAS[i] else 0.5 for i in range(N)] and b["z"].dtype == np.float32
    assert set(b) == {"y", "z"}
    ds = hr.open(holes, {"y": hr.scalar("cls", default=-1)})
    assert [s["y"] for s in ds] == b["y"].tolist()


def test_a_default_stands_for_text_bytes_and_json(holes: pathlib.Path) -> None:
    fields = {
        "t": hr.text("txt", default="–"),
        "b": hr.bytes("bin", default=b"\0"),
        "j": hr.json("json", default={"n": None}),
        "upper": hr.text("txt", default="none").map(str.upper),
        "padded": hr.bytes("bin", default=b"abc").padded(),
    }
    b = one_batch(holes, fields)
    assert b["t"] == [f"text {i}" if HAS[i] else "–" for i in range(N)]
    assert b["b"] == [bytes([i, i]) if HAS[i] else b"\0" for i in range(N)]
    assert b["j"] == [{"n": i if HAS[i] else None} for i in range(N)]
    assert b["upper"] == [f"TEXT {i}" if HAS[i] else "NONE" for i in range(N)]
    values, lengths = b["padded"]
    assert lengths.tolist() == [2 if HAS[i] else 3 for i in range(N)] and bytes(values[1]) == b"abc"
    sample = hr.open(holes, fields)[1]
    assert sample["t"] == "–" and sample["b"] == b"\0" and sample["j"] == {"n": None} and sample["upper"] == "NONE"


def test_a_default_stands_for_an_array_and_steps_follow_it(holes: pathlib.Path) -> None:
    fields = {
        "dense": hr.array("vec.npy", default=7),
        "given": hr.array("vec.npy", default=[1, 2, 3]).cast("f64"),
        "normal": hr.array("vec.npy", default=5).normalize(mean=1, std=2),
        "list": hr.tokens("tok.npy", default=[9, 9]),
        "ragged": hr.tokens("tok.npy", default=[9]).ragged(),
    }
    b = one_batch(holes, fields)
    assert b["dense"].dtype == np.float32 and b["dense"][1].tolist() == [7, 7, 7] and b["dense"][2].tolist() == [2, 2, 2]
    assert b["given"].dtype == np.float64 and b["given"][4].tolist() == [1, 2, 3]
    assert b["normal"][1].tolist() == [2, 2, 2] and b["normal"][3].tolist() == [1, 1, 1]
    assert b["list"][1].tolist() == [9, 9] and b["list"][1].dtype == np.int32 and b["list"][2].tolist() == [0, 1, 2]
    values, offsets, _ = b["ragged"]
    assert values[offsets[1] : offsets[2]].tolist() == [9]


def test_a_default_picture_is_a_level_a_colour_or_an_array(holes: pathlib.Path) -> None:
    own = np.arange(8 * 10 * 3, dtype=np.uint8).reshape(8, 10, 3)
    fields = {
        "gray": hr.image("jpg", default=100).resize((4, 4)),
        "colour": hr.image("jpg", default=(1, 2, 3)).random_resized_crop(4),
        "array": hr.image("jpg", default=own).center_crop(4).layout("NHWC"),
        "normal": hr.image("jpg", default=255).resize((4, 4)).normalize(hr.IMAGENET).layout("NHWC"),
        "views": hr.image("jpg", default=9, variants=2).random_resized_crop(4),
        "list": hr.image("jpg", default=own).list(),
    }
    b = one_batch(holes, fields)
    assert (b["gray"][1] == 100).all() and (b["gray"][2] == 12).all()
    assert b["colour"][1, :, 0, 0].tolist() == [1, 2, 3] and (b["colour"][1] == b["colour"][1][:, :1, :1]).all()
    assert np.array_equal(b["array"][1], own[2:6, 3:7])
    want = (1 - np.array(hr.IMAGENET[0])) / np.array(hr.IMAGENET[1])
    assert np.allclose(b["normal"][1], want, atol=1e-5)
    assert b["views"].shape == (N, 2, 3, 4, 4) and (b["views"][4] == 9).all()
    assert np.array_equal(b["list"][1], own.transpose(2, 0, 1))


def test_a_default_goes_with_joint_for_those_that_follow(holes: pathlib.Path) -> None:
    lead = hr.image("jpg;seg.png", mode="RGB").random_resized_crop(6)
    only = hr.open(holes)[[i for i in range(N) if HAS[i]]]
    joined = hr.joint(image=lead, mask=hr.mask("nope", default=255).random_resized_crop(6), boxes=hr.boxes("nope", default=[]))
    b = one_batch(only, joined, tail="keep")
    assert (b["mask"] == 255).all() and [x.shape for x in b["boxes"]] == [(0, 4)] * HAS.sum()
    with pytest.raises(hr.UsageError, match="leads its hr\\.joint"):
        one_batch(holes, hr.joint(image=hr.image("jpg", default=0).resize((4, 4)), mask=hr.mask("seg.png").resize((4, 4))))


@pytest.mark.parametrize(
    ("field", "says"),
    [
        (hr.scalar("cls", default=0.5), "is 0.5, which i64 cannot hold"),
        (hr.scalar("cls", default="x"), "a number or an array"),
        (hr.text("txt", default=3), "wants str"),
        (hr.bytes("bin", default="x"), "wants bytes"),
        (hr.array("vec.npy", default=[1, 2]), r"default= gives f32\[2\], and the field f32\[3\]"),
        (hr.tokens("tok.npy", default=1), "give an array"),
        (hr.image("jpg", default=300).resize((4, 4)), "from 0 to 255"),
        (hr.image("jpg", default=0).list(), r"resize\(\(h, w\)\)"),
        (hr.text("txt", many=True, default="x"), "leave default= out"),
        (hr.json("json", default={1, 2}), "no JSON value"),
    ],
)
def test_a_default_that_cannot_be_is_refused(holes: pathlib.Path, field: hr.Field, says: str) -> None:
    with pytest.raises(hr.UsageError, match=says):
        one_batch(holes, {"x": field})


# -- optional=True -------------------------------------------------------------------------------------


def optional_fields() -> dict[str, hr.Field]:
    return {
        "image": hr.image("jpg", optional=True).resize((4, 4)).normalize(hr.IMAGENET),
        "pictures": hr.image("jpg", optional=True).list(),
        "cls": hr.scalar("cls", optional=True),
        "text": hr.text("txt", optional=True),
        "raw": hr.bytes("bin", optional=True),
        "json": hr.json("json", optional=True),
        "vec": hr.array("vec.npy", optional=True),
        "tok": hr.tokens("tok.npy", optional=True).padded(value=-1),
        "ragged": hr.tokens("tok.npy", optional=True).ragged(),
        "boxes": hr.boxes("box.json", optional=True),
        "many": hr.text("txt", many=True, optional=True),
        "mapped": hr.scalar("cls", optional=True).map(lambda v: np.full(2, v + 1.0)),
    }


@pytest.mark.parametrize("output", ["numpy", "torch", "jax"])
def test_what_is_optional_comes_with_a_mask_and_zeros(holes: pathlib.Path, output: Any) -> None:
    b = one_batch(holes, optional_fields(), output=output)
    kinds = {"numpy": np.ndarray, "torch": torch.Tensor, "jax": jax.Array}
    for name in optional_fields():
        mask = b[f"{name}_valid"]
        assert isinstance(mask, kinds[output]) and np.asarray(mask).dtype == np.bool_ and np.array_equal(mask, HAS), name
    assert not np.asarray(b["image"])[~HAS].any() and np.asarray(b["image"])[HAS].all()
    assert np.asarray(b["cls"]).tolist() == [i if HAS[i] else 0 for i in range(N)]
    assert b["text"][1] == "" and b["raw"][1] == b"" and b["json"][1] is None and b["many"][1] == []
    assert b["text"][0] == "text 0" and b["json"][0] == {"n": 0} and b["many"][0] == ["text 0"]
    assert np.asarray(b["vec"])[1].tolist() == [0, 0, 0]
    values, lengths = b["tok"]
    assert np.asarray(lengths).tolist() == [i + 1 if HAS[i] else 0 for i in range(N)]
    assert (np.asarray(values)[1] == -1).all()
    _, offsets, _ = b["ragged"]
    assert np.diff(np.asarray(offsets)).tolist() == [i + 1 if HAS[i] else 0 for i in range(N)]
    assert b["boxes"][1].shape == (0, 4) and b["boxes"][0].shape == (1, 4) and b["pictures"][1].shape == (3, 0, 0)
    assert np.asarray(b["mapped"])[1].tolist() == [0, 0] and np.asarray(b["mapped"])[2].tolist() == [3, 3]


def test_a_sample_by_number_has_none_for_what_is_missing(holes: pathlib.Path) -> None:
    ds = hr.open(holes, optional_fields())
    assert {k: v for k, v in ds[1].items() if k.endswith("_valid")} == {f"{n}_valid": False for n in optional_fields()}
    assert all(ds[1][n] is None for n in optional_fields() if n != "many") and ds[1]["many"] == []
    assert ds[2]["cls"] == 2 and ds[2]["cls_valid"] is True and ds[2]["text"] == "text 2"


def test_a_default_and_a_mask(holes: pathlib.Path) -> None:
    fields = {"y": hr.scalar("cls", default=-100, optional=True)}
    b = one_batch(holes, fields)
    assert b["y"].tolist() == [i if HAS[i] else -100 for i in range(N)] and np.array_equal(b["y_valid"], HAS)
    assert hr.open(holes, fields)[1] == {"y": -100, "y_valid": False}


def test_a_mask_may_not_hide_a_field(holes: pathlib.Path) -> None:
    with pytest.raises(hr.UsageError, match="rename one of them"):
        one_batch(holes, {"y": hr.scalar("cls", optional=True), "y_valid": hr.key()})


def test_missing_values_are_no_bad_samples_and_bad_ones_are_replaced_all_the_same(tmp_path: pathlib.Path) -> None:
    samples = [sample(i) for i in range(N)]
    samples[3] = {**samples[3], "cls": b"not a number"}
    path = write_tar(tmp_path / "x.tar", samples)
    fields = {"y": hr.scalar("cls", optional=True), "n": hr.scalar("id")}
    with hr.Loader(path, 4, fields, seed=1, output="numpy", bad_samples="replace") as loader:
        batches = list(loader.epoch(0))
        assert [q["sample"] for q in loader.quarantine] == [3]
    for b in batches:
        assert b["y_valid"].tolist() == [bool(HAS[n]) for n in b["n"]]
        assert b["y"].tolist() == [n if HAS[n] else 0 for n in b["n"].tolist()]


def test_resuming_gives_the_same_masks(holes: pathlib.Path) -> None:
    fields = {"y": hr.scalar("cls", optional=True), "n": hr.scalar("id", "i32")}

    def told(batches: Any) -> list[Any]:
        return [(b["n"].tolist(), b["y"].tolist(), b["y_valid"].tolist()) for b in batches]

    with hr.Loader(holes, 3, fields, seed=5, output="numpy") as loader:
        whole = told(loader.epoch(0))
        it = loader.epoch(0 + 1)
        next(it)
        state = loader.state_dict()
        rest = told(it)
    with hr.Loader(holes, 3, fields, seed=5, output="numpy") as loader:
        loader.load_state_dict(state)
        assert told(loader.epoch(1)) == rest
    assert sum(len(n) for n, _, _ in whole) == N


# -- names and absence ---------------------------------------------------------------------------------


def test_an_error_about_a_missing_field_names_the_remedy(holes: pathlib.Path) -> None:
    with pytest.raises(hr.DataError, match="say default=… or optional=True"):
        one_batch(holes, {"y": hr.scalar("cls")})


def test_a_loader_without_fields_has_none_in_lists_and_an_error_for_numbers(tmp_path: pathlib.Path) -> None:
    path = write_tar(tmp_path / "x.tar", [{"a": b"1", **({"txt": b"t"} if i % 2 else {})} for i in range(4)])
    b = one_batch(path, None, tail="keep")
    assert b["txt"] == [None, "t", None, "t"] and b["a"] == [b"1"] * 4
    numbers = write_tar(tmp_path / "y.tar", [{"a": b"1", **({"cls": b"1"} if i % 2 else {})} for i in range(4)])
    with pytest.raises(hr.DataError, match="optional=True"):
        one_batch(numbers, None, tail="keep")


def test_a_field_that_no_sample_has_is_told_and_given(holes: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    fields = {"y": hr.scalar("nothing", default=3), "v": hr.array("none.npy", default=np.ones(2, np.float32))}
    b = one_batch(holes, fields)
    assert b["y"].tolist() == [3] * N and b["v"].shape == (N, 2) and b["v"].dtype == np.float32
    assert hr.open(holes, fields)[0]["y"] == 3
    assert "the data have no field 'nothing'" in caplog.text
    with pytest.raises(hr.UsageError, match="of which type and shape"):
        one_batch(holes, {"v": hr.array("none.npy", optional=True)})


@pytest.mark.parametrize("kind", ["scalar", "text", "bytes", "json", "array", "tokens", "image"])
def test_the_first_of_several_stored_names_for_every_kind(tmp_path: pathlib.Path, kind: str) -> None:
    one, two = {
        "scalar": ("cls", "label.cls"), "text": ("txt", "caption.txt"), "bytes": ("bin", "raw.bin"), "json": ("json", "meta.json"),
        "array": ("npy", "v.npy"), "tokens": ("npy", "v.npy"), "image": ("png", "left.png"),
    }[kind]  # fmt: skip

    def value(i: int) -> bytes:
        made = {"image": png(i), "array": npy(np.full(2, i)), "tokens": npy(np.full(2, i)), "json": b"%d" % i}
        return made.get(kind, b"%d" % i)

    path = write_tar(tmp_path / "x.tar", [{(one, two)[i % 2]: value(i)} for i in range(6)])
    field = getattr(hr, kind)(f"{one};{two}")
    got = one_batch(path, {"x": field.resize((2, 2)) if kind == "image" else field}, tail="keep")["x"]
    want: Any = {"scalar": list(range(6)), "json": list(range(6)), "text": [f"{i}" for i in range(6)]}
    want |= {"bytes": [b"%d" % i for i in range(6)], "array": [[i, i] for i in range(6)], "tokens": [[i, i] for i in range(6)]}
    plain = [v.tolist() if hasattr(v, "tolist") else v for v in got]
    assert plain == want.get(kind, [np.full((3, 2, 2), 10 + i).tolist() for i in range(6)])


# -- fields per source in a blend ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    root = tmp_path_factory.mktemp("two")
    a = write_tar(root / "a.tar", [{"png": png(i), "cls": b"%d" % i} for i in range(20)])
    b = write_tar(
        root / "b.tar", [{"left.png": png(100 + i), "meta.json": b'{"y": %d}' % i, "lab": b"%d" % (50 + i)} for i in range(10)]
    )
    return a, b


def by_source(loader: hr.Loader) -> dict[int, list[tuple[int, int]]]:
    out: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for b in loader.epoch(0):
        for k, level, y in zip(b.sources.tolist(), b["x"][:, 0, 0, 0].tolist(), b["y"].tolist()):
            out[k].append((level, y))
    return out


def test_each_source_of_a_blend_keeps_the_fields_it_was_opened_with(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = two
    fields_a = {"x": hr.image("png").resize((4, 4)), "y": hr.scalar("cls")}
    fields_b = {"y": hr.scalar("lab"), "x": hr.image("left.png").center_crop(4)}  # another order, other steps
    parts = hr.blend({"a": (hr.open(a, fields_a), 0.75), "b": (hr.open(b, fields_b), 0.25)}, epoch_samples=128)
    with hr.Loader(parts, 16, seed=3, output="numpy") as loader:
        got = by_source(loader)
        assert len(got[0]) == 96 and len(got[1]) == 32
        assert set(got[0]) <= {(10 + i, i) for i in range(20)} and set(got[1]) == {(110 + i, 50 + i) for i in range(10)}
        state = loader.state_dict()
    # What a data set is opened with is no part of the state: the order is that of fields given to the Loader.
    same = {"k": hr.key()}
    with hr.Loader(hr.blend({"a": (a, 0.75), "b": (b, 0.25)}, epoch_samples=128), 16, same, seed=3, output="numpy") as loader:
        loader.load_state_dict(state)


def test_fields_of_the_loader_are_for_the_sources_without_their_own(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = two
    fields_b = {"x": hr.image("left.png").resize((4, 4)), "y": hr.scalar("lab")}
    given = {"x": hr.image("png").resize((4, 4)), "y": hr.scalar("cls")}
    for first in (a, hr.open(a)):
        parts = hr.blend({"a": (first, 1), "b": (hr.open(b, fields_b), 1)}, epoch_samples=40)
        with hr.Loader(parts, 10, given, seed=3, output="numpy") as loader:
            got = by_source(loader)
        assert set(got[0]) == {(10 + i, i) for i in range(20)} and set(got[1]) == {(110 + i, 50 + i) for i in range(10)}


def test_a_data_set_opened_with_fields_needs_none_in_the_loader(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    ds = hr.open(two[0], {"y": hr.scalar("cls")})
    assert one_batch(ds[3:15], None)["y"].tolist() == list(range(3, 15))
    assert one_batch(ds, {"k": hr.key()}).keys() == {"k"}


def test_a_source_that_lacks_a_field_altogether_gets_the_default(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = two
    both = {
        "y": hr.scalar("cls", "i32", default=-7),
        "x": hr.image("png;left.png").resize((4, 4)),
        "z": hr.json("meta.json", default={"y": 0}).map(lambda j: j["y"]),
    }
    for names in ({"a": (a, 1), "b": (b, 1)}, {"b": (b, 1), "a": (a, 1)}):
        with hr.Loader(hr.blend(names, epoch_samples=40), 10, both, seed=3, output="numpy") as loader:
            for batch in loader.epoch(0):
                assert batch["y"].dtype == np.int32
                for k, level, y, z in zip(batch.sources, batch["x"][:, 0, 0, 0], batch["y"], batch["z"]):
                    of_a = list(names)[k] == "a"
                    assert (y, z) == ((level - 10, 0) if of_a else (-7, level - 110))


def test_an_optional_field_that_one_source_lacks_is_masked_there(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = two
    fields = {"y": hr.scalar("cls", optional=True)}
    with hr.Loader(hr.blend({"a": (a, 1), "b": (b, 1)}, epoch_samples=40), 10, fields, seed=3, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert np.array_equal(batch["y_valid"], batch.sources == 0) and not batch["y"][batch.sources == 1].any()


@pytest.mark.parametrize(
    ("mine", "says"),
    [
        ({"y": hr.scalar("lab")}, "source 'a' gives 'x' and source 'b' does not"),
        ({"x": hr.image("left.png").resize((4, 4)), "y": hr.scalar("lab"), "k": hr.key()}, "source 'b' gives 'k' and source 'a' does not"),
        ({"x": hr.image("left.png").resize((5, 4)), "y": hr.scalar("lab")}, r"u8\[3,4,4\] in source 'a' and u8\[3,5,4\] in source 'b'"),
        ({"x": hr.image("left.png").resize((4, 4)), "y": hr.scalar("lab", "f32")}, r"i64\[\] in source 'a' and f32\[\] in source 'b'"),
        ({"x": hr.image("left.png").resize((4, 4)).list(), "y": hr.scalar("lab")}, "dense in source 'a' and a list in source 'b'"),
        ({"x": hr.image("nope").resize((4, 4)), "y": hr.scalar("lab")}, "source 'b'.*there is no field 'nope'"),
    ],
)  # fmt: skip
def test_sources_of_a_blend_must_give_equal_outputs(two: tuple[pathlib.Path, pathlib.Path], mine: Any, says: str) -> None:
    a = hr.open(two[0], {"x": hr.image("png").resize((4, 4)), "y": hr.scalar("cls")})
    with pytest.raises(hr.UsageError, match=says):
        one_batch(hr.blend({"a": (a, 1), "b": (hr.open(two[1], mine) if "nope" not in repr(mine) else two[1], 1)}), mine)


def test_text_in_one_source_and_bytes_in_another_are_refused(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = (hr.open(p, {"x": f}) for p, f in zip(two, (hr.text("cls"), hr.bytes("lab"))))
    with pytest.raises(hr.UsageError, match="text in source 'a' and bytes in source 'b'"):
        one_batch(hr.blend({"a": (a, 1), "b": (b, 1)}), None)


def test_a_blend_of_urls_and_weights(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = map(str, two)
    fields = {"k": hr.key()}
    long = hr.blend({"0": (a, 3), "1": (b, 1)}, epoch_samples=64)  # a URL goes by its number
    with hr.Loader(hr.blend({a: 3, b: 1}, epoch_samples=64), 16, fields, seed=1, output="numpy") as loader:
        short = [(x.sources.tolist(), x["k"]) for x in loader.epoch(0)]
        assert sum(s.count(0) for s, _ in short) == 48
        loader.set_weights({a: 1, b: 1}, at_step=0)
    with hr.Loader(long, 16, fields, seed=1, output="numpy") as loader:
        assert [(x.sources.tolist(), x["k"]) for x in loader.epoch(0)] == short


def test_a_key_in_one_source_and_a_text_in_another(two: tuple[pathlib.Path, pathlib.Path]) -> None:
    a, b = (hr.open(p, {"x": f}) for p, f in zip(two, (hr.key(), hr.text("lab"))))
    with hr.Loader(hr.blend({"a": (a, 1), "b": (b, 1)}, epoch_samples=30), 10, seed=3, output="numpy") as loader:
        for batch in loader.epoch(0):
            for k, i, x in zip(batch.sources, batch.indices, batch["x"]):
                assert x == (f"{i:04d}" if k == 0 else f"{50 + i}")
