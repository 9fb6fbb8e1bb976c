// SPDX-License-Identifier: Apache-2.0
#include "codec/text.h"

#include "base/utf8.h"

namespace headrace {
namespace {

// Immutable, hence thread-safe.
class AsIs final : public Decoder {
 public:
  explicit AsIs(bool text) : text_(text) {}
  const TensorSpec& output() const override { return spec_; }
  bool copies() const override { return true; }
  Status check(Bytes value) const override {
    const size_t good = text_ ? valid_utf8_prefix(value) : value.size();
    return good < value.size() ? corrupt("not UTF-8; hr.bytes takes it as it is").at(good)
                               : Status();
  }
  Status run(std::span<const Bytes> inputs, SampleContext&, Slot& out) const override {
    const Bytes value = inputs[0];
    HEADRACE_TRY(check(value));
    const std::array<int64_t, 1> shape{static_cast<int64_t>(value.size())};
    HEADRACE_ASSIGN(const MutableBytes room, out.room(shape));
    if (!value.empty()) std::memcpy(room.data(), value.data(), value.size());
    return {};
  }

 private:
  const bool text_;
  const TensorSpec spec_{DType::kU8, {kVaries}};
};

}  // namespace

std::unique_ptr<Decoder> make_text_decoder() {
  return std::make_unique<AsIs>(true);
}
std::unique_ptr<Decoder> make_bytes_decoder() {
  return std::make_unique<AsIs>(false);
}

}  // namespace headrace
