// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include "api/inside.h"

namespace hr {

struct Plan::Inside {
  std::unique_ptr<headrace::Plan> plan;
  uint64_t batch;  // the global one
};

Plan::Plan(const Dataset& data, const OrderOptions& options) {
  const headrace::Source& source = *data.inside().source;
  auto tree = std::make_shared<const headrace::BlockTree>(
      unwrap(headrace::BlockTree::build(source.blocks().samples)));
  const headrace::PlanOptions plan = plan_options(options);
  std::vector<headrace::PlanSource> sources{{"", source.fingerprint().hex(), std::move(tree),
                                             source.blocks().bytes, source.blocks().shared}};
  inside_ = std::make_unique<Inside>(
      Inside{unwrap(headrace::Plan::make(std::move(sources), plan)), plan.cut.batch});
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

uint64_t Plan::steps() const {
  return inside_->plan->steps_in_epoch();
}

std::vector<int64_t> Plan::step(uint64_t epoch, uint64_t step) {
  if (step >= steps())
    raise(headrace::invalid("there is no step " + std::to_string(step) + "; an epoch has " +
                            std::to_string(steps())));
  std::vector<headrace::PlanSlot> slots;
  unwrap(inside_->plan->step(epoch, step * inside_->batch, slots));
  std::vector<int64_t> out;
  for (const headrace::PlanSlot& s : slots) out.push_back(static_cast<int64_t>(s.sample));
  return out;
}

std::string Plan::id() const {
  return inside_->plan->plan_id().hex();
}

}  // namespace hr
