// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "array/open_file.h"
#include "base/npy.h"

namespace headrace {

std::vector<std::string> plain_dims(size_t axes) {
  std::vector<std::string> out;
  for (size_t i = 0; i < axes; ++i) out.push_back(fmt::format("axis{}", i));
  return out;
}

Result<Extents> chunk_grid(const std::string& name, const Extents& shape, const Extents& chunk) {
  const auto fits = [&] {
    if (shape.size() != chunk.size()) return false;
    for (size_t a = 0; a < shape.size(); ++a)
      if (shape[a] < 0 || chunk[a] < 1) return false;
    return true;
  };
  if (!fits())
    return corrupt(fmt::format("'{}' says a shape of ({}) in chunks of ({})", name,
                               fmt::join(shape, ", "), fmt::join(chunk, ", ")));
  Extents grid;
  uint64_t count = 1;
  bool is_empty = false;
  for (size_t a = 0; a < shape.size(); ++a) {
    grid.push_back(shape[a] == 0 ? 0 : (shape[a] - 1) / chunk[a] + 1);
    is_empty = is_empty || shape[a] == 0;
  }
  for (const int64_t n : grid) {
    if (is_empty) break;
    if (count > kMostChunks / static_cast<uint64_t>(n) + 1) count = kMostChunks + 1;
    count *= static_cast<uint64_t>(n);
    if (count > kMostChunks)
      return unsupported(
          fmt::format("'{}' lies in more than {} chunks, which are not read", name, kMostChunks));
  }
  return grid;
}

Result<OpenedFile> open_npy(const Store& store, const std::string& path) {
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  if (info.is_folder) return invalid("is a folder, no .npy file").in_file(path);
  Buffer head;
  HEADRACE_TRY(store.read_at(path, 0, std::min<uint64_t>(info.bytes, kNpyStart), head));
  const Result<uint64_t> bytes = npy_header_bytes(head.bytes());
  if (!bytes.ok()) return bytes.status().in_file(path);
  HEADRACE_TRY(store.read_at(path, 0, std::min(info.bytes, bytes.value()), head));
  const Result<NpyHeader> parsed = parse_npy(head.bytes(), info.bytes);
  if (!parsed.ok()) return parsed.status().in_file(path);
  const NpyHeader& header = parsed.value();
  const std::optional<DType> dtype = header.type.dtype();
  if (!dtype)
    return unsupported(fmt::format("an array of type {}: numbers are wanted", header.type.descr))
        .in_file(path);
  OpenedFile out{.looked_at = {info}};
  FileArray& stored = out.arrays.emplace_back();
  Array& array = *stored.array;
  array.name = "data";
  array.dtype = *dtype;
  array.big_endian = header.type.big_endian;
  array.fortran = header.fortran_order;
  bool is_empty = false;
  for (const uint64_t n : header.shape) {
    array.shape.push_back(static_cast<int64_t>(n));
    array.chunk.push_back(std::max<int64_t>(1, static_cast<int64_t>(n)));
    is_empty = is_empty || n == 0;
  }
  if (!is_empty) array.places.push_back({0, 0, header.data, header.data_bytes()});
  stored.dims = plain_dims(array.shape.size());
  stored.files = {path};
  return out;
}

}  // namespace headrace
