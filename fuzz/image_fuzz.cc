// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a picture, a number and a text, the whole way into a slot.  The first byte
// chooses the program, the second names the draws.  Nothing may be written outside the room
// that was asked for; a picture may not cost more than its limit allows.

#include <map>
#include <vector>

#include "transform/program.h"

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
  out.push_back(make("image", {{"fast", true}}, {{"resize", Params({{"size", int64_t{5}}})}}));
  out.push_back(make("scalar", {}, {}));
  out.push_back(make("scalar", {{"dtype", std::string("f32")}}, {}));
  out.push_back(make("text", {}, {}));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kPrograms = programs();
  if (size < 2) return 0;
  const Decoder& decoder = *kPrograms[data[0] % kPrograms.size()];
  Room room(decoder.output());
  const Bytes value = std::as_bytes(std::span(data + 2, size - 2));
  const Status status = decoder.run(value, Key(data[1]), room);
  if (!status.ok() && status.place().offset > static_cast<int64_t>(value.size())) __builtin_trap();
  return 0;
}
