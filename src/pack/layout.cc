// SPDX-License-Identifier: Apache-2.0
#include "pack/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/registry.h"

namespace headrace {

Status validate(const PackOptions& options) {
  if (options.for_ranks == 0 || options.for_workers == 0)
    return invalid("for_ranks and for_workers must be at least 1");
  if (options.shard_bytes == 0) return invalid("shard_bytes must be at least 1");
  HEADRACE_TRY(validate(options.recode));
  HEADRACE_ASSIGN(const Format* format, find_format(options.format));
  if (format->create == nullptr)
    return unsupported(fmt::format("format '{}' cannot be written", options.format));
  return {};
}

Result<uint64_t> count_shards(const Source& source, const PackOptions& options) {
  const uint64_t step = uint64_t{options.for_ranks} * options.for_workers;
  uint64_t shards = options.shards;
  if (shards == 0) {
    shards = std::max<uint64_t>(
        1, (source.blocks().bytes + options.shard_bytes - 1) / options.shard_bytes);
    shards = (shards + step - 1) / step * step;
    if (shards > source.size()) shards = source.size() / step * step;
  }
  if (shards % step != 0)
    return invalid(fmt::format(
        "{} shards cannot be shared evenly by {} ranks of {} workers: give a multiple of {}",
        shards, options.for_ranks, options.for_workers, step));
  if (shards == 0 || shards > source.size())
    return invalid(
        fmt::format("{} samples are too few for {} shards", source.size(), std::max(shards, step)));
  return shards;
}

}  // namespace headrace
