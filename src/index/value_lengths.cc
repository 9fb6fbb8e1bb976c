// SPDX-License-Identifier: Apache-2.0
#include "index/value_lengths.h"

#include <fmt/format.h>

#include <limits>

namespace headrace {
namespace {

// Bytes of the only value; nothing where the request does not say it.
std::optional<uint64_t> bytes_of(const Request& request) {
  uint64_t sum = 0;
  for (size_t p = 0; p < request.pieces.size(); ++p) {
    const Piece& piece = request.pieces[p];
    if (p > 0 && !piece.continues) return std::nullopt;
    if (piece.length == kRow) return std::nullopt;
    if (piece.length != kWholeFile) {
      sum += piece.length;
      continue;
    }
    if (piece.unit == kInlineUnit) {
      sum += request.inline_bytes.size() - piece.begin;
      continue;
    }
    const Unit& unit = request.units[piece.unit];
    if (unit.encoding != 0 || unit.stored_bytes == kWholeFile) return std::nullopt;
    sum += unit.stored_bytes - piece.begin;
  }
  return sum;
}

}  // namespace

Result<std::optional<std::vector<uint32_t>>> value_lengths(const Source& source, uint32_t field,
                                                           uint64_t item_bytes,
                                                           const std::atomic<bool>* cancel) {
  if (source.assembles(field) || source.schema()[field].many)
    return std::optional<std::vector<uint32_t>>();
  const std::vector<uint32_t> fields{field};
  std::vector<uint32_t> out;
  out.reserve(source.size());
  Request request;
  for (uint64_t s = 0; s < source.size(); ++s) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      return cancelled("counting was ended");
    HEADRACE_TRY(source.needs({.sample = s, .fields = fields}, request));
    const std::optional<uint64_t> bytes = bytes_of(request);
    if (!bytes) return std::optional<std::vector<uint32_t>>();
    const uint64_t length = *bytes / item_bytes;
    if (length > std::numeric_limits<uint32_t>::max())
      return invalid(fmt::format("sample {} has {} elements, more than 2^32", s, length));
    out.push_back(static_cast<uint32_t>(length));
  }
  return std::optional(std::move(out));
}

}  // namespace headrace
