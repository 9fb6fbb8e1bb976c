// SPDX-License-Identifier: Apache-2.0
//
// A C face over codec/ and transform/, so that Python can compare them with Pillow and
// torchvision without the module (tests/pixels.py builds and loads it).
#include <cstring>
#include <map>

#include "codec/encode.h"
#include "codec/image.h"
#include "transform/kernels/resample.h"
#include "transform/program/program.h"
#include "transform/transform.h"

using namespace headrace;

namespace headrace {
extern const TransformEntry random_resized_crop_transform;
}

namespace {

thread_local std::string last_error;

int report(const Status& status) {
  last_error = status.ok() ? "" : status.text();
  return status.ok() ? 0 : 1;
}

// Copies a region out as packed rows.
class CopySink final : public ImageSink {
 public:
  CopySink(ImageRequest request, uint8_t* out) : request_(request), out_(out) {}
  Result<ImageRequest> begin(const ImageInfo& info) override {
    if (request_.region.width == 0) request_.region = {0, 0, info.width, info.height};
    return request_;
  }
  Status rows(const Rows& rows) override {
    const size_t bytes = static_cast<size_t>(request_.region.width * channels_of(request_.mode));
    for (int r = 0; r < rows.count; ++r, out_ += bytes)
      std::memcpy(out_, rows.first + static_cast<size_t>(r) * rows.stride, bytes);
    return {};
  }

 private:
  ImageRequest request_;
  uint8_t* out_;
};

class BufferSlot final : public Slot {
 public:
  BufferSlot(MutableBytes out, int64_t* shape) : out_(out), shape_(shape) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    std::copy(shape.begin(), shape.end(), shape_);
    return out_;
  }

 private:
  MutableBytes out_;
  int64_t* shape_;
};

// "name=value;name=1,2,3": numbers where they parse as such.
Params params_from(std::string_view text) {
  std::map<std::string, Param> values;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view item = text.substr(0, end);
    const size_t eq = item.find('=');
    const std::string value(item.substr(eq + 1));
    Param p = value;
    if (value == "true" || value == "false") {
      p = value == "true";
    } else if (!value.empty() &&
               (std::isdigit(static_cast<unsigned char>(value[0])) || value[0] == '-')) {
      std::vector<double> numbers;
      for (const char* at = value.c_str(); *at != '\0';) {
        char* stop = nullptr;
        numbers.push_back(std::strtod(at, &stop));
        at = *stop == ',' ? stop + 1 : stop;
      }
      if (numbers.size() == 1)
        p = numbers[0];
      else
        p = numbers;
    }
    values[std::string(item.substr(0, eq))] = p;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Params(values);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* hr_error() {
  return last_error.c_str();
}

EXPORT int hr_probe(const std::byte* data, size_t n, int* whc) {
  auto codec = find_image_codec({data, n});
  if (!codec.ok()) return report(codec.status());
  auto info = codec.value()->probe({data, n});
  if (!info.ok()) return report(info.status());
  whc[0] = info.value().width, whc[1] = info.value().height, whc[2] = info.value().channels;
  return report({});
}

EXPORT int hr_decode(const std::byte* data, size_t n, const int* box, int channels, int shrink,
                     uint8_t* out) {
  auto codec = find_image_codec({data, n});
  if (!codec.ok()) return report(codec.status());
  CopySink sink({{box[0], box[1], box[2], box[3]}, static_cast<PixelMode>(channels), shrink}, out);
  return report(codec.value()->decode({data, n}, {}, sink));
}

EXPORT int hr_encode(const char* name, const uint8_t* pixels, int width, int height, int channels,
                     size_t stride, int quality, int lossless, std::byte* out, size_t* size) {
  auto encoder = find_image_encoder(name);
  if (!encoder.ok()) return report(encoder.status());
  auto file = encoder.value()->encode(
      {pixels, width, height, static_cast<PixelMode>(channels), stride}, {quality, lossless != 0});
  if (!file.ok()) return report(file.status());
  if (file.value().size() > *size) return report(internal("no room"));
  std::memcpy(out, file.value().data(), file.value().size());
  *size = file.value().size();
  return report({});
}

// box, size, window: x y w h | w h | x y w h.
EXPORT void hr_resample(const uint8_t* in, int width, int channels, const int* v, int filter,
                        int flip, int dtype, int packed, const float* scale, const float* bias,
                        int scalar, std::byte* out, size_t out_bytes) {
  View view{{v[0], v[1], v[2], v[3]},
            {v[4], v[5]},
            static_cast<Filter>(filter),
            {v[6], v[7], v[8], v[9]},
            flip != 0};
  PixelOutput store;
  store.dtype = static_cast<DType>(dtype);
  store.layout = packed != 0 ? Layout::kNHWC : Layout::kNCHW;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
    store.scale[c] = scale[c], store.bias[c] = bias[c];
  Resampler r(scalar != 0 ? scalar_kernels() : vector_kernels());
  const Box region = r.begin(view, 1, channels, store, {out, out_bytes});
  const size_t stride = static_cast<size_t>(width) * static_cast<size_t>(channels);
  r.rows({in + static_cast<size_t>(region.y) * stride + static_cast<size_t>(region.x * channels),
          stride, region.height});
}

// n boxes (x, y, width, height) as random_resized_crop(224) draws them.
EXPORT void hr_draw_crops(int width, int height, int n, uint64_t seed, int* out) {
  const auto step = random_resized_crop_transform.make(Params({{"size", int64_t{224}}})).value();
  const auto& crop = *std::get<std::unique_ptr<const Geometric>>(step);
  for (int i = 0; i < n; ++i, out += 4) {
    const Box b = crop.view({width, height}, Rng(Key(seed).with(static_cast<uint64_t>(i)))).box;
    out[0] = b.x, out[1] = b.y, out[2] = b.width, out[3] = b.height;
  }
}

// steps: "name:params|name:params".
EXPORT void* hr_make(const char* name, const char* what, const char* options, const char* steps) {
  FieldSpec spec;
  spec.name = name;
  spec.what = what;
  spec.options = params_from(options);
  for (std::string_view rest = steps; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    const std::string_view item = rest.substr(0, end);
    const size_t colon = std::min(item.find(':'), item.size());
    spec.steps.push_back({std::string(item.substr(0, colon)),
                          params_from(item.substr(std::min(colon + 1, item.size())))});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  auto decoder = make_decoder(spec);
  report(decoder.status());
  return decoder.ok() ? std::move(decoder).value().release() : nullptr;
}
EXPORT void hr_free(void* decoder) {
  delete static_cast<Decoder*>(decoder);
}
EXPORT int hr_run(void* decoder, const std::byte* data, size_t n, uint64_t seed, int64_t* shape,
                  std::byte* out, size_t out_bytes) {
  BufferSlot slot({out, out_bytes}, shape);
  SampleContext context;
  context.begin(Key(seed), 0, 0, 0, {});
  const Bytes value{data, n};
  return report(static_cast<Decoder*>(decoder)->run({&value, 1}, context, slot));
}
