// SPDX-License-Identifier: Apache-2.0
#include "array/flat_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "array/read_box.h"

namespace headrace {
namespace {

// Deflate makes at most 1032 bytes of one, an offset has 8.
constexpr uint64_t kMostForByte = 129;
constexpr uint64_t kMostForNothing = 1 << 20;

Status check_form(const Array& flat, const Array& offsets) {
  HEADRACE_TRY(check_array(flat));
  HEADRACE_TRY(check_array(offsets));
  if (flat.shape.size() != 1 || offsets.shape.size() != 1 || offsets.dtype != DType::kI64 ||
      offsets.big_endian || offsets.shape[0] < 1)
    return invalid(fmt::format(
        "'{}' is to hold values one after the other, and '{}' where they begin: arrays of one "
        "axis, the second of i64",
        flat.name, offsets.name));
  if (!flat.filters.empty() || (flat.big_endian && size_of(flat.dtype) > 1))
    return unsupported(
        fmt::format("'{}' holds values of variable length in compressed or big-endian chunks, "
                    "which are not read: pack them with codec none",
                    flat.name));
  return {};
}

// A shape is quickly written: so many offsets as what is stored of them could become.
Status check_count(const Array& offsets, const std::vector<std::string>& files,
                   const Store& store) {
  const auto count = static_cast<uint64_t>(offsets.shape[0]);
  if (count <= kMostForNothing) return {};
  uint64_t stored = 0;
  for (const ChunkPlace& place : offsets.places) {
    uint64_t bytes = place.stored;
    if (bytes == kWholeFile) {
      HEADRACE_ASSIGN(const FileInfo info, store.stat(files[place.file]));
      bytes = info.bytes;
    }
    if (bytes <= ~uint64_t{0} - stored) stored += bytes;
  }
  if ((count - kMostForNothing) / kMostForByte > stored)
    return corrupt(fmt::format(
        "'{}' says {} offsets, and {} bytes are stored of them: the data set is damaged, or most "
        "of them were never written",
        offsets.name, count, stored));
  return {};
}

Result<std::vector<int64_t>> read_offsets(const Array& offsets,
                                          const std::vector<std::string>& files,
                                          const Store& store) {
  HEADRACE_TRY(check_count(offsets, files, store));
  std::vector<int64_t> out(static_cast<size_t>(offsets.shape[0]));
  const Strided to{reinterpret_cast<std::byte*>(out.data()), {sizeof(int64_t)}};
  Status status;
  visit_region(offsets, {{0}, offsets.shape}, [&](const ArrayBox& box) {
    if (status.ok()) status = read_box(box, files, store, to);
  });
  if (!status.ok()) return status;
  return out;
}

// Neighbours in one file become one run.
Result<std::vector<ValueRun>> runs_of(const Array& flat) {
  std::vector<ValueRun> runs;
  const uint64_t item = size_of(flat.dtype);
  const uint64_t total = static_cast<uint64_t>(flat.shape[0]) * item;
  const uint64_t chunk = static_cast<uint64_t>(flat.chunk[0]) * item;
  for (size_t i = 0; i < flat.places.size(); ++i) {
    const ChunkPlace& place = flat.places[i];
    ValueRun run{.begin = i * chunk, .file = place.file, .offset = place.offset};
    run.bytes = std::min(chunk, total - run.begin);
    run.is_missing = place.stored == 0;
    if (!run.is_missing && place.stored < run.bytes)
      return corrupt(fmt::format("'{}': chunk {} has {} bytes, {} are expected", flat.name, i,
                                 place.stored, run.bytes));
    if (!runs.empty() && !run.is_missing && !runs.back().is_missing) {
      ValueRun& last = runs.back();
      if (last.file == run.file && last.offset + last.bytes == run.offset) {
        last.bytes += run.bytes;
        continue;
      }
    }
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

Result<std::shared_ptr<const ValueTable>> read_flat_values(const Array& flat, const Array& offsets,
                                                           const std::vector<std::string>& files,
                                                           const Store& store) {
  HEADRACE_TRY(check_form(flat, offsets));
  HEADRACE_ASSIGN(const std::vector<int64_t> starts, read_offsets(offsets, files, store));
  auto out = std::make_shared<ValueTable>();
  const auto item = static_cast<int64_t>(size_of(flat.dtype));
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    if (starts[i] < 0 || starts[i + 1] < starts[i] || starts[i + 1] > flat.shape[0])
      return corrupt(fmt::format("'{}' says that value {} lies from {} to {}, and '{}' has {}",
                                 offsets.name, i, starts[i], starts[i + 1], flat.name,
                                 flat.shape[0]));
    out->extents.push_back({static_cast<uint64_t>(starts[i] * item),
                            static_cast<uint64_t>((starts[i + 1] - starts[i]) * item)});
    out->total_bytes += out->extents.back().bytes;
  }
  HEADRACE_ASSIGN(out->runs, runs_of(flat));
  return std::shared_ptr<const ValueTable>(std::move(out));
}

void add_flat_value(const ValueTable& table, const ValueExtent& extent, Request& out) {
  auto run = std::upper_bound(table.runs.begin(), table.runs.end(), extent.offset,
                              [](uint64_t at, const ValueRun& r) { return at < r.begin; }) -
             1;
  uint64_t at = extent.offset;
  for (uint64_t left = extent.bytes; left > 0; ++run) {
    const uint64_t inside = at - run->begin;
    const uint64_t n = std::min(left, run->bytes - inside);
    Piece piece{.length = n, .continues = at != extent.offset};
    if (run->is_missing) {  // a chunk of zeros is not stored
      piece.unit = kInlineUnit;
      piece.begin = out.inline_bytes.size();
      out.inline_bytes.resize(out.inline_bytes.size() + n);
    } else {
      piece.unit = static_cast<uint32_t>(out.units.size());
      out.units.push_back({run->file, 0, run->offset + inside, n, n});
    }
    out.pieces.push_back(piece);
    at += n;
    left -= n;
  }
}

}  // namespace headrace
