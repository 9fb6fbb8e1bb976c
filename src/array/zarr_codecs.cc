// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/npy.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 6> kPlain = {"zlib", "gzip",  "lz4",
                                                    "zstd", "blosc", "crc32c"};

// As text, for messages.
std::string shown(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "null";
    case Json::Type::kFalse:
      return "false";
    case Json::Type::kTrue:
      return "true";
    case Json::Type::kNumber:
      return value.text();
    case Json::Type::kText:
      return json_quoted(value.text());
    default:
      break;
  }
  std::string out;
  for (size_t i = 0; i < value.items().size() && out.size() < 200; ++i)
    out += (i > 0 ? ", " : "") +
           (value.is_object() ? json_quoted(value.names()[i]) + ": " : std::string()) +
           shown(value.items()[i]);
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

Status not_read(std::string_view name, const Json& options) {
  return unsupported(
      fmt::format("chunks went through '{}' as {}, which is not read; known are {}, shuffle, delta",
                  name, shown(options).substr(0, 200), fmt::join(kPlain, ", ")));
}

const std::string& text_of(const Json* value) {
  static const std::string kNone;
  return value == nullptr || !value->is_text() ? kNone : value->text();
}

// "dtype" and "astype" of a numcodecs filter.
ZarrType type_named(const Json* value) {
  return value == nullptr ? ZarrType() : zarr_type2(*value);
}

Status take_delta(const Json& options, FileArray& out) {
  const ZarrType before = type_named(options.find("dtype"));
  const Json* astype = options.find("astype");
  const ZarrType after = text_of(astype).empty() ? before : type_named(astype);
  const std::optional<DType> dtype = before.dtype();
  if (!dtype || before.kind != after.kind || before.item_bytes != after.item_bytes ||
      std::string_view("biuf").find(before.kind) == std::string_view::npos ||
      (before.big_endian && before.item_bytes > 1) || before.big_endian != after.big_endian)
    return not_read("delta", options);
  out.array->filters.push_back({ChunkFilter::kDelta, static_cast<uint32_t>(*dtype)});
  return {};
}

Status take_codec(std::string_view name, const Json& options, const ZarrType& type,
                  FileArray& out) {
  if (name.starts_with("numcodecs.")) name.remove_prefix(std::strlen("numcodecs."));
  if (name == "bitround") return {};  // rounded when it was written
  if (name == "delta") return take_delta(options, out);
  if (std::find(kPlain.begin(), kPlain.end(), name) != kPlain.end()) {
    out.array->filters.push_back({*chunk_filter_named(name), 0});
    return {};
  }
  if (name != "shuffle") return not_read(name, options);
  const Json* size = options.find("elementsize");
  const uint64_t bytes = size == nullptr ? type.item_bytes : size->count().value_or(0);
  if (bytes == 0 || bytes > 4096) return not_read(name, options);
  out.array->filters.push_back({ChunkFilter::kShuffle, static_cast<uint32_t>(bytes)});
  return {};
}

// NaN where there is none.
double number_named(std::string_view name, const Json& options) {
  const Json* said = options.find(name);
  return said == nullptr ? std::nan("") : zarr_number(*said).value_or(std::nan(""));
}

double fill_as_number(const std::vector<std::byte>& fill, const ZarrType& type) {
  std::vector<std::byte> bytes = fill;
  if (type.big_endian) std::reverse(bytes.begin(), bytes.end());
  if (bytes.size() == 4) return load_le<float>(bytes);
  if (bytes.size() == 8) return load_le<double>(bytes);
  return std::nan("");
}

// numcodecs' fixedscaleoffset, where it comes first, as packed numbers.
Status take_scaled(const Json& options, const ZarrType& type, FileArray& out) {
  const Json* astype = options.find("astype");
  const ZarrType stored = type_named(text_of(astype).empty() ? options.find("dtype") : astype);
  const double scale = number_named("scale", options);
  const double offset = number_named("offset", options);
  const std::optional<DType> dtype = stored.dtype();
  if (!dtype || (stored.kind != 'i' && stored.kind != 'u') || type.kind != 'f' ||
      !std::isfinite(scale) || scale == 0 || !std::isfinite(offset))
    return not_read("fixedscaleoffset", options);
  Array& array = *out.array;
  if (!array.fill.empty()) {
    // An element that is missing has the fill value as it was scaled.
    const double fill = fill_as_number(array.fill, type);
    const double scaled = std::isfinite(fill) ? std::nearbyint((fill - offset) * scale) : fill;
    const double bits = 8.0 * stored.item_bytes;
    const double low = stored.kind == 'u' ? 0 : -std::exp2(bits - 1);
    const double high = std::exp2(stored.kind == 'u' ? bits : bits - 1);
    if (!(scaled >= low && scaled < high) || scaled / scale + offset != fill)
      return unsupported("its fill value is none of the numbers that 'fixedscaleoffset' stores");
    const uint64_t whole = scaled < 0 ? static_cast<uint64_t>(static_cast<int64_t>(scaled))
                                      : static_cast<uint64_t>(scaled);
    array.fill.resize(stored.item_bytes);
    std::memcpy(array.fill.data(), &whole, array.fill.size());
    if (stored.big_endian) std::reverse(array.fill.begin(), array.fill.end());
  }
  array.dtype = *dtype;
  array.big_endian = stored.big_endian;
  array.packed = true;
  array.scale = 1.0 / scale;
  array.offset = offset;
  return {};
}

Status take_transpose(const Json* order, FileArray& out) {
  const size_t axes = out.array->shape.size();
  bool forward = text_of(order) == "C";
  bool backward = text_of(order) == "F";
  if (order != nullptr && order->is_list() && order->items().size() == axes) {
    forward = backward = true;
    for (size_t i = 0; i < axes; ++i) {
      const std::optional<uint64_t> axis = order->items()[i].count();
      forward = forward && axis == i;
      backward = backward && axis == axes - 1 - i;
    }
  }
  if (!forward && !backward)
    return unsupported(fmt::format("chunks transposed by {} are not read; C and F order are",
                                   order == nullptr ? "nothing" : shown(*order)));
  out.array->fortran = backward && axes > 1;
  return {};
}

}  // namespace

Status take_codecs2(const Json* filters, const Json* compressor, const ZarrType& type,
                    FileArray& out) {
  std::vector<const Json*> steps;
  if (filters != nullptr)
    for (const Json& codec : filters->items()) steps.push_back(&codec);
  if (compressor != nullptr && compressor->is_object()) steps.push_back(compressor);
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string& name = text_of(steps[i]->find("id"));
    if (name.empty()) return corrupt("has a codec without an id");
    if (name == "fixedscaleoffset" && i == 0) {
      HEADRACE_TRY(take_scaled(*steps[i], type, out));
    } else {
      HEADRACE_TRY(take_codec(name, *steps[i], type, out));
    }
  }
  return {};
}

Status take_codecs3(const Json& codecs, const ZarrType& type, FileArray& out, const Json*& shard) {
  for (const Json& codec : codecs.items()) {
    const std::string& name = text_of(codec.is_text() ? &codec : codec.find("name"));
    const Json* configuration = codec.find("configuration");
    const Json& options = configuration == nullptr ? codec : *configuration;
    if (name.empty()) return corrupt("has a codec without a name");
    if (name == "sharding_indexed") {
      const Json* inner = options.find("codecs");
      if (inner == nullptr) return corrupt("has shards without codecs");
      if (codecs.items().size() > 1) return unsupported("shards within another codec are not read");
      const Json* below = nullptr;
      HEADRACE_TRY(take_codecs3(*inner, type, out, below));
      if (below != nullptr) return unsupported("shards within shards are not read");
      shard = &options;
    } else if (name == "bytes") {
      out.array->big_endian = out.kind == Kind::kArray && text_of(options.find("endian")) == "big";
    } else if (name == "transpose") {
      HEADRACE_TRY(take_transpose(options.find("order"), out));
    } else {
      HEADRACE_TRY(take_codec(name, options, type, out));
    }
  }
  return {};
}

}  // namespace headrace
