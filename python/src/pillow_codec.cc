// SPDX-License-Identifier: Apache-2.0
#include "pillow_codec.h"

#include <nanobind/nanobind.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/buffer.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

nb::object module() {
  return nb::module_::import_("headrace.other_pictures");
}

const char* name_of(PixelMode mode) {
  switch (mode) {
    case PixelMode::kGray:
      return "L";
    case PixelMode::kRgb:
      return "RGB";
    case PixelMode::kRgba:
      return "RGBA";
    case PixelMode::kNumbers:
      return "P";
  }
  return "RGB";
}

// other_pictures.py raises Unsupported without Pillow; whatever else it raises is the data's fault.
Status failure(nb::python_error& e) {
  const std::string text = nb::str(e.value()).c_str();
  if (e.matches(PyExc_MemoryError)) return exhausted("Pillow: out of memory");
  if (e.matches(PyExc_NotImplementedError)) return unsupported(text);
  return corrupt(text);
}

// Calls `f` with the GIL; what it raises becomes a Status.
template <typename F>
Status with_gil(F&& f) {
  nb::gil_scoped_acquire gil;
  try {
    f();
    return {};
  } catch (nb::python_error& e) {
    return failure(e);
  } catch (const std::exception& e) {
    return internal(std::string("Pillow: ") + e.what());
  }
}

// A Pillow image.  Made and let go with the GIL.
class Opened {
 public:
  Opened() = default;
  ~Opened() {
    nb::gil_scoped_acquire gil;
    image_.reset();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Result<ImageInfo> open(Bytes bytes, bool orient) {
    ImageInfo info;
    HEADRACE_TRY(with_gil([&] {
      const std::string kind(picture_kind(bytes));
      image_ = module().attr("open")(nb::bytes(bytes.data(), bytes.size()), kind.c_str(), orient);
      const auto size = nb::cast<nb::tuple>(image_.attr("size"));
      info = {nb::cast<int>(size[0]), nb::cast<int>(size[1]), 3};
    }));
    return info;
  }

  // The region, rows without gaps.
  Status read(const ImageRequest& request, Buffer& out) {
    const size_t bytes = static_cast<size_t>(request.region.width) *
                         static_cast<size_t>(request.region.height) *
                         static_cast<size_t>(channels_of(request.mode));
    out.resize(bytes + kRowSlack);
    return with_gil([&] {
      const char* mode = name_of(request.mode);
      const Box& box = request.region;
      const nb::object got =
          module().attr("pixels")(image_, mode, box.x, box.y, box.width, box.height);
      char* data = nullptr;
      Py_ssize_t size = 0;
      if (PyBytes_AsStringAndSize(got.ptr(), &data, &size) != 0) throw nb::python_error();
      if (static_cast<size_t>(size) != bytes) throw std::runtime_error("another size than it said");
      std::memcpy(out.data(), data, bytes);
    });
  }

 private:
  nb::object image_;
};

bool sniff(Bytes head) {
  return !picture_kind(head).empty();
}

Result<ImageInfo> probe(Bytes bytes) {
  return Opened().open(bytes, false);
}

Status decode(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  Opened picture;
  HEADRACE_ASSIGN(const ImageInfo info, picture.open(bytes, options.orient));
  HEADRACE_TRY(check_size(picture_kind(bytes), info, options));
  HEADRACE_ASSIGN(const ImageRequest request, sink.begin(info));
  if (request.shrink != 1 || !contains(info.width, info.height, request.region))
    return internal("Pillow: the region lies outside the picture");
  Buffer pixels;
  HEADRACE_TRY(picture.read(request, pixels));
  return sink.rows(
      {reinterpret_cast<const uint8_t*>(pixels.data()),
       static_cast<size_t>(request.region.width) * static_cast<size_t>(channels_of(request.mode)),
       request.region.height});
}

}  // namespace

constinit const ImageCodec pillow_codec{
    .name = "other",
    .doc = "TIFF, BMP, GIF and what else Pillow opens; slow, one at a time",
    .library = "Pillow",
    .sniff = sniff,
    .probe = probe,
    .decode = decode,
    .exif = nullptr,
};

}  // namespace headrace::py
