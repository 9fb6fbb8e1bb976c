// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include "api/inside.h"

namespace hr {

struct Plan::Inside {
  std::unique_ptr<headrace::Plan> plan;
  uint64_t batch;  // the global one
};

namespace {

std::vector<headrace::PlanSource> plan_sources(const std::vector<headrace::LoaderSource>& sources) {
  std::vector<headrace::PlanSource> out;
  for (const headrace::LoaderSource& source : sources)
    out.push_back(unwrap(headrace::plan_source(source)));
  return out;
}

}  // namespace

Plan::Plan(const Dataset& data, const OrderOptions& options) {
  const headrace::PlanOptions plan = plan_options(options);
  inside_ = std::make_unique<Inside>(
      Inside{unwrap(headrace::Plan::make(plan_sources({{"", data.inside().source}}), plan)),
             plan.cut.batch});
}
Plan::Plan(const Blend& blend, const OrderOptions& options) {
  headrace::PlanOptions plan = plan_options(options);
  const auto sources = plan_sources(sources_of(blend, {}, plan));
  inside_ =
      std::make_unique<Inside>(Inside{unwrap(headrace::Plan::make(sources, plan)), plan.cut.batch});
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

uint64_t Plan::steps() const {
  return inside_->plan->steps_in_epoch();
}

std::vector<Plan::Draw> Plan::draws(uint64_t epoch, uint64_t step) {
  if (step >= steps())
    raise(headrace::invalid("there is no step " + std::to_string(step) + "; an epoch has " +
                            std::to_string(steps())));
  std::vector<headrace::PlanSlot> slots;
  unwrap(inside_->plan->step(epoch, step * inside_->batch, slots));
  std::vector<Draw> out;
  for (const headrace::PlanSlot& s : slots)
    out.push_back({s.source, static_cast<int64_t>(s.sample), s.valid});
  return out;
}

std::vector<int64_t> Plan::step(uint64_t epoch, uint64_t step) {
  std::vector<int64_t> out;
  for (const Draw& draw : draws(epoch, step)) out.push_back(draw.sample);
  return out;
}

std::string Plan::id() const {
  return inside_->plan->plan_id().hex();
}

}  // namespace hr
