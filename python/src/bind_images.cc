// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "codec/encode.h"
#include "codec/image.h"
#include "convert.h"
#include "errors.h"
#include "pack/recode.h"
#include "pillow_codec.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

nb::tuple row(const ImageCodec& codec) {
  const auto text = [](std::string_view s) { return nb::str(s.data(), s.size()); };
  return nb::make_tuple(text(codec.name), text(codec.doc), text(codec.library),
                        find_image_encoder(codec.name).ok());
}

// (name, doc, library, whether it is encoded too) of each.
nb::list image_codecs() {
  nb::list out;
  for (const ImageCodec* codec : all_image_codecs()) out.append(row(*codec));
  out.append(row(pillow_codec));
  return out;
}

nb::tuple image_size(const nb::bytes& data) {
  const Bytes bytes = as_bytes({data.c_str(), data.size()});
  const ImageCodec* codec = unwrap(find_image_codec(bytes));
  const ImageInfo info = unwrap(codec->probe(bytes));
  return nb::make_tuple(info.width, info.height);
}

// The pixels of a picture, its longer side at most `max_side`, as the bytes of a .npy [h, w, c].
nb::object shrunk_picture(const nb::bytes& data, int max_side) {
  const Bytes bytes = as_bytes({data.c_str(), data.size()});
  std::vector<std::byte> out;
  Status status;
  {
    nb::gil_scoped_release release;
    status = recode({.max_side = max_side, .raw = true}, bytes, out);
  }
  check(status);
  return to_bytes(out);
}

using Pixels = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// u8 [h, w, 1, 3 or 4] as the bytes of a picture.
nb::object encode_picture(const Pixels& pixels, const std::string& kind, int quality) {
  const auto channels = pixels.shape(2);
  if (channels != 1 && channels != 3 && channels != 4)
    check(invalid("a picture has 1, 3 or 4 channels, not " + std::to_string(channels)));
  const ImageEncoder* encoder = unwrap(find_image_encoder(kind));
  const Picture picture{.pixels = pixels.data(),
                        .width = static_cast<int>(pixels.shape(1)),
                        .height = static_cast<int>(pixels.shape(0)),
                        .mode = static_cast<PixelMode>(channels)};
  return to_bytes(unwrap(encoder->encode(picture, {.quality = quality})).bytes());
}

}  // namespace

void bind_images(nb::module_& m) {
  set_fallback_image_codec(&pillow_codec);
  m.def("image_codecs", &image_codecs);
  m.def("image_size", &image_size);
  m.def("shrunk_picture", &shrunk_picture, nb::arg("data"), nb::arg("max_side"));
  m.def("encode_picture", &encode_picture, nb::arg("pixels"), nb::arg("kind"), nb::arg("quality"));
}

}  // namespace headrace::py
