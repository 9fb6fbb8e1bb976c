// SPDX-License-Identifier: Apache-2.0
#include "loader/peek.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/npy.h"
#include "codec/elements.h"
#include "codec/json_array.h"
#include "engine/gather.h"
#include "engine/read_now.h"

namespace headrace {
namespace {

constexpr uint64_t kMostSamples = 64;
constexpr uint64_t kHeadBytes = 4096;  // more than NumPy writes before elements that are numbers
constexpr uint64_t kMostHeader = 1 << 20;

// A list of JSON is in `head` as a whole.
Result<StoredArray> described(Bytes head, uint64_t total) {
  if (begins_json_list(head)) {
    HEADRACE_ASSIGN(JsonArray array, parse_json_array(head));
    if (array.size() == 0) return corrupt("an empty list, which tells no type");
    return StoredArray{true, array.is_real ? DType::kF64 : DType::kI64, std::move(array.shape)};
  }
  HEADRACE_ASSIGN(NpyArray array, open_npy(head, total));
  return StoredArray{true, array.dtype, std::move(array.shape)};
}

// By ranges, of a value that lies in one piece.
Result<StoredArray> from_extent(const Source& source, const Request& request) {
  const Piece& piece = request.pieces[0];
  HEADRACE_ASSIGN(const StoredExtent value, extent_of(source, request.units[piece.unit], piece));
  Buffer head;
  HEADRACE_TRY(
      source.store().read_at(value.path, value.offset, std::min(value.length, kHeadBytes), head));
  if (begins_json_list(head.bytes())) {
    HEADRACE_TRY(source.store().read_at(value.path, value.offset, value.length, head));
    return described(head.bytes(), value.length);
  }
  HEADRACE_ASSIGN(const uint64_t wanted, npy_header_bytes(head.bytes()));
  if (wanted > head.size() && wanted <= kMostHeader)
    HEADRACE_TRY(
        source.store().read_at(value.path, value.offset, std::min(value.length, wanted), head));
  return described(head.bytes(), value.length);
}

Result<StoredArray> from_sample(const Source& source, uint64_t sample, uint32_t field,
                                bool& is_there) {
  const uint32_t fields[] = {field};
  Request request;
  HEADRACE_TRY(source.needs({.sample = sample, .fields = fields}, request));
  is_there = !request.pieces.empty();
  if (!is_there) return not_found("absent");
  const Piece& piece = request.pieces[0];
  const bool in_pieces = request.pieces.size() > 1 && request.pieces[1].continues;
  if (piece.unit != kInlineUnit && piece.length != kRow && !in_pieces &&
      request.units[piece.unit].encoding == 0)
    return from_extent(source, request);
  UnitCache units;
  Gather gather;
  HEADRACE_TRY(gather.add(source, {.sample = sample, .fields = fields}));
  gather.plan_reads({}, &units);
  read_now(gather, units);
  is_there = gather.values(0, 0) > 0;
  if (!is_there) return not_found("absent");
  HEADRACE_ASSIGN(const Bytes value, gather.value(0, 0));
  return described(value, value.size());
}

}  // namespace

Result<StoredExtent> extent_of(const Source& source, const Unit& unit, const Piece& piece) {
  StoredExtent out{.path = source.file_path(unit.file), .offset = unit.offset + piece.begin};
  out.length = unit.stored_bytes;
  if (out.length == kWholeFile) {
    HEADRACE_ASSIGN(const FileInfo info, source.store().stat(out.path));
    out.length = info.bytes;
  }
  out.length -= std::min(out.length, piece.begin);
  if (piece.length != kWholeFile) out.length = std::min(out.length, piece.length);
  return out;
}

Result<StoredArray> first_npy(const Source& source, uint32_t field) {
  Status first;
  for (uint64_t i = 0; i < std::min(source.size(), kMostSamples); ++i) {
    bool is_there = false;
    auto found = from_sample(source, i, field, is_there);
    if (found.ok()) return found;
    if (is_there && first.ok()) first = found.status().of_sample(i, source.key(i));
    // Bad data is another sample's matter; a storage error or objects will not get better.
    if (is_there && found.status().code() != Code::kCorrupt) return first;
    if (!is_there && found.status().code() != Code::kNotFound) return found;
  }
  const std::string& name = source.schema()[field].name;
  if (first.ok())
    return invalid(fmt::format("none of the first {} samples has a '{}': say dtype= and shape=",
                               std::min(source.size(), kMostSamples), name));
  const Kind kind = source.schema()[field].kind;
  if (kind == Kind::kNpy) return first;
  if (kind == Kind::kJson)
    return first.with(fmt::format(
        "'{}' is JSON, and not a list of numbers in every sample; take it with hr.json(\"{}\")",
        name, name));
  if (kind == Kind::kText)
    return first.with(fmt::format("'{}' is text; take it with hr.text(\"{}\")", name, name));
  if (name == "pt" || name == "pth" || name.ends_with(".pt") || name.ends_with(".pth"))
    return first.with(
        fmt::format("'{}' is a file of torch.save; read it with hr.bytes(\"{}\").map(lambda b: "
                    "torch.load(io.BytesIO(b)))",
                    name, name));
  return first.with(
      fmt::format("'{}' is {}: say what it holds, dtype=\"f32\"", name, kind_name(kind)));
}

}  // namespace headrace
