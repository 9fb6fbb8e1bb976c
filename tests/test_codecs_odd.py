# SPDX-License-Identifier: Apache-2.0
"""Odd pictures: each is decoded as Pillow decodes it, or refused.  The cases below are docs/odd_files.md.

python tests/test_codecs_odd.py --write       after a message or a case has changed
"""

from __future__ import annotations

import base64
import io
import pathlib
import random
import re
import struct
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

import headrace as hr
import numpy as np
import pytest
from headrace.verify import verify
from PIL import Image
from support import write_tar
from test_codecs import MODES, chunk, kind_of_png, make_picture, make_png, packed, save

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/odd_files.md"

# 24 x 16 pixels each, by libjpeg-turbo: Pillow writes neither.
YCCK = base64.b85decode(
    "|JeWT01iQ9Z(?NtWB>pF00RHp07C!>1_lQP1qcTR2MGxX3Jeqt3=0bk84?o@6df8L9vvDS93UhvCm<p$BODwkHz_PIF*GzZA166II5IpgGc+>)+W<oW2?+@d"
    "3k(<y4Hz;Z93e6?GBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqU|G)qg2mlZO7z6<#00I#K0}%lPA^`uy03QGV0R;g80RaI4"
    "00000000000RjUA1qKHQ2?`7U!~nGr00IF60|EpC1qB2I0004f0RjU61Q7)iAu&M)6H#FYB5@QlfsvsIBSNvk6;jdgBr{@if(Z&17Z@2DB_<~*DJnEIHa9pq"
    "IzvQ7Mn_0VN>fx-R##YAT4Q8oW@l(=YIAgTc6WGrdV_?8hKGoWijtF*m6n&7nVO=bq@|{(sHv*5v$VCgx45~w!o$SH#>dFX%F@%+)z;V8+1laa<K*S$=jiF`"
    "@$&QZ_4fDp`TGCF03QJW0|5a60RaI40RaF2000000RjUA1qKHQ2?`7U!~nGs00IF51Ox*F2L%KK009Db009C65d;MxF$NMrQ3qjh6CyH!2oyq*p|QaUBQsL)"
    "6=HJH3Kk?Z;U)1G7#SKSCnzZ@H8wXmIXXi`MMg(RNlH^xRaRG6Sz2RcWoBn+X=-zHb#`}nd3u6_goTEOh>41lla!T~mzbHFqNAjxrl+W>s<N}RwYImoxw^u`"
    "#Kp$P$jQpm)6~`0*Vx(G;^XAy=I7|?>hkmS_4fDp`TGCb01gBJ00I#M5d;7LKLG4ConP;K)lW}}+zY9qC9n)CfAk_hEPj55nP;WPsNL?nXLu0h_M9sp?&q(+"
    "AEs+VSJhP%s^LKFI2G49DD$W-cE9!VJqg04l_^Ty`}!Vv<vx+4#TB_^y1F|Nmx8J>xq-*H9goeC(w%aRXJ-zT0^(bg-75k?So6?-y@Eb~@y$BblIH5`Sh)<g"
    "@r<IL2toH$0&$b+oEARy9jiUHt=6$}6|N*XMLdG%?x+Ok1JgMQJ*t(+k=GJQ%bpQAB>GWHWQ>2(r$WaA$X{RfvHZV3Lq#gp<w2@Z=)V&`Z9<>9PM<Zpj=M&A"
    "qS0VnB5jg(1cFaczJy?d-<)*C6hk9vmMwVy06q2Fu#AnM?>Qy$=sNW3K<`C=|Je"
)
ARITHMETIC = base64.b85decode(
    "|JeWF01!$>Nk#wx0RR9200961|JwjV00;&K2L=TQ2L}fU2?z=d6b%du3k(?&6Au&}8Xq1V8XO!TBrYc)A}k{u94I#_EHE)NG&CP4IXyTsJT5adGXL8ELjeg1"
    "2@DGi7!3^=G9erxGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBW?k01*fP5C9kh0U`hb5di}c0sqVZ3IGrg1pyEd1^?Or"
    "3<CiG0ucid06zf#0GyC(vdZZ}-zujNzHsG~_|PK88!_gUE^~>$JA!rAD^ql;`XU?NDRb_36V=H(TUI2nRFHZD9;{Tt1Qo4j@LSt)$qzQ2>t3;h2GkZ@05giV"
    "Nde5=Gn6UOpPUnvdZ{9Y_xU%u2x&t$=}bsEl(QC3;3huZEIq!07?w<I$x$uXG;-<EWOSH@|Je"
)
ARITHMETIC_PROGRESSIVE = base64.b85decode(
    "|JeWF01!$>Nk#wx0RR9200961|JwjV00;&K2L=TQ2L}fU2?z=d6b%du3k(?&6Au&}8Xq1V8XO!TBrYc)A}k{u94I#_EHE)NG&CP4IXyTsJT5adGXL8ELjeg1"
    "2@DGi7!3^=G9erxGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBPqUGBW?l01*fP5C9kh0U`hb5di}c0sqVZ1^^HN5dYc$3<CiG"
    "0uTcb0006106SjcS3R3>R{zWZ1P}%P+5iXv0RRC70uzq$*#7`;?Y^YC^ML=%00a>Q|Jncu0RsU6KLHMdyk?oH3y`hA|I7dc5e5I+00;pB0RcY&5YjLK!r?YR"
    "|I7dc5C#9*00;pA00ut-{{Z$S2%KP|H-P`l00a;P|Jncu0RaF3KOrL<0cR!N5=$JFn$U}WBNL-#Qj069W*Gn401N{G00IC50000G+OYr300a>Q|Jncu0RsU6"
    "KM>kjwkD&I+d%)!00a>Q|Jncu0RjO5KM=mZ$ko2!1UV@p@HQa-%m4%s1^?Or2mt{A0Y4DaNid4sY)MJKefqrJ{ox@~q96^X1UF*7WhMTb%mWV9xxAjp&i!rm"
    "|Je"
)

SIZE = (48, 40)
PHOTO = make_picture(7, SIZE)
JPEG = save(PHOTO, "JPEG", quality=90)
PNG = save(PHOTO, "PNG")
WEBP = save(PHOTO, "WEBP", quality=90)


@dataclass(frozen=True)
class Case:
    what: str
    data: Callable[[], bytes]
    gives: Any  # "Pillow's", "ours" (a check of its own below), or an exception
    note: str = ""


def without_segment(jpeg: bytes, marker: int) -> bytes:
    at = jpeg.index(bytes([0xFF, marker]))
    return jpeg[:at] + jpeg[at + 2 + struct.unpack(">H", jpeg[at + 2 : at + 4])[0] :]


def with_frame(jpeg: bytes, height: int, width: int, marker: int = 0xC0, precision: int = 8) -> bytes:
    at = jpeg.index(b"\xff\xc0")
    return (
        jpeg[: at + 1] + bytes([marker]) + jpeg[at + 2 : at + 4] + struct.pack(">BHH", precision, height, width) + jpeg[at + 9 :]
    )


def with_byte(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


def with_segment(jpeg: bytes, marker: int, content: bytes) -> bytes:
    return jpeg[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content + jpeg[2:]


def with_scan(jpeg: bytes, first: int, last: int, bits: int) -> bytes:
    """Other numbers at the end of the scan's header: first and last coefficient, and their bits."""
    at = jpeg.index(b"\xff\xda")
    end = at + 2 + struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
    return jpeg[: end - 3] + bytes([first, last, bits]) + jpeg[end:]


def between(jpeg: bytes) -> bytes:
    """A few bytes before the quantisation tables, which are no part of any segment."""
    at = jpeg.index(b"\xff\xdb")
    return jpeg[:at] + bytes(5) + jpeg[at:]


def with_header(png: bytes, **changes: int) -> bytes:
    """The IHDR chunk with other numbers and a right checksum."""
    names = ("width", "height", "depth", "colour", "compression", "filter", "interlace")
    numbers = dict(zip(names, struct.unpack(">IIBBBBB", png[16:29])))
    numbers.update(changes)
    return png[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", *numbers.values())) + png[33:]


def flipped(data: bytes, at: int) -> bytes:
    out = bytearray(data)
    out[at] ^= 0x10
    return bytes(out)


def with_chunk(png: bytes, kind: bytes, data: bytes) -> bytes:
    return png[:33] + chunk(kind, data) + png[33:]


def palette_png(entries: int, alphas: int = 0) -> bytes:
    samples = np.arange(16 * 16).reshape(16, 16, 1) % 16
    before = chunk(b"PLTE", bytes((i * 7) % 256 for i in range(3 * entries))) if entries else b""
    if alphas:
        before += chunk(b"tRNS", bytes(i * 16 for i in range(alphas)))
    return make_png(16, 16, 4, 3, packed(samples, 4), before)


def animation(format: str, **options: Any) -> bytes:
    frames = [make_picture(i, SIZE) for i in range(3)]
    return save(frames[0], format, save_all=True, append_images=frames[1:], **options)


def webp_of(width: int, height: int) -> bytes:
    """A lossless header that claims so much, and little behind it."""
    bits = struct.pack("<I", (width - 1) | (height - 1) << 14)
    body = b"VP8L" + struct.pack("<I", 26) + b"\x2f" + bits + bytes(21)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def filtered_png() -> bytes:
    row = bytes([7]) + bytes(3 * 16)  # there is no filter 7
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
    return PNG[:8] + header + chunk(b"IDAT", zlib.compress(row * 16)) + chunk(b"IEND", b"")


def tiff(mode: str, **options: Any) -> bytes:
    if mode == "I;16":
        return save(Image.fromarray(np.arange(256 * 4, dtype=np.uint16).reshape(32, 32)), "TIFF", **options)
    return save(make_picture(3, SIZE, mode), "TIFF", **options)


_GRAY = np.asarray(PHOTO.convert("L"))
PNM = {
    "P1": b"P1\n# a comment\n4 2\n0 1 0 1\n1 0 1 0\n",
    "P2": b"P2\n%d %d\n255\n" % SIZE + b"\n".join(b" ".join(b"%d" % v for v in row) for row in _GRAY) + b"\n",
    "P3": b"P3 2 2 255 1 2 3 4 5 6 7 8 9 10 11 12\n",
    "P4": save(PHOTO.convert("1"), "PPM"),
    "P5": save(PHOTO.convert("L"), "PPM"),
    "P6": save(PHOTO, "PPM"),
}

P, DATA, NO = "Pillow's", hr.DataError, hr.Unsupported

# fmt: off
CASES: dict[str, list[Case]] = {
    "JPEG": [
        Case("progressive", lambda: save(PHOTO, "JPEG", progressive=True), P),
        Case("with restart markers", lambda: save(PHOTO, "JPEG", restart_marker_rows=1), P),
        Case("gray", lambda: save(PHOTO.convert("L"), "JPEG"), P),
        Case("stored as RGB, not YCbCr", lambda: save(PHOTO, "JPEG", keep_rgb=True), P),
        Case("CMYK with Adobe's marker", lambda: save(PHOTO.convert("CMYK"), "JPEG"), P, "255 is no ink"),
        Case("CMYK without Adobe's marker", lambda: without_segment(save(PHOTO.convert("CMYK"), "JPEG"), 0xEE), P, "likewise"),
        Case("YCCK", lambda: YCCK, P),
        Case("arithmetic coding", lambda: ARITHMETIC, P),
        Case("arithmetic coding, progressive", lambda: ARITHMETIC_PROGRESSIVE, P),
        Case("12 bits", lambda: with_frame(JPEG, 40, 48, 0xC1, 12), NO),
        Case("lossless", lambda: with_frame(JPEG, 40, 48, 0xC3), NO),
        Case("several pictures in one file (MPO)", lambda: save(PHOTO, "MPO", save_all=True, append_images=[PHOTO.rotate(90)]), P, "the first"),
        Case("an EXIF that makes no sense", lambda: save(PHOTO, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"), P, "also with `orient=True`"),
        Case("scan parameters that make no sense", lambda: with_scan(JPEG, 0, 0, 0), P, "libjpeg warns; a sequential scan does without them"),
        Case("JFIF of version 2", lambda: with_byte(JPEG, JPEG.index(b"JFIF") + 5, 2), P, "libjpeg warns; nothing depends on it"),
        Case("an unknown colour transform of Adobe's", lambda: with_segment(JPEG, 0xEE, b"Adobe\0\x64\0\0\0\0\x07"), P, "libjpeg warns; the usual one is taken"),
        Case("progressive, filler before the end mark", lambda: save(PHOTO, "JPEG", progressive=True)[:-2] + bytes(9) + b"\xff\xd9", P, "libjpeg warns; all blocks are there"),
        Case("bytes between two segments", lambda: between(JPEG), DATA, "`strict=False`: decoded and counted"),
        Case("garbage behind it", lambda: JPEG + b"garbage" * 100, P),
        Case("another JPEG behind it", lambda: JPEG + save(PHOTO.rotate(180), "JPEG"), P, "the first"),
        Case("garbage before it", lambda: b"garbage" + JPEG, DATA),
        Case("an end mark only", lambda: b"\xff\xd8\xff\xd9", DATA),
        Case("0 x 0 pixels", lambda: with_frame(JPEG, 0, 0), DATA),
        Case("fewer rows than the header says", lambda: with_frame(JPEG, 4000, 48), DATA),
        Case("another width than the header says", lambda: with_frame(JPEG, 40, 64), DATA),
        Case("65,500 x 65,500 pixels", lambda: with_frame(JPEG, 65500, 65500), DATA, "nothing is allocated"),
        Case("cut in the middle", lambda: JPEG[: len(JPEG) // 2], DATA),
    ],
    "PNG": [
        *(Case(name, lambda name=name: kind_of_png(name, (24, 18), False), P)
          for name in ("gray 1", "gray 2", "gray 4", "colour 16", "gray with alpha 8", "gray with alpha 16", "colour with alpha 16", "palette 1", "palette 4")),
        Case("gray 16", lambda: kind_of_png("gray 16", (24, 18), False), P, "levels above 255 become 255, as in Pillow; a notice says so"),
        Case("interlaced", lambda: kind_of_png("colour 8", (24, 18), True), P, "decoded whole, whatever the crop"),
        Case("interlaced, 1 bit", lambda: kind_of_png("gray 1", (24, 18), True), P),
        Case("palette with transparency", lambda: palette_png(16, 8), P),
        Case("palette shorter than its indices", lambda: palette_png(9), P, "black"),
        Case("no palette", lambda: palette_png(0), DATA),
        Case("a transparent colour", lambda: make_png(16, 16, 8, 0, packed(np.arange(256).reshape(16, 16, 1), 8), chunk(b"tRNS", b"\0\x11")), P),
        Case("a transparent gray of 4 bits", lambda: make_png(16, 16, 4, 0, packed(np.arange(256).reshape(16, 16, 1) % 16, 4), chunk(b"tRNS", b"\0\x05")), "ours", "alpha as the specification says; Pillow compares the wrong number"),
        Case("animated (APNG)", lambda: animation("PNG"), P, "the first frame"),
        Case("an ICC profile, a gamma", lambda: with_chunk(save(PHOTO, "PNG", icc_profile=b"not a profile"), b"gAMA", struct.pack(">I", 45455)), P, "not applied"),
        Case("garbage behind it", lambda: PNG + b"garbage", P),
        Case("wrong checksum of the pixels", lambda: flipped(PNG, -14), DATA, "`strict=False`: decoded and counted"),
        Case("wrong checksum of a text", lambda: flipped(with_chunk(PNG, b"tEXt", b"a\0b"), 44), DATA, "likewise"),
        Case("wrong checksum of the header", lambda: flipped(PNG, 31), DATA, "likewise"),
        Case("no end mark", lambda: PNG[:-12], DATA, "likewise"),
        Case("fewer rows than the header says", lambda: with_header(PNG, height=41), DATA),
        Case("more rows than the header says", lambda: with_header(PNG, height=20), P, "the rows above"),
        Case("another width than the header says", lambda: with_header(PNG, width=50), DATA),
        Case("a filter that does not exist", filtered_png, DATA),
        Case("a depth that does not exist", lambda: with_header(PNG, depth=3), DATA),
        Case("0 x 0 pixels", lambda: with_header(PNG, width=0, height=0), DATA),
        Case("60,000 x 60,000 pixels", lambda: with_header(PNG, width=60000, height=60000), DATA, "nothing is allocated"),
        Case("2,000,000,000 pixels wide", lambda: with_header(PNG, width=2_000_000_000, height=2), DATA, "nothing is allocated"),
        Case("an unknown chunk that is critical", lambda: with_chunk(PNG, b"ABCD", b"data"), DATA),
        Case("a text that inflates to 200 MB", lambda: with_chunk(PNG, b"zTXt", b"a\0\0" + zlib.compress(bytes(200_000_000))), DATA, "32 MB is the limit"),
        Case("cut in the middle", lambda: PNG[: len(PNG) // 2], DATA),
    ],
    "WebP": [
        Case("lossy", lambda: WEBP, P),
        Case("lossless", lambda: save(PHOTO, "WEBP", lossless=True), P),
        Case("lossy with alpha", lambda: save(make_picture(1, SIZE, "RGBA"), "WEBP"), P),
        Case("lossless with alpha", lambda: save(make_picture(1, SIZE, "RGBA"), "WEBP", lossless=True), P),
        Case("animated", lambda: animation("WEBP"), P, "the first frame"),
        Case("garbage behind it", lambda: WEBP + b"garbage", P),
        Case("a container that says less than there is", lambda: WEBP[:4] + struct.pack("<I", len(WEBP) - 40) + WEBP[8:], DATA),
        Case("16,384 x 16,384 pixels", lambda: webp_of(16384, 16384), DATA, "nothing is allocated"),
        Case("a header and nothing behind it", lambda: webp_of(64, 64), DATA),
        Case("cut in the middle", lambda: WEBP[: len(WEBP) // 2], DATA),
    ],
    "Others, through Pillow": [
        Case("BMP", lambda: save(PHOTO, "BMP"), P),
        Case("BMP, 1 bit", lambda: save(PHOTO.convert("1"), "BMP"), P),
        Case("GIF", lambda: save(PHOTO.convert("P"), "GIF"), P),
        Case("GIF, animated", lambda: animation("GIF"), P, "the first frame"),
        Case("TIFF", lambda: tiff("RGB"), P),
        Case("TIFF, CMYK", lambda: tiff("CMYK"), P),
        Case("TIFF, 16-bit gray", lambda: tiff("I;16"), P, "clipped to 255"),
        Case("TIFF, several pages", lambda: animation("TIFF"), P, "the first"),
        *(Case(f"PNM, {name}", lambda data=data: data, P) for name, data in PNM.items()),
        Case("PFM", lambda: save(PHOTO.convert("L").convert("F"), "PPM"), P, "levels as Pillow converts them"),
        Case("TGA", lambda: save(PHOTO, "TGA"), P),
        Case("TGA, gray", lambda: save(PHOTO.convert("L"), "TGA"), P),
        Case("TGA, palette", lambda: save(PHOTO.convert("P"), "TGA"), P),
        Case("TGA, run lengths, alpha", lambda: save(make_picture(1, SIZE, "RGBA"), "TGA", compression="tga_rle"), P),
        Case("TGA, without the footer", lambda: save(PHOTO, "TGA")[: 18 + 3 * SIZE[0] * SIZE[1]], P, "as version 1 has it"),
        Case("TGA, cut in the middle", lambda: save(PHOTO, "TGA")[:3000], DATA),
        Case("PCX", lambda: save(PHOTO, "PCX"), P),
        Case("SGI", lambda: save(PHOTO, "SGI"), P),
        Case("ICO", lambda: save(PHOTO, "ICO"), P),
        Case("ICNS", lambda: save(PHOTO.resize((64, 64)), "ICNS"), P),
        Case("DDS", lambda: save(PHOTO, "DDS"), P),
        Case("MSP", lambda: save(PHOTO.convert("1"), "MSP"), P),
        Case("BLP", lambda: save(PHOTO.convert("P"), "BLP"), P),
        Case("JPEG 2000", lambda: save(PHOTO, "JPEG2000"), P),
        Case("TIFF, cut in the middle", lambda: tiff("RGB")[:3000], DATA),
        Case("BMP, cut in the middle", lambda: save(PHOTO, "BMP")[:3000], DATA),
        Case("BMP of 60,000 x 60,000 pixels", lambda: (lambda b: b[:18] + struct.pack("<ii", 60000, 60000) + b[26:])(save(PHOTO, "BMP")), DATA, "nothing is allocated"),
        Case("JPEG XL", lambda: b"\xff\x0a" + bytes(100), NO),
        Case("HEIC", lambda: b"\0\0\0\x18ftypheic" + bytes(100), NO),
    ],
    "No pictures": [
        Case("a file of 0 bytes", lambda: b"", DATA),
        Case("one byte", lambda: b"\xff", DATA),
        Case("an HTML page", lambda: b"<html>404</html>", DATA),
        Case("a WAV file", lambda: b"RIFF\x24\0\0\0WAVEfmt " + bytes(20), DATA),
        Case("zeros", lambda: bytes(1000), DATA),
    ],
}
# fmt: on


class Corpus:
    """Pictures as samples of a tar."""

    def __init__(self, folder: pathlib.Path, files: list[bytes]) -> None:
        self.tar = write_tar(folder / "x.tar", [(f"{i:04d}.img", data) for i, data in enumerate(files)])

    def open(self, mode: str = "RGB", **options: Any) -> hr.Dataset:
        return hr.open(self.tar, {"x": hr.image("img", mode=mode, **options).layout("NHWC")})


def by_pillow(data: bytes, mode: str) -> Optional[np.ndarray]:
    """None where Pillow refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data)).convert(mode)
    except Exception:
        return None
    return np.asarray(image).reshape(image.size[1], image.size[0], -1)


def happens(case: Case, folder: pathlib.Path) -> tuple[Optional[hr.Error], dict[str, np.ndarray]]:
    corpus = Corpus(folder, [case.data()])
    got = {}
    for mode in MODES:
        try:
            got[mode] = corpus.open(mode)[0]["x"]
        except hr.Error as e:
            assert not got
            return e, {}
    return None, got


def row_of(case: Case, error: Optional[hr.Error]) -> str:
    if error is None:
        words = "decoded" if case.gives == "ours" else "decoded as Pillow does"
    else:
        text = re.sub(r".*field 'x': ", "", str(error)).replace("|", "\\|")
        words = f"`hr.{type(error).__name__}`: {text}"
    return f"| {case.what} | {words} | {case.note} |"


def all_cases() -> Iterator[Any]:
    for title, cases in CASES.items():
        for case in cases:
            yield pytest.param(case, id=f"{title}: {case.what}")


@pytest.mark.parametrize("case", list(all_cases()))
def test_odd_files_do_what_the_table_says(case: Case, tmp_path: pathlib.Path) -> None:
    error, got = happens(case, tmp_path)
    if isinstance(case.gives, str):
        assert error is None, error
        data = case.data()
        for mode, picture in got.items():
            want = by_pillow(data, mode)
            assert case.gives == "ours" or want is not None
            if case.gives == P:
                assert picture.shape == want.shape
                assert np.abs(picture.astype(int) - want).max() <= 1
    else:
        assert type(error) is case.gives, error
        assert "\n" not in str(error)
    assert row_of(case, error) in DOCUMENT.read_text().splitlines(), "python tests/test_codecs_odd.py --write"


@pytest.mark.parametrize(
    "what", ["wrong checksum of the pixels", "wrong checksum of a text", "wrong checksum of the header", "no end mark"]
)
def test_not_strict_takes_a_png_whose_pixels_are_all_there(what: str, tmp_path: pathlib.Path) -> None:
    (case,) = (c for c in CASES["PNG"] if c.what == what)
    assert (Corpus(tmp_path, [case.data()]).open(strict=False)[0]["x"] == np.asarray(PHOTO)).all()


@pytest.mark.parametrize("name", ["JPEG", "progressive JPEG", "CMYK JPEG"])
def test_not_strict_takes_a_jpeg_as_far_as_it_goes(name: str, tmp_path: pathlib.Path) -> None:
    data = WHOLE[name]()
    whole = Corpus(tmp_path, [data]).open()[0]["x"].astype(int)
    samples = Corpus(tmp_path, [data[: len(data) * percent // 100] for percent in range(100)]).open(strict=False)
    decoded = 0
    for percent in range(100):
        try:
            got = samples[percent]["x"]
        except hr.DataError:
            assert decoded == 0 or name == "progressive JPEG"  # cut within a header, which scans have too
            continue
        decoded += 1
        if percent > 95 and name != "progressive JPEG":
            assert (got[:24] == whole[:24]).all()
    assert decoded > 40


def test_verify_names_damaged_pictures_of_every_kind(tmp_path: pathlib.Path) -> None:
    pictures = {"jpg": JPEG, "png": PNG, "webp": WEBP}
    members = [(f"{n}.{name}", data[: len(data) // (1 + n)]) for n in range(2) for name, data in pictures.items()]
    found = verify(str(write_tar(tmp_path / "x.tar", members)))
    assert (found.samples, found.pictures, found.bad_samples) == (2, 3, 1)
    assert sorted(b.field for b in found.bad) == sorted(pictures)


def test_verify_decodes_pictures_that_no_kind_names(tmp_path: pathlib.Path) -> None:
    """A pack of several extensions has them in ``image``; TIFF and BMP are bytes to the index. Other bytes stay bytes."""
    (tmp_path / "mixed").mkdir()
    for n, (name, data) in enumerate({"jpg": JPEG, "png": PNG, "tif": save(PHOTO, "TIFF"), "bmp": save(PHOTO, "BMP")}.items()):
        (tmp_path / "mixed" / f"{n}.{name}").write_bytes(data)
    hr.pack(tmp_path / "mixed", tmp_path / "packed", to="tar", shuffle=False)
    members = [
        (f"{n}.{name}", data) for n in range(9) for name, data in {"image": JPEG[: 9000 if n != 4 else 200], "bin": b"?"}.items()
    ]
    write_tar(tmp_path / "cut.tar", members)
    for path, pictures, bad in (("mixed", 4, []), ("packed", 4, []), ("cut.tar", 8, [(4, "image")])):
        found = verify(str(tmp_path / path))
        assert (path, found.pictures, [(b.sample, b.field) for b in found.bad]) == (path, pictures, bad)


def test_the_table_has_no_other_rows() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ") and not line.startswith("| file")]
    assert len(rows) == sum(len(cases) for cases in CASES.values()), "python tests/test_codecs_odd.py --write"


WHOLE = {
    "JPEG": lambda: JPEG,
    "progressive JPEG": lambda: save(PHOTO, "JPEG", progressive=True),
    "gray JPEG": lambda: save(PHOTO.convert("L"), "JPEG"),
    "CMYK JPEG": lambda: save(PHOTO.convert("CMYK"), "JPEG"),
    "PNG": lambda: PNG,
    "interlaced PNG": lambda: kind_of_png("colour 8", (24, 18), True),
    "palette PNG": lambda: save(PHOTO.convert("P"), "PNG"),
    "WebP": lambda: WEBP,
    "lossless WebP": lambda: save(PHOTO, "WEBP", lossless=True),
    "WebP with alpha": lambda: save(make_picture(1, SIZE, "RGBA"), "WEBP"),
    "animated WebP": lambda: animation("WEBP"),
    "TIFF": lambda: tiff("RGB"),
    "GIF": lambda: save(PHOTO.convert("P"), "GIF"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_cut_at_every_percent_it_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    data = WHOLE[name]()
    whole = Corpus(tmp_path, [data]).open()[0]["x"]
    samples = Corpus(tmp_path, [data[: len(data) * percent // 100] for percent in range(100)]).open()
    refused = 0
    for percent in range(100):
        try:
            got = samples[percent]["x"]
        except hr.DataError:
            refused += 1
        else:  # what is missing was not of the first frame, or GIF's end mark
            assert name in ("animated WebP", "GIF") and (got == whole).all(), percent
    assert refused == 100 or (name in ("animated WebP", "GIF") and refused >= 20)


@pytest.mark.parametrize("name", WHOLE)
def test_flipped_bits_are_refused_or_decoded_as_pillow_does(name: str, tmp_path: pathlib.Path) -> None:
    data, choose = WHOLE[name](), random.Random(3)
    files = [data]
    for _ in range(200):
        bad = bytearray(data)
        for _ in range(choose.choice([1, 1, 3])):
            bad[choose.randrange(len(bad))] ^= 1 << choose.randrange(8)
        files.append(bytes(bad))
    samples = Corpus(tmp_path, files).open()
    decoded = []
    for i in range(1, len(files)):
        try:
            decoded.append((i, samples[i]["x"]))
        except (hr.DataError, hr.Unsupported):
            continue
    if name.endswith("PNG"):
        assert not decoded
    for i, got in decoded:
        want = by_pillow(files[i], "RGB")
        if want is None:  # we do not read JPEG's end mark
            assert "JPEG" in name and files[i][-2:] != data[-2:]
            continue
        assert got.shape == want.shape
        difference = np.abs(got.astype(int) - want)
        # Coefficients that never come are guessed, by each version of libjpeg a little differently.
        assert difference.max() <= 1 or (name == "progressive JPEG" and difference.mean() < 1), i


HEAD = """# Odd pictures

How headrace decodes unusual and damaged pictures. Each line is a test; `python tests/test_codecs_odd.py --write` writes this page.
"Decoded as Pillow does" means: equal to `Image.open(...).convert(mode)` within one level, for `mode` "RGB", "L" and "RGBA".

For all pictures:

- **Cut files** are refused, wherever the cut is (tested at every percent), unless nothing of the first frame is missing.
- **Flipped bits.** PNG has checksums, so a flipped bit is always noticed. JPEG and WebP have none: damage that the decoder does not notice is decoded as Pillow decodes it (161 of
  200 flips in a JPEG).
- **Damaged JPEGs.** If libjpeg warns about damaged data, that is an error. `hr.image(f, strict=False)` decodes as much as there is and counts such pictures in
  `loader.stats()["damaged"]`; it reads what Pillow reads with a warning. Warnings that cannot change a pixel are no errors.
- **Crops.** headrace does not decode what lies below the crop (JPEG, WebP), so it may not notice damage there.
- **Bad samples.** A picture that cannot be decoded (`hr.DataError`), or is of a kind that headrace does not read (`hr.Unsupported`), is a bad sample: `bad_samples="replace"` takes
  another one.
- **Orientation.** `orient=True` uses the EXIF block of JPEG, PNG (`eXIf`) and WebP. If the value makes no sense, the picture stays as it is.
- **Other kinds** go through Pillow, if it is installed: one picture at a time, under the GIL. A notice says so once.
"""


def document() -> str:
    lines = [HEAD]
    for title, cases in CASES.items():
        lines += [f"## {title}", "", "| file | what happens | note |", "|---|---|---|"]
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                error, _ = happens(case, pathlib.Path(folder))
            if (error is None) != isinstance(case.gives, str):
                print(f"{title}: {case.what}: {error}", file=sys.stderr)
            lines.append(row_of(case, error))
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    DOCUMENT.write_text(document())
    print(f"{DOCUMENT}: {sum(len(c) for c in CASES.values())} cases")
