// SPDX-License-Identifier: Apache-2.0
#include "engine/work.h"

#include <algorithm>

#include "engine/block_samples.h"
#include "engine/values.h"

namespace headrace {
namespace {

constexpr uint64_t kSmall = 64;  // bytes of a number: no work to speak of

EngineOptions within_budget(EngineOptions options) {
  options.read_ahead_bytes = std::min(options.read_ahead_bytes, options.memory_budget_bytes / 4);
  options.batches_ahead = std::max<size_t>(options.batches_ahead, 1);
  return options;
}

// So that runs which were used up are known.
std::vector<SourceWork> with_block_samples(std::vector<SourceWork> sources) {
  for (SourceWork& source : sources)
    if (source.policy.runs && !source.policy.block_samples)
      source.policy.block_samples = std::make_shared<BlockSamples>(source.source->blocks());
  return sources;
}

}  // namespace

// A key, a number, or whether there is one.
bool EngineWork::is_small(size_t column) const {
  const ColumnWork& c = columns[column];
  const TensorSpec& value = c.spec.value;
  return c.presence_of || (value.is_fixed() && value.bytes() <= kSmall) ||
         std::all_of(sources.begin(), sources.end(),
                     [&](const SourceWork& s) { return s.fields[column] == kKeyField; });
}

EngineWork::EngineWork(std::vector<SourceWork> s, std::vector<ColumnWork> c, EngineOptions o)
    : sources(with_block_samples(std::move(s))),
      columns(std::move(c)),
      options(within_budget(std::move(o))) {
  only_copies = is_light = reads_late = true;
  uint64_t run_bytes = 0;
  for (const SourceWork& source : sources) {
    if (source.policy.runs) run_bytes += source.source->blocks().bytes;
    is_far = is_far || source.policy.is_far;
    reads_late = reads_late && source.policy.late;
    in_caller = in_caller || source.policy.in_caller;
  }
  keeps_runs = run_bytes <= options.memory_budget_bytes / 2;
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec& spec = columns[i].spec;
    if (is_small(i)) continue;
    bool copies = spec.packing == Packing::kList && !spec.many;
    for (const SourceWork& source : sources) {
      copies = copies && source.decoders[i]->copies();
      is_light = is_light && source.decoders[i]->is_light();
    }
    hands_over = hands_over || copies;
    only_copies = only_copies && copies;
  }
  reads_late = reads_late && !is_far && !is_light;
  for (const SourceWork& source : sources) {
    std::optional<RowColumns> own = row_columns(source, columns);
    if (!own || is_far) {
      rows.clear();
      break;
    }
    rows.push_back(std::move(*own));
  }
  // Either all are made by their sources, or none is.
  size_t all = 0;
  size_t made = 0;
  for (const RowColumns& own : rows)
    for (const RowColumn& row : own) ++all, made += row.is_made ? 1 : 0;
  if (made > 0 && made < all) rows.clear();
  if (by_rows() && made == all)
    for (const SourceWork& source : sources)
      makers.push_back(dynamic_cast<const RowMaker*>(source.source.get()));
  for (const SourceWork& source : sources) {
    Ask& ask = asks.emplace_back();
    std::vector<size_t>& together = assembled.emplace_back();
    for (size_t i = 0; i < columns.size(); ++i) {
      wants_key = wants_key || source.fields[i] == kKeyField;
      const bool is_stored = source.fields[i] != kKeyField && source.fields[i] != kNoField;
      ask.place.push_back(is_stored ? ask.fields.size() : kNowhere);
      if (!is_stored) continue;
      ask.fields.push_back(source.fields[i]);
      if (assembles_into_slot({*source.decoders[i], columns[i].spec, source.fields[i]},
                              *source.source))
        together.push_back(i);
    }
    if (together.size() < 2) together.clear();
  }
}

}  // namespace headrace
