// SPDX-License-Identifier: Apache-2.0
#include "format/inline_number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace headrace {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

template <typename T>
Result<T> number_of(const RecordValue& value, std::string_view what) {
  if (value.storage == Storage::kInline && value.bytes.size() == 8)
    return value.kind == Kind::kInt ? static_cast<T>(load_le<int64_t>(value.bytes))
                                    : static_cast<T>(load_le<double>(value.bytes));
  std::string_view text = trimmed(as_text(value.bytes));
  // from_chars takes no plus sign; the decoders do.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return corrupt(fmt::format("field '{}' holds no {}", value.field, what));
  return number;
}

}  // namespace

Result<int64_t> int_of(const RecordValue& value) {
  return number_of<int64_t>(value, "integer of 64 bits");
}

Result<double> float_of(const RecordValue& value) {
  return number_of<double>(value, "number");
}

Result<float> float32_of(const RecordValue& value) {
  HEADRACE_ASSIGN(const double number, float_of(value));
  if (std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max())
    return unsupported(
        fmt::format("field '{}' holds {}, and the format has 32 bits for such numbers, too few for "
                    "it; leave the field out, or write tar",
                    value.field, number));
  return static_cast<float>(number);
}

}  // namespace headrace
