// SPDX-License-Identifier: Apache-2.0
#include "codec/number.h"

#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>

namespace headrace {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

// At most 40 bytes of what was found, for the error text; bytes that are not ASCII become '?'.
std::string quoted(std::string_view s) {
  std::string out = "'";
  for (const char c : s.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (s.size() > 40 ? "…'" : "'");
}

template <typename T>
Result<T> parse(Bytes value) {
  const std::string_view text = trimmed(as_text(value));
  // from_chars takes no plus sign; int() and float() in Python do.
  const size_t sign = text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0;
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + sign, end, number);
  const auto at = static_cast<uint64_t>(stop - as_text(value).data());
  if (text.empty()) return corrupt("no number in an empty text").at(0);
  if (error == std::errc::result_out_of_range)
    return corrupt(quoted(text) + " is out of range").at(at);
  if (error != std::errc() || stop != end) {
    const bool is_word = stop == text.data() && (text[0] >= 'A');
    return corrupt(quoted(text) + (std::integral<T> ? " is not an integer" : " is not a number") +
                   (is_word ? "; hr.text takes words" : ""))
        .at(at);
  }
  return number;
}

// The stored number as T, or an error where T cannot hold it.
template <std::integral T>
Result<T> as_type(int64_t v) {
  if (!std::in_range<T>(v)) return corrupt(std::to_string(v) + " is out of range").at(0);
  return static_cast<T>(v);
}

template <std::integral T>
Result<T> as_type(double v) {
  // The limits as doubles: 2^63 itself is representable and too large.
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(v >= low && v < high) || v != std::floor(v))
    return corrupt(std::to_string(v) + " is not an integer of the type asked for").at(0);
  return static_cast<T>(v);
}

template <std::floating_point T, typename V>
Result<T> as_type(V v) {
  return static_cast<T>(v);
}

template <typename T>
Result<T> read(NumberForm form, Bytes value) {
  if (form == NumberForm::kText) return parse<T>(value);
  if (value.size() != 8) return corrupt("an inline number has 8 bytes").at(0);
  if (form == NumberForm::kInt64) return as_type<T>(load_le<int64_t>(value));
  return as_type<T>(load_le<double>(value));
}

// Immutable, hence thread-safe.
template <typename T>
class Number final : public Decoder {
 public:
  Number(NumberForm form, DType dtype) : form_(form), spec_{dtype, {}} {}
  const TensorSpec& output() const override { return spec_; }
  bool keeps_elements() const override {
    return (form_ == NumberForm::kInt64 && std::same_as<T, int64_t>) ||
           (form_ == NumberForm::kFloat64 && std::same_as<T, double>);
  }
  Status run(std::span<const Bytes> inputs, SampleContext&, Slot& out) const override {
    HEADRACE_ASSIGN(const T number, read<T>(form_, inputs[0]));
    HEADRACE_ASSIGN(const MutableBytes room, out.room({}));
    store_le(room, number);
    return {};
  }

 private:
  const NumberForm form_;
  const TensorSpec spec_;
};

template <typename T>
std::unique_ptr<Decoder> make(NumberForm form, DType dtype) {
  return std::make_unique<Number<T>>(form, dtype);
}

}  // namespace

Result<std::unique_ptr<Decoder>> make_number_decoder(NumberForm form, DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return make<uint8_t>(form, dtype);
    case DType::kI8:
      return make<int8_t>(form, dtype);
    case DType::kU16:
      return make<uint16_t>(form, dtype);
    case DType::kI16:
      return make<int16_t>(form, dtype);
    case DType::kU32:
      return make<uint32_t>(form, dtype);
    case DType::kI32:
      return make<int32_t>(form, dtype);
    case DType::kU64:
      return make<uint64_t>(form, dtype);
    case DType::kI64:
      return make<int64_t>(form, dtype);
    case DType::kF32:
      return make<float>(form, dtype);
    case DType::kF64:
      return make<double>(form, dtype);
    default:
      return invalid("a number cannot be " + std::string(dtype_name(dtype)));
  }
}

}  // namespace headrace
