// SPDX-License-Identifier: Apache-2.0
//
// Whether a chip's JPEG engines give the CPU's pixels: a picture of each sampling, cropped, resized
// and flipped, is made by both and compared.
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "base/rng.h"
#include "codec/encode.h"
#include "device/device_stage.h"
#include "device/picture_work.h"
#include "transform/program/deferred_decoder.h"

namespace headrace {
namespace {

constexpr int kWidth = 163, kHeight = 121;  // odd: edges are where decoders differ
constexpr int kSide = 64;

// A slope with noise on it.
std::vector<uint8_t> test_pixels(int channels) {
  std::vector<uint8_t> out;
  Rng rng(Key(0).with("test picture"));
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < channels; ++c)
        out.push_back(static_cast<uint8_t>((x * (c + 1) + y * (3 - c)) % 192 +
                                           static_cast<int>(rng.uniform(0, 64))));
  return out;
}

Result<Buffer> test_picture(JpegSampling sampling) {
  const int channels = sampling == JpegSampling::kGray ? 1 : 3;
  const std::vector<uint8_t> pixels = test_pixels(channels);
  HEADRACE_ASSIGN(const ImageEncoder* jpeg, find_image_encoder("jpeg"));
  EncodeOptions options;
  options.sampling = sampling;
  return jpeg->encode({.pixels = pixels.data(),
                       .width = kWidth,
                       .height = kHeight,
                       .mode = channels == 1 ? PixelMode::kGray : PixelMode::kRgb},
                      options);
}

DeferredPicture test_record(JpegSampling sampling) {
  View view;
  view.box = {7, 5, 141, 109};
  view.size = {kSide, kSide};
  view.window = {0, 0, kSide, kSide};
  view.flip = true;
  DeferredPicture record = record_of({kWidth, kHeight}, view);
  record.sampling = static_cast<uint8_t>(sampling);
  record.slack = 256;
  return record;
}

DeferredSpec test_spec() {
  DeferredSpec spec;
  spec.result = {DType::kU8, {kSide, kSide, 3}};
  spec.channels_first = false;
  return spec;
}

// Ends only when the stream has: what it was given is read and written until then.
class Finished {
 public:
  Finished(const Gpu& gpu, const StreamPointer& stream) : gpu_(gpu), stream_(stream) {}
  ~Finished() { gpu_.driver().stream_synchronize(stream_->handle()); }
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;

 private:
  const Gpu& gpu_;
  const StreamPointer& stream_;
};

Status compare(const std::shared_ptr<Gpu>& gpu, const StreamPointer& stream,
               JpegSampling sampling) {
  HEADRACE_ASSIGN(const Buffer stored, test_picture(sampling));
  const DeferredPicture record = test_record(sampling);
  const DeferredSpec spec = test_spec();
  Column column;
  column.packing = Packing::kList;
  column.items.push_back(std::make_shared<Buffer>(sizeof record + stored.size() + record.slack));
  std::memset(column.items[0]->data(), 0, column.items[0]->size());
  std::memcpy(column.items[0]->data(), &record, sizeof record);
  std::memcpy(column.items[0]->data() + sizeof record, stored.data(), stored.size());
  PictureWork work(gpu, stream, uint64_t{16} << 20);
  InFlight in_flight;
  std::vector<std::byte> there(spec.result.bytes());
  std::vector<std::byte> here(spec.result.bytes());
  const Finished finished(*gpu, stream);
  HEADRACE_TRY(work.run(spec, column, in_flight));
  const CudaDriver& driver = gpu->driver();
  HEADRACE_TRY(driver.check(
      driver.copy_to_host(there.data(), reinterpret_cast<CudaAddress>(column.values->data()),
                          there.size(), stream->handle()),
      "cuMemcpyDtoHAsync"));
  HEADRACE_TRY(driver.check(driver.stream_synchronize(stream->handle()), "cuStreamSynchronize"));
  HEADRACE_TRY(render_deferred({record, {}, stored.bytes()}, spec.mode, spec.limits, here));
  if (here != there) return unsupported("the chip's pixels are not the CPU's");
  return {};
}

struct Found {
  unsigned samplings = 0;
  std::string why;
};

Found find(const std::shared_ptr<Gpu>& gpu) {
  Found found;
  const auto engines = gpu->engines();
  if (!engines.ok()) return {0, std::string(engines.status().message())};
  const auto kernels = gpu->kernels();
  if (!kernels.ok()) return {0, std::string(kernels.status().message())};
  const CudaCurrent current(gpu->driver(), gpu->context());
  const auto stream = DeviceStream::make(gpu->driver(), gpu->context());
  if (!stream.ok()) return {0, std::string(stream.status().message())};
  for (unsigned s = 0; s < kJpegSamplings; ++s) {
    const Status status = compare(gpu, stream.value(), static_cast<JpegSampling>(s));
    if (status.ok())
      found.samplings |= 1u << s;
    else
      found.why = std::string(status.message());
  }
  return found;
}

}  // namespace

unsigned samplings_of(const std::shared_ptr<Gpu>& gpu, std::string& why) {
  struct Known {
    Mutex mu;
    std::map<int, Found> found HEADRACE_GUARDED_BY(mu);
  };
  static auto& known = *new Known;
  MutexLock lock(known.mu);
  const auto at = known.found.find(gpu->index());
  const Found& found = at != known.found.end()
                           ? at->second
                           : known.found.emplace(gpu->index(), find(gpu)).first->second;
  why = found.why;
  return found.samplings;
}

}  // namespace headrace
