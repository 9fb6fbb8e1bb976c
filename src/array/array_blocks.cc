// SPDX-License-Identifier: Apache-2.0
#include "array/array_blocks.h"

#include <algorithm>
#include <map>

#include "index/part.h"

namespace headrace {

std::vector<uint64_t> sizes_of_files(const ArrayDescription& d, const Store& store) {
  std::vector<bool> is_wanted(d.files.size(), false);
  for (const Variable& variable : d.variables)
    for (const auto& array : variable.segments)
      for (const ChunkPlace& place : array->places)
        if (place.stored != 0 && place.stored != kWholeFile) is_wanted[place.file] = true;
  std::vector<uint64_t> out(d.files.size(), 0);
  std::map<std::string, uint64_t> asked;
  for (size_t f = 0; f < out.size(); ++f) {
    const bool is_known = f < d.file_bytes.size() && d.file_bytes[f] != kWholeFile;
    if (is_known) out[f] = d.file_bytes[f];
    is_wanted[f] = is_wanted[f] && !is_known;
    if (is_wanted[f]) asked.emplace(d.files[f], 0);
  }
  std::vector<std::string> paths;  // asked for at once: each is a request where they are far
  for (const auto& [path, bytes] : asked) paths.push_back(path);
  const std::vector<Result<FileInfo>> found = store.stat_all(paths);
  for (size_t i = 0; i < paths.size(); ++i)
    if (found[i].ok()) asked[paths[i]] = found[i].value().bytes;
  for (size_t f = 0; f < out.size(); ++f)
    if (is_wanted[f]) out[f] = asked[d.files[f]];
  return out;
}

Blocks cut_blocks(const ArrayDescription& d, uint64_t samples, uint64_t tiles,
                  const std::vector<bool>& is_unshared) {
  Blocks out;
  uint64_t bytes = 0;  // that one more position brings
  int64_t chunk = 1;
  for (const ArrayField& field : d.fields)
    for (const uint32_t v : field.variables) {
      const Variable& variable = d.variables[v];
      if (!variable.along) continue;
      const Array& array = *variable.segments[0];
      if (array.values) {
        bytes += array.values->total_bytes /
                 static_cast<uint64_t>(std::max<int64_t>(1, array.shape[*variable.along]));
        continue;
      }
      chunk = std::max(chunk, array.chunk[*variable.along]);
      bytes += static_cast<uint64_t>(elements_in(array.shape)) * size_of(array.dtype) /
               static_cast<uint64_t>(std::max<int64_t>(1, array.shape[*variable.along]));
    }
  // The user's may be longer than the axis, by so much that a product with it would not fit.
  const auto stride = static_cast<uint64_t>(
      std::clamp<int64_t>(d.samples.stride, 1, std::max<int64_t>(1, d.samples.end)));
  const uint64_t by_chunk = std::max<uint64_t>(1, static_cast<uint64_t>(chunk) / stride);
  const uint64_t position_bytes = std::max<uint64_t>(1, bytes) * stride;
  const uint64_t whole = std::max<uint64_t>(1, kBlockBytes / (by_chunk * position_bytes));
  const uint64_t in_block = std::clamp<uint64_t>(by_chunk * whole * tiles, 1, kMaxBlockSamples);
  for (uint64_t at = 0; at < samples; at += in_block)
    out.samples.push_back(static_cast<uint32_t>(std::min(in_block, samples - at)));
  out.bytes = samples / std::max<uint64_t>(1, tiles) * position_bytes;
  for (const ArrayField& field : d.fields)
    for (const uint32_t v : field.variables)
      out.shared = out.shared || (!d.samples.cases &&
                                  !d.variables[v].segments[0]->filters.empty() && !is_unshared[v]);
  return out;
}

}  // namespace headrace
