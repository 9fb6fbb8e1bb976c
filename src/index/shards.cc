// SPDX-License-Identifier: Apache-2.0
#include "index/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/number_lists.h"

namespace headrace {
namespace {

// The last of ascending starts that is not above `at`; empty shards share their start with the
// next.
size_t shard_of(const std::vector<uint64_t>& first, uint64_t at) {
  return static_cast<size_t>(std::upper_bound(first.begin(), first.end(), at) - first.begin()) - 1;
}

// One shard may have pairs and another not; one pictures of one kind and another of two; one
// numbers and another lists of them.
void widen(const Field& field, Field& known) {
  const bool many = known.many || field.many;
  if (is_list_of(known, field)) known = field;
  known.many = many;
  if (is_list_of(field, known)) return;
  if (known.kind != field.kind) known.kind = Kind::kBytes;
}

}  // namespace

ShardTable::ShardTable(std::string_view format, bool shares_units) {
  blocks_.shared = shares_units;
  hasher_.add(format).add(uint64_t{kCuttingRule});
}

Status ShardTable::add(const ShardRow& row) {
  if (row.files > UINT32_MAX - first_file_.back())
    return unsupported("more than 2^32 files in one data set");
  names_.add(row.name);
  places_.add(row.place);
  bytes_.push_back(row.bytes);
  value_bytes_.push_back(row.block_bytes);
  has_files_.push_back(row.has_files);
  first_sample_.push_back(first_sample_.back() + row.samples);
  first_file_.push_back(first_file_.back() + row.files);
  blocks_.samples.insert(blocks_.samples.end(), row.block_samples.begin(), row.block_samples.end());
  blocks_.bytes += row.block_bytes;
  hasher_.add(row.name).add(row.bytes).add(row.samples).add(row.block_samples.size());
  hasher_.add(row.file_names.high).add(row.file_names.low);
  return {};
}

size_t ShardTable::shard_of_sample(uint64_t sample) const {
  return shard_of(first_sample_, sample);
}

size_t ShardTable::shard_of_file(uint64_t file) const {
  return shard_of(first_file_, file);
}

Status merge_schema(const Schema& shard, Schema& all) {
  for (const Field& field : shard) {
    const auto known = std::find_if(
        all.begin(), all.end(), [&field](const Field& other) { return other.name == field.name; });
    if (known == all.end())
      all.push_back(field);
    else if (!same_values(*known, field))
      return invalid(
          fmt::format("field '{}' is {} here and {} in the shards before; write it with one type "
                      "in all of them, or open these shards by themselves",
                      field.name, field_text(field), field_text(*known)));
    else
      widen(field, *known);
  }
  return {};
}

}  // namespace headrace
