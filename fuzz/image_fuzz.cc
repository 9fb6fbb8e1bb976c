// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a picture, a number and a text, the whole way into a slot.  The first byte
// chooses the program, the second names the draws, the third what the rest is: the value
// itself, or edits to a good picture, three bytes each (where, and what is flipped).  So the
// decoders behind a header are reached from the first second on.  Nothing may be written outside
// the room that was asked for; a picture may not cost more than its limit allows.

#include <map>
#include <vector>

#include "base/buffer.h"
#include "codec/encode.h"
#include "transform/program/program.h"

namespace {

using namespace headrace;

class Room final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    size_t n = bytes_;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    memory_ = std::vector<std::byte>(n);  // to the byte: AddressSanitizer watches the end
    return MutableBytes(memory_);
  }
  explicit Room(const TensorSpec& spec) : bytes_(size_of(spec.dtype)) {}

 private:
  const size_t bytes_;
  std::vector<std::byte> memory_;
};

std::unique_ptr<Decoder> make(std::string what, std::map<std::string, Param> options,
                              std::vector<Step> steps) {
  if (what == "image") options["max_pixels"] = int64_t{1} << 18;
  FieldSpec spec{.name = "f",
                 .what = std::move(what),
                 .options = Params(std::move(options)),
                 .steps = std::move(steps)};
  return make_decoder(spec).value();
}

std::vector<std::unique_ptr<Decoder>> programs() {
  const Step crop{"random_resized_crop", Params({{"size", int64_t{32}}})};
  const Step small{"resize", Params({{"size", int64_t{9}}, {"filter", std::string("bicubic")}})};
  const Step middle{"center_crop", Params({{"size", int64_t{40}}})};
  const Step normal{"normalize", Params({{"mean", 0.5}, {"std", 0.5}})};
  std::vector<std::unique_ptr<Decoder>> out;
  out.push_back(make("image", {}, {}));
  out.push_back(make("image", {}, {crop, {"random_flip", {}}, normal}));
  out.push_back(make("image", {{"mode", std::string("L")}}, {middle, small}));
  out.push_back(make("image", {{"mode", std::string("RGBA")}, {"orient", true}}, {crop}));
  out.push_back(
      make("image", {{"strict", false}}, {{"center_crop", Params({{"size", int64_t{8}}})}}));
  out.push_back(make("image", {{"mode", std::string("RGBA")}, {"strict", false}}, {small}));
  out.push_back(make("image", {{"mode", std::string("P")}, {"strict", false}}, {}));
  out.push_back(make("image", {{"fast", true}}, {{"resize", Params({{"size", int64_t{5}}})}}));
  out.push_back(make("scalar", {}, {}));
  out.push_back(make("scalar", {{"dtype", std::string("f32")}}, {}));
  out.push_back(make("text", {}, {}));
  return out;
}

// A picture of each kind that this build writes.
std::vector<Buffer> good_pictures() {
  std::vector<uint8_t> pixels(24 * 20 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i >> 7);
  std::vector<Buffer> out;
  for (const ImageEncoder* encoder : all_image_encoders())
    for (const PixelMode mode : {PixelMode::kGray, PixelMode::kRgb, PixelMode::kRgba})
      for (const bool lossless : {false, true})
        if (auto file = encoder->encode({pixels.data(), 24, 20, mode}, {90, lossless}); file.ok())
          out.push_back(std::move(file).value());
  return out;
}

// `edits` applied to the picture that `which` names.
std::vector<std::byte> edited(uint8_t which, Bytes edits) {
  static const auto kGood = good_pictures();
  if (kGood.empty()) return {};
  const Bytes good = kGood[which % kGood.size()].bytes();
  std::vector<std::byte> out(good.begin(), good.end());
  for (; edits.size() >= 3; edits = edits.subspan(3))
    out[load_le<uint16_t>(edits) % out.size()] ^= edits[2];
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kPrograms = programs();
  if (size < 3) return 0;
  const Decoder& decoder = *kPrograms[data[0] % kPrograms.size()];
  Room room(decoder.output());
  const Bytes rest = std::as_bytes(std::span(data + 3, size - 3));
  // To the byte, again.
  const std::vector<std::byte> value = data[2] % 2 == 0
                                           ? std::vector<std::byte>(rest.begin(), rest.end())
                                           : edited(data[2] / 2, rest);
  SampleContext context;
  context.begin(Key(data[1]), 0, 0, 0, {});
  const Bytes input = value;
  const Status status = decoder.run({&input, 1}, context, room);
  if (!status.ok() && status.place().offset > static_cast<int64_t>(value.size())) __builtin_trap();
  return 0;
}
