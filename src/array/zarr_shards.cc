// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_shards.h"

#include <algorithm>

#include "base/crc32c.h"

namespace headrace {
namespace {

constexpr uint64_t kRowBytes = 16;
constexpr uint64_t kAbsent = ~uint64_t{0};

// How many chunks a shard's index has rows for; nothing where that many do not fit into `most`.
std::optional<uint64_t> rows_of(const Extents& per_shard, uint64_t most) {
  uint64_t rows = 1;
  for (const int64_t n : per_shard) {
    if (n < 1 || rows > most / static_cast<uint64_t>(n)) return std::nullopt;
    rows *= static_cast<uint64_t>(n);
  }
  return rows <= most ? std::optional<uint64_t>(rows) : std::nullopt;
}

Result<Buffer> read_index(const ShardForm& form, const ZarrFile& shard, const std::string& path,
                          const Store& store) {
  const uint64_t check = form.is_checked ? 4 : 0;
  const uint64_t room = shard.bytes < check ? 0 : (shard.bytes - check) / kRowBytes;
  const std::optional<uint64_t> rows = rows_of(form.per_shard, room);
  if (!rows) return corrupt("is shorter than the index of a shard").in_file(path);
  const uint64_t bytes = *rows * kRowBytes + check;
  const uint64_t begin = form.at_start ? 0 : shard.bytes - bytes;
  Buffer index;
  HEADRACE_TRY(store.read_at(path, begin, bytes, index));
  const Bytes table = index.bytes().first(bytes - check);
  if (form.is_checked && load_le<uint32_t>(index.bytes().subspan(table.size())) != crc32c(table))
    return corrupt("the checksum of the shard's index is wrong").at(begin).in_file(path);
  return index;
}

// The chunks of one shard, each at its place in the grid of all.
Status note_chunks(const ShardForm& form, const ZarrFile& shard, uint32_t file, Bytes index,
                   std::vector<ChunkPlace>& places) {
  const size_t axes = form.chunks.size();
  Extents begin(axes);  // of the shard, in chunks
  uint64_t number = shard.chunk;
  for (size_t a = axes; a-- > 0;) {
    const auto extent = static_cast<uint64_t>(form.shards[a]);
    begin[a] = static_cast<int64_t>(number % extent) * form.per_shard[a];
    number /= extent;
  }
  Extents at(axes, 0);
  while (true) {
    uint64_t row = 0;
    uint64_t chunk = 0;
    for (size_t a = 0; a < axes; ++a) {
      row = row * static_cast<uint64_t>(form.per_shard[a]) + static_cast<uint64_t>(at[a]);
      chunk =
          chunk * static_cast<uint64_t>(form.chunks[a]) + static_cast<uint64_t>(begin[a] + at[a]);
    }
    const auto offset = load_le<uint64_t>(index.subspan(row * kRowBytes));
    const auto stored = load_le<uint64_t>(index.subspan(row * kRowBytes + 8));
    if (offset != kAbsent) {
      if (offset > shard.bytes || stored > shard.bytes - offset)
        return corrupt("the shard's index points past the end of the file").at(offset);
      places[chunk] = {file, 0, offset, stored};
    }
    size_t a = axes;
    while (a > 0 &&
           at[a - 1] + 1 == std::min(form.per_shard[a - 1], form.chunks[a - 1] - begin[a - 1]))
      at[--a] = 0;
    if (a == 0) return {};
    ++at[a - 1];
  }
}

Status check_form(const ShardForm& form) {
  const size_t axes = form.chunks.size();
  if (form.shards.size() != axes || form.per_shard.size() != axes)
    return internal("ranks of a shard's grids differ");
  // The grid of shards is as large as the chunks want, and no larger: places are then in bounds.
  for (size_t a = 0; a < axes; ++a)
    if (form.per_shard[a] < 1 || form.chunks[a] < 1 ||
        form.shards[a] != (form.chunks[a] - 1) / form.per_shard[a] + 1)
      return internal("a grid of shards that does not fit that of chunks");
  return {};
}

}  // namespace

Result<std::vector<ChunkPlace>> read_shard_indexes(const ShardForm& form,
                                                   const std::vector<ZarrFile>& shards,
                                                   const std::vector<std::string>& files,
                                                   const Store& store, const RunJobs& run) {
  if (files.size() != shards.size()) return internal("a path for each shard is wanted");
  const auto count = static_cast<size_t>(elements_in(form.chunks));
  std::vector<ChunkPlace> places(count);
  if (count == 0) return places;
  HEADRACE_TRY(check_form(form));
  const auto shard_count = static_cast<uint64_t>(elements_in(form.shards));
  HEADRACE_TRY(run(shards.size(), [&](size_t i) -> Status {
    if (shards[i].chunk >= shard_count) return internal("a shard outside of the grid");
    HEADRACE_ASSIGN(const Buffer index, read_index(form, shards[i], files[i], store));
    const Status s = note_chunks(form, shards[i], static_cast<uint32_t>(i), index.bytes(), places);
    return s.ok() ? s : s.in_file(files[i]);
  }));
  return places;
}

}  // namespace headrace
