// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include <string>

#include "codec/encode.h"
#include "codec/image.h"
#include "errors.h"
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

}  // namespace

void bind_images(nb::module_& m) {
  set_fallback_image_codec(&pillow_codec);
  m.def("image_codecs", &image_codecs);
  m.def("image_size", &image_size);
}

}  // namespace headrace::py
