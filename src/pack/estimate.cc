// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>

#include "format/registry.h"
#include "open/expand.h"
#include "pack/layout.h"
#include "pack/sample_reader.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kLooked = 16;  // samples

// Of the file system of the nearest folder that is there.
uint64_t free_bytes_at(const std::string& folder) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(folder, error);
  while (place.has_relative_path() && !std::filesystem::exists(place, error))
    place = place.parent_path();
  struct statvfs info = {};
  if (::statvfs(place.c_str(), &info) != 0) return ~uint64_t{0};  // unknown: writing will tell
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

Result<PackEstimate> estimate_pack(const Source& source, const std::string& folder,
                                   const PackOptions& options) {
  HEADRACE_TRY(validate(options));
  HEADRACE_ASSIGN(const Format* format, find_format(options.format));
  HEADRACE_ASSIGN(const Selection selection, select_fields(source.schema(), options));
  HEADRACE_TRY(check_holds(*format, schema_of(selection)));
  PackEstimate out{.samples = source.size()};
  HEADRACE_ASSIGN(out.shards, count_shards(source, options));
  UnitCache units;
  SampleReader reader(source, selection, options.recode, units, 0);
  const uint64_t looked = std::min(kLooked, source.size());
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < looked; ++i) {
    // Spread evenly, the first and the last among them.
    const uint64_t sample = looked == 1 ? 0 : i * (source.size() - 1) / (looked - 1);
    HEADRACE_TRY(reader.read(std::span(&sample, 1), [&](size_t, const HeldRecord& record) {
      bytes += record.bytes.size() + record.key.size();
    }));
  }
  out.sample_bytes = std::max<uint64_t>(1, bytes / std::max<uint64_t>(1, looked));
  const std::string place = clean_path(folder);
  out.free_bytes = scheme_of(place).empty() ? free_bytes_at(place) : ~uint64_t{0};
  return out;
}

}  // namespace headrace
