// SPDX-License-Identifier: Apache-2.0
#include "pack/chunk_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/parallel.h"
#include "storage/paths.h"
#include "storage/sink.h"

namespace headrace {
namespace {

constexpr uint64_t kNotThere = ~uint64_t{0};  // in the index of a shard

Extents in_grid(const Extents& at, const Extents& cell) {
  Extents out(at.size());
  for (size_t a = 0; a < at.size(); ++a) out[a] = at[a] / cell[a];
  return out;
}

// What is read and written in one go: shards where there are some.
const Extents& unit_of(const ArrayTarget& target) {
  return target.shard.empty() ? target.chunk : target.shard;
}

Status check_slab(const ArrayTarget& target, const Region& slab, Bytes data) {
  const Extents& unit = unit_of(target);
  bool fits = slab.begin.size() == target.shape.size() && slab.size.size() == target.shape.size();
  for (size_t a = 0; fits && a < unit.size(); ++a) {
    const int64_t end = slab.begin[a] + slab.size[a];
    fits = slab.begin[a] >= 0 && slab.begin[a] % unit[a] == 0 && slab.size[a] >= 0 &&
           end <= target.shape[a] && (end % unit[a] == 0 || end == target.shape[a]);
  }
  if (!fits || data.size() != static_cast<size_t>(elements_in(slab.size)) * target.encoding.item)
    return internal("a slab that does not fit the chunks");
  return {};
}

bool is_all(Bytes data, Bytes element) {
  // Equal to itself shifted by one element, and the first is it.
  return std::equal(element.begin(), element.end(), data.begin()) &&
         (data.size() == element.size() || std::memcmp(data.data(), data.data() + element.size(),
                                                       data.size() - element.size()) == 0);
}

// The chunk of the slab that begins at `begin`, padded to its full size.
Bytes cut_chunk(const ArrayTarget& target, const Region& slab, Bytes data, const Extents& begin) {
  thread_local Buffer chunk;
  const size_t item = target.encoding.item;
  const Extents strides = dense_strides(slab.size, item);
  Extents size(begin.size());
  const std::byte* from = data.data();
  for (size_t a = 0; a < begin.size(); ++a) {
    size[a] = std::min(target.chunk[a], target.shape[a] - begin[a]);
    from += (begin[a] - slab.begin[a]) * strides[a];
  }
  chunk.resize(static_cast<size_t>(elements_in(target.chunk)) * item);
  const Strided to{chunk.data(), dense_strides(target.chunk, item)};
  if (size != target.chunk) fill_box(target.fill, to, target.chunk);
  copy_box({from, strides}, to, size, item);
  return chunk.bytes();
}

// Where a chunk stands within its shard, last axis fastest.
size_t place_in_shard(const ArrayTarget& target, const Extents& chunk) {
  size_t place = 0;
  for (size_t a = 0; a < chunk.size(); ++a) {
    const int64_t in_shard = target.shard[a] / target.chunk[a];
    place = place * static_cast<size_t>(in_shard) + static_cast<size_t>(chunk[a] % in_shard);
  }
  return place;
}

// Chunks one after the other, then (offset, length) of each, then the checksum of that.
std::vector<std::byte> shard_index(const ArrayTarget& target,
                                   const std::vector<const EncodedChunk*>& chunks) {
  const auto count = static_cast<size_t>(elements_in(target.shard) /
                                         std::max<int64_t>(1, elements_in(target.chunk)));
  std::vector<std::byte> index(16 * count + 4);
  for (size_t i = 0; i < 2 * count; ++i) store_le(MutableBytes(index).subspan(8 * i), kNotThere);
  uint64_t at = 0;
  for (const EncodedChunk* chunk : chunks) {
    const MutableBytes row = MutableBytes(index).subspan(16 * place_in_shard(target, chunk->at));
    store_le(row, at);
    store_le(row.subspan(8), uint64_t{chunk->bytes.size()});
    at += chunk->bytes.size();
  }
  const Bytes table = Bytes(index).first(16 * count);
  store_le(MutableBytes(index).subspan(16 * count), crc32c(table));
  return index;
}

// One file: the chunks in their order, and the index of a shard.
Result<PackedFile> write_unit(const ArrayTarget& target, const std::string& folder,
                              std::string name, const std::vector<const EncodedChunk*>& chunks) {
  PackedFile file{.name = std::move(name)};
  const std::string path = join_path(folder, file.name);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return from_errno(error.value(), "make folder").in_file(path);
  HEADRACE_ASSIGN(const std::unique_ptr<Sink> sink, file_sink(path));
  const auto append = [&](Bytes bytes) {
    file.crc32c = crc32c(bytes, file.crc32c);
    file.bytes += bytes.size();
    return sink->append(bytes);
  };
  for (const EncodedChunk* chunk : chunks) HEADRACE_TRY(append(chunk->bytes.bytes()));
  if (!target.shard.empty()) HEADRACE_TRY(append(shard_index(target, chunks)));
  HEADRACE_TRY(sink->close());
  return file;
}

}  // namespace

Status validate(const ArrayTarget& target) {
  const size_t axes = target.shape.size();
  bool fits = target.chunk.size() == axes && (target.shard.empty() || target.shard.size() == axes);
  for (size_t a = 0; fits && a < axes; ++a) {
    fits = target.shape[a] >= 0 && target.chunk[a] >= 1;
    if (fits && !target.shard.empty())
      fits = target.shard[a] >= target.chunk[a] && target.shard[a] % target.chunk[a] == 0;
  }
  if (!fits)
    return invalid(fmt::format("an array of [{}] in chunks of [{}] and shards of [{}]",
                               fmt::join(target.shape, ","), fmt::join(target.chunk, ","),
                               fmt::join(target.shard, ",")));
  if (target.encoding.item == 0 || target.fill.size() != target.encoding.item)
    return internal("a fill value of another size than an element");
  return {};
}

Result<std::vector<EncodedChunk>> encode_chunks(const ArrayTarget& target, const Region& slab,
                                                Bytes data, unsigned threads) {
  HEADRACE_TRY(validate(target));
  HEADRACE_TRY(check_slab(target, slab, data));
  std::vector<EncodedChunk> chunks;
  for_each_chunk(slab, target.shape, target.chunk, [&](uint64_t, const Region& overlap) {
    chunks.push_back({in_grid(overlap.begin, target.chunk)});
  });
  const auto work = [&](size_t i) -> Status {
    EncodedChunk& chunk = chunks[i];
    Extents begin = chunk.at;
    for (size_t a = 0; a < begin.size(); ++a) begin[a] *= target.chunk[a];
    const Bytes bytes = cut_chunk(target, slab, data, begin);
    chunk.is_fill = is_all(bytes, target.fill);
    if (chunk.is_fill) return {};
    Buffer room;
    HEADRACE_TRY(encode_chunk(target.encoding, bytes, room));
    chunk.bytes = Buffer(room.size());  // as large as needed: all of a slab are held
    std::copy(room.data(), room.data() + room.size(), chunk.bytes.data());
    return {};
  };
  HEADRACE_TRY(parallel_for(chunks.size(), threads, work));
  return chunks;
}

Result<std::vector<PackedFile>> write_chunk_files(const ArrayTarget& target,
                                                  const std::string& folder,
                                                  const std::string& name, const Region& slab,
                                                  Bytes data, unsigned threads) {
  HEADRACE_ASSIGN(const std::vector<EncodedChunk> chunks,
                  encode_chunks(target, slab, data, threads));
  struct File {
    std::string name;
    std::vector<const EncodedChunk*> chunks;
  };
  std::vector<File> files;
  const Extents& unit = unit_of(target);
  for_each_chunk(slab, target.shape, unit, [&](uint64_t, const Region& overlap) {
    const Extents at = in_grid(overlap.begin, unit);
    files.push_back({name + (at.empty() ? "/c" : fmt::format("/c/{}", fmt::join(at, "/")))});
  });
  Extents per(unit.size());
  Extents grid(unit.size());
  for (size_t a = 0; a < unit.size(); ++a) {
    per[a] = unit[a] / target.chunk[a];
    grid[a] = (slab.size[a] + unit[a] - 1) / unit[a];
  }
  for (const EncodedChunk& chunk : chunks) {
    if (chunk.is_fill) continue;
    size_t number = 0;
    for (size_t a = 0; a < unit.size(); ++a)
      number = number * static_cast<size_t>(grid[a]) +
               static_cast<size_t>(chunk.at[a] / per[a] - slab.begin[a] / unit[a]);
    files[number].chunks.push_back(&chunk);
  }
  std::erase_if(files, [](const File& file) { return file.chunks.empty(); });
  std::vector<PackedFile> written(files.size());
  const auto work = [&](size_t i) -> Status {
    HEADRACE_ASSIGN(written[i], write_unit(target, folder, files[i].name, files[i].chunks));
    return {};
  };
  HEADRACE_TRY(parallel_for(files.size(), threads, work));
  return written;
}

}  // namespace headrace
