// SPDX-License-Identifier: Apache-2.0
#include "index/row_table.h"

#include <algorithm>

namespace headrace {

Result<RowTable> RowTable::open(Bytes unit) {
  RowTable table;
  table.unit_ = unit;
  if (unit.size() < 32) return corrupt("no table of rows: too short");
  const uint64_t room = (unit.size() - 32) / 8;
  table.rows_ = load_le<uint64_t>(unit);
  table.values_ = load_le<uint64_t>(unit.subspan(8));
  if (table.rows_ > room || table.values_ > room - table.rows_)
    return corrupt("no table of rows: it counts more than it holds");
  table.begins_at_ = 16 + 8 * (table.rows_ + 1);
  table.bytes_at_ = table.begins_at_ + 8 * (table.values_ + 1);
  return table;
}

uint64_t RowTable::values(uint64_t row) const {
  if (row >= rows_) return 0;
  const uint64_t begin = first(row);
  const uint64_t end = first(row + 1);
  return begin <= end && end <= values_ ? end - begin : 0;
}

Result<Bytes> RowTable::value(uint64_t row, uint64_t v) const {
  if (v >= values(row)) return corrupt("the index points past the end of its unit");
  const uint64_t at = begins_at_ + 8 * (first(row) + v);
  const uint64_t begin = number(at);
  const uint64_t end = number(at + 8);
  const Bytes bytes = unit_.subspan(bytes_at_);
  if (begin > end || end > bytes.size()) return corrupt("a table of rows does not parse");
  return bytes.subspan(begin, end - begin);
}

void RowTableBuilder::finish(Buffer& out) const {
  out.resize(16 + 8 * (firsts_.size() + begins_.size()) + bytes_.size());
  const MutableBytes all(out.data(), out.size());
  store_le(all, uint64_t{firsts_.size() - 1});
  store_le(all.subspan(8), uint64_t{begins_.size() - 1});
  std::byte* at = all.data() + 16;
  for (const auto* list : {&firsts_, &begins_}) {
    const Bytes raw = std::as_bytes(std::span(*list));
    at = std::copy(raw.begin(), raw.end(), at);
  }
  std::copy(bytes_.begin(), bytes_.end(), at);
}

}  // namespace headrace
