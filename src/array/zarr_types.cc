// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "base/npy.h"

namespace headrace {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kUnits = {
    {{"D", "days"},
     {"h", "hours"},
     {"m", "minutes"},
     {"s", "seconds"},
     {"ms", "milliseconds"},
     {"us", "microseconds"},
     {"ns", "nanoseconds"}}};

template <typename T>
bool parse_all(std::string_view text, T& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// "<M8[25s]": the unit, and how many of them.
void take_unit(std::string_view between, ZarrType& out) {
  const size_t digits = std::min(between.find_first_not_of("0123456789"), between.size());
  if (digits > 0 && !parse_all(between.substr(0, digits), out.unit_step)) out.unit_step = 0;
  out.unit = between.substr(digits);
}

void put(uint64_t bits, size_t bytes, std::vector<std::byte>& out) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(bits >> (8 * i)));
}

void put_real(double value, size_t bytes, std::vector<std::byte>& out) {
  if (bytes == 8) return put(std::bit_cast<uint64_t>(value), 8, out);
  if (bytes == 4) return put(std::bit_cast<uint32_t>(static_cast<float>(value)), 4, out);
  put(std::isnan(value) ? 0x7e00u : to_f16(static_cast<float>(value)), 2, out);
}

// Whole numbers exactly, whatever 64 bits hold; reals lose what comes after the point.
std::optional<uint64_t> whole_bits(const Json& value, bool is_date) {
  if (value.type() == Json::Type::kTrue) return 1;
  if (value.type() == Json::Type::kFalse) return 0;
  int64_t whole = 0;
  uint64_t large = 0;
  if (is_date && value.is_text() && value.text() == "NaT") return uint64_t{1} << 63;
  if (parse_all(value.text(), whole)) return static_cast<uint64_t>(whole);
  if (parse_all(value.text(), large)) return large;
  const std::optional<double> real = zarr_number(value);
  if (!real || !(std::abs(*real) < 9.2e18)) return std::nullopt;
  return static_cast<uint64_t>(static_cast<int64_t>(*real));
}

// "0x7fc00000": the bits of one element.
Result<std::vector<std::byte>> fill_of_bits(std::string_view digits, size_t bytes) {
  std::vector<std::byte> out;
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || bytes > 8 ||
      (bytes < 8 && bits >> (8 * bytes) != 0))
    return corrupt(fmt::format("has a fill_value 0x{} that is no element", digits));
  put(bits, bytes, out);
  return out;
}

Result<std::vector<std::byte>> element_of(const Json& value, const ZarrType& type) {
  std::vector<std::byte> out;
  const auto wrong = [&] { return corrupt("has a fill_value that is no element of its type"); };
  if (type.kind == 'f') {
    const std::optional<double> real = zarr_number(value);
    if (!real) return wrong();
    put_real(*real, type.item_bytes, out);
  } else if (type.kind == 'c') {
    const bool is_pair = value.is_list() && value.items().size() == 2;
    const std::optional<double> real = zarr_number(is_pair ? value.items()[0] : value);
    const std::optional<double> imaginary = is_pair ? zarr_number(value.items()[1]) : 0.0;
    if (!real || !imaginary) return wrong();
    put_real(*real, type.item_bytes / 2, out);
    put_real(*imaginary, type.item_bytes / 2, out);
  } else {
    const std::optional<uint64_t> bits = whole_bits(value, type.kind == 'M' || type.kind == 'm');
    if (!bits) return wrong();
    put(type.kind == 'b' ? (*bits != 0 ? 1u : 0u) : *bits, type.item_bytes, out);
  }
  return out;
}

void add_inner(FileArray& out, int64_t extent, const char* name) {
  Array& array = *out.array;
  if (array.fortran && array.shape.size() > 1)
    out.why = fmt::format("its elements are {} in Fortran order; write it in C order", name);
  array.fortran = false;
  out.dims.emplace_back(name);
  array.shape.push_back(extent);
  array.chunk.push_back(extent);
  out.inner = 1;
}

}  // namespace

std::optional<DType> ZarrType::dtype() const {
  if (kind == 'b') return DType::kU8;
  if (kind == 'M' || kind == 'm') return DType::kI64;
  if (kind == 'S') return item_bytes > 0 ? std::optional(DType::kU8) : std::nullopt;
  if (kind == 'c')
    return item_bytes == 8    ? std::optional(DType::kF32)
           : item_bytes == 16 ? std::optional(DType::kF64)
                              : std::nullopt;
  if (kind != 'i' && kind != 'u' && kind != 'f') return std::nullopt;
  return dtype_named(fmt::format("{}{}", kind, 8 * item_bytes));
}

ZarrType zarr_type2(const Json& dtype) {
  ZarrType out;
  if (!dtype.is_text() || dtype.text().empty()) return out;
  std::string_view text = dtype.text();
  const size_t bracket = text.find('[');
  if (bracket != std::string_view::npos && text.ends_with(']')) {
    take_unit(text.substr(bracket + 1, text.size() - bracket - 2), out);
    text = text.substr(0, bracket);
  }
  if (text.ends_with('O')) {
    out.kind = 'O';
    return out;
  }
  const Result<NpyType> type = parse_npy_type(std::isalpha(static_cast<unsigned char>(text[0])) != 0
                                                  ? fmt::format("={}", text)
                                                  : std::string(text));
  if (!type.ok()) return out;
  out.kind = type.value().kind == 'U' ? 'O' : type.value().kind;
  out.big_endian = type.value().big_endian;
  out.item_bytes = static_cast<uint32_t>(type.value().item_bytes);
  return out;
}

Result<ZarrType> zarr_type3(const Json& data_type) {
  ZarrType out;
  const Json* named = data_type.is_object() ? data_type.find("name") : &data_type;
  if (named == nullptr || !named->is_text()) return corrupt("has a data_type without a name");
  const Json* options = data_type.find("configuration");
  const auto option = [&](std::string_view name) {
    return options == nullptr ? nullptr : options->find(name);
  };
  const std::string& name = named->text();
  if (name == "string" || name == "variable_length_utf8" || name == "fixed_length_utf32") {
    out.kind = 'O';
  } else if (name == "null_terminated_bytes" || name == "fixed_length_ascii") {
    const Json* length = option("length_bytes");
    const std::optional<uint64_t> bytes = length == nullptr ? std::nullopt : length->count();
    if (!bytes || *bytes > 1u << 30) return corrupt("has texts without length_bytes");
    out.kind = 'S';
    out.item_bytes = static_cast<uint32_t>(*bytes);
  } else if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
    out.kind = name == "numpy.datetime64" ? 'M' : 'm';
    out.item_bytes = 8;
    const Json* unit = option("unit");
    if (unit == nullptr || !unit->is_text()) return corrupt("has dates without a unit");
    out.unit = unit->text();
    if (const Json* scale = option("scale_factor"))
      out.unit_step = static_cast<int64_t>(scale->count().value_or(0));
  } else if (name == "bool") {
    out.kind = 'b';
    out.item_bytes = 1;
  } else {
    constexpr std::array<std::pair<std::string_view, char>, 4> kNames = {
        {{"uint", 'u'}, {"int", 'i'}, {"float", 'f'}, {"complex", 'c'}}};
    for (const auto& [word, kind] : kNames) {
      uint32_t bits = 0;
      if (!name.starts_with(word) || !parse_all(std::string_view(name).substr(word.size()), bits))
        continue;
      if (bits % 8 == 0 && bits > 0) out = {.kind = kind, .item_bytes = bits / 8};
      break;
    }
  }
  return out;
}

void take_zarr_type(const ZarrType& type, FileArray& out, Tree& said) {
  Array& array = *out.array;
  array.dtype = type.dtype().value_or(DType::kU8);
  array.big_endian = type.big_endian;
  if (type.kind == 'M' || type.kind == 'm') {
    for (const auto& [letter, word] : kUnits)
      if (type.unit == letter && type.unit_step == 1)
        said.set("units", Tree(type.kind == 'M' ? fmt::format("{} since 1970-01-01", word)
                                                : std::string(word)));
  } else if (type.kind == 'c') {
    add_inner(out, 2, "complex");  // real, imaginary
  } else if (type.kind == 'S') {
    out.kind = Kind::kText;
    array.text_end = TextEnd::kNuls;
    add_inner(out, type.item_bytes, "text");
    if (array.shape.size() > 2) out.why = "it has several texts of fixed length a sample";
  }
}

std::optional<double> zarr_number(const Json& value) {
  if (value.type() == Json::Type::kTrue) return 1;
  if (value.type() == Json::Type::kFalse) return 0;
  const std::string& text = value.text();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  double out = 0;
  return parse_all(text, out) ? std::optional(out) : std::nullopt;
}

Result<std::vector<std::byte>> zarr_fill(const Json* value, const ZarrType& type, bool big_endian) {
  std::vector<std::byte> out;
  if (value == nullptr || value->is_null()) {
    // Zeros; of dates no date, as zarr-python has it, and not 1970.
    if (type.kind != 'M' && type.kind != 'm') return out;
    out.resize(type.item_bytes);
    out[big_endian ? 0 : type.item_bytes - 1] = std::byte{0x80};
    return out;
  }
  if (value->is_text() && value->text().starts_with("0x")) {
    HEADRACE_ASSIGN(out, fill_of_bits(std::string_view(value->text()).substr(2), type.item_bytes));
  } else {
    HEADRACE_ASSIGN(out, element_of(*value, type));
  }
  const size_t part = type.kind == 'c' ? out.size() / 2 : out.size();
  for (size_t at = 0; big_endian && at < out.size(); at += part)
    std::reverse(out.begin() + static_cast<ptrdiff_t>(at),
                 out.begin() + static_cast<ptrdiff_t>(at + part));
  return out;
}

}  // namespace headrace
