// SPDX-License-Identifier: Apache-2.0
#include "api/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/inside.h"
#include "base/buffer.h"

namespace hr {
namespace {

// Keeps one value for the function that follows.
class KeptValue final : public headrace::Slot {
 public:
  explicit KeptValue(headrace::DType dtype) : dtype_(dtype) {}
  headrace::Result<headrace::MutableBytes> room(std::span<const int64_t> shape) override {
    shape_.assign(shape.begin(), shape.end());
    size_t bytes = headrace::size_of(dtype_);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    buffer_ = std::make_shared<headrace::Buffer>(bytes);
    return buffer_->span();
  }
  Array array() const { return to_array(buffer_, dtype_, shape_); }

 private:
  const headrace::DType dtype_;
  headrace::SharedBuffer buffer_;
  std::vector<int64_t> shape_;
};

// Immutable, hence thread-safe, as far as the function is.
class CallingDecoder final : public headrace::Decoder {
 public:
  CallingDecoder(headrace::DecoderPointer inner, std::function<Array(const Array&)> function,
                 headrace::TensorSpec output)
      : inner_(std::move(inner)), function_(std::move(function)), output_(std::move(output)) {}
  const headrace::TensorSpec& output() const override { return output_; }
  size_t inputs() const override { return inner_->inputs(); }
  uint64_t damaged() const override { return inner_->damaged(); }

  headrace::Status run(std::span<const headrace::Bytes> inputs, headrace::SampleContext& context,
                       headrace::Slot& out) const override {
    KeptValue value(inner_->output().dtype);
    HEADRACE_TRY(inner_->run(inputs, context, value));
    Array result;
    try {  // a function may say that a sample is bad, and only by this exception
      result = function_(value.array());
    } catch (const DataError& e) {
      return headrace::corrupt(std::string("the function given to map() threw ") + e.what());
    } catch (const std::exception& e) {
      return headrace::invalid(std::string("the function given to map() threw ") + e.what());
    }
    return copy(result, out);
  }

 private:
  headrace::Status copy(const Array& result, headrace::Slot& out) const {
    if (result.dtype != headrace::dtype_name(output_.dtype))
      return headrace::invalid(fmt::format("the function given to map() gave {}, and declared {}",
                                           result.dtype, headrace::dtype_name(output_.dtype)));
    auto room = out.room(result.shape);
    // A function's mistake is not bad data: it is never replaced by another sample.
    if (!room.ok())
      return headrace::invalid("the function given to map(): " +
                               std::string(room.status().message()));
    if (room.value().size() != result.bytes)
      return headrace::invalid(
          fmt::format("the function given to map() gave {} bytes for a shape of {}", result.bytes,
                      room.value().size()));
    std::copy(result.data, result.data + result.bytes, room.value().begin());
    return {};
  }

  const headrace::DecoderPointer inner_;
  const std::function<Array(const Array&)> function_;
  const headrace::TensorSpec output_;
};

}  // namespace

std::function<headrace::Result<headrace::DecoderPointer>(headrace::DecoderPointer)> call_wrapper(
    const std::string& output, const MapFunction& map) {
  const auto dtype = headrace::dtype_named(map.dtype);
  if (!dtype || !map.function)
    raise(headrace::invalid(fmt::format(
        "field '{}': map() takes a function and the type that it gives, like \"f32\", not '{}'",
        output, map.dtype)));
  const headrace::TensorSpec spec{*dtype, map.shape};
  return [function = map.function,
          spec](headrace::DecoderPointer inner) -> headrace::Result<headrace::DecoderPointer> {
    return headrace::DecoderPointer(
        std::make_shared<CallingDecoder>(std::move(inner), function, spec));
  };
}

}  // namespace hr
