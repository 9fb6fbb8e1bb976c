// SPDX-License-Identifier: Apache-2.0
#include "loader/share.h"

#include <numeric>
#include <set>

namespace headrace {
namespace {

// The samples of each source that a rank gets.
Status mark_samples(const std::vector<PlanSource>& sources, const PlanOptions& options,
                    uint64_t epochs, std::vector<std::vector<bool>>& wanted) {
  HEADRACE_ASSIGN(const std::unique_ptr<Plan> plan, Plan::make(sources, options));
  std::vector<PlanSlot> slots;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch)
    for (uint64_t g = 0; plan->steps_from(epoch, g) > 0;) {
      HEADRACE_ASSIGN(g, plan->step(epoch, g, slots));
      for (const PlanSlot& slot : slots) {
        if (sources[slot.source].groups == nullptr)
          wanted[slot.source][slot.sample] = true;
        else
          for (const uint32_t sample : plan->members(slot)) wanted[slot.source][sample] = true;
      }
    }
  return {};
}

Result<std::vector<uint32_t>> files_of(const Source& source, const std::vector<bool>& wanted) {
  std::vector<uint32_t> fields(source.schema().size());
  std::iota(fields.begin(), fields.end(), 0u);
  std::set<uint32_t> files;
  Request request;
  for (uint64_t sample = 0; sample < wanted.size(); ++sample) {
    if (!wanted[sample]) continue;
    HEADRACE_TRY(source.needs({.sample = sample, .fields = fields}, request));
    for (const Unit& unit : request.units) files.insert(unit.file);
  }
  return std::vector<uint32_t>(files.begin(), files.end());
}

}  // namespace

Result<std::vector<std::vector<uint32_t>>> files_of_share(const std::vector<LoaderSource>& sources,
                                                          const ShareOptions& options) {
  std::vector<PlanSource> plans;
  std::vector<std::vector<bool>> wanted;
  for (const LoaderSource& source : sources) {
    HEADRACE_ASSIGN(PlanSource plan, plan_source(source));
    plans.push_back(std::move(plan));
    wanted.emplace_back(source.source->size());
  }
  for (const uint32_t rank : options.ranks) {
    PlanOptions of_rank = options.plan;
    of_rank.cut.rank = rank;
    HEADRACE_TRY(mark_samples(plans, of_rank, options.epochs, wanted));
  }
  std::vector<std::vector<uint32_t>> out;
  for (size_t k = 0; k < sources.size(); ++k) {
    HEADRACE_ASSIGN(std::vector<uint32_t> files, files_of(*sources[k].source, wanted[k]));
    out.push_back(std::move(files));
  }
  return out;
}

}  // namespace headrace
