// SPDX-License-Identifier: Apache-2.0
#include "engine/planned_step.h"

#include <algorithm>

#include "base/guard.h"

namespace headrace {

uint64_t bytes_of(const Batch& batch) {
  uint64_t bytes = 0;
  for (const Column& column : batch.columns) bytes += held_bytes(column);
  return bytes;
}

uint64_t dense_bytes(const std::vector<ColumnWork>& columns, size_t samples) {
  uint64_t bytes = 0;
  for (const ColumnWork& c : columns)
    if (c.spec.packing == Packing::kDense && !c.spec.many) bytes += c.spec.value.bytes() * samples;
  return bytes;
}

PlannedStep::PlannedStep(uint64_t number, FeedStep planned)
    : number_(number), step_(std::move(planned)), remaining_(step_.tasks.size()) {}

Task PlannedStep::planned(size_t slot) const {
  MutexLock lock(mu_);
  for (const auto& [s, task] : replaced_)
    if (s == slot) return task;
  return step_.tasks[slot];
}

void PlannedStep::replace(size_t slot, const Task& task) {
  MutexLock lock(mu_);
  const bool known = std::any_of(replaced_.begin(), replaced_.end(),
                                 [slot](const auto& r) { return r.first == slot; });
  if (!known) replaced_.emplace_back(slot, step_.tasks[slot]);
  step_.tasks[slot] = task;
}

void PlannedStep::open(const std::vector<ColumnWork>& columns, BufferPool& pool,
                       BufferPool& list_pool, Budget& budget) {
  MutexLock lock(mu_);
  if (is_open_.load(std::memory_order_relaxed)) return;
  Status made = guard([&]() -> Status {
    builders_.reserve(columns.size());
    for (const ColumnWork& c : columns)
      builders_.emplace_back(
          c.spec, step_.tasks.size(),
          c.spec.packing == Packing::kList && !c.is_read_by_stage ? list_pool : pool);
    return {};
  });
  if (made.ok()) {
    memory_ = budget.take(dense_bytes(columns, step_.tasks.size()));
  } else {
    builders_.clear();
    lacks_columns_ = true;
    failed_slot_ = 0;
    status_ = std::move(made);
  }
  is_open_.store(true, std::memory_order_release);
}

void PlannedStep::fail(size_t slot, Status status) {
  MutexLock lock(mu_);
  if (!status_.ok() && failed_slot_ <= slot) return;
  failed_slot_ = slot;
  status_ = std::move(status);
}

Status PlannedStep::status() const {
  MutexLock lock(mu_);
  return status_;
}

void PlannedStep::count(uint64_t bytes) {
  memory_.resize(bytes);
}

void PlannedStep::count_memory() {
  uint64_t bytes = 0;
  for (const ColumnBuilder& builder : builders_) bytes += builder.bytes();
  MutexLock lock(mu_);
  count(bytes);
}

void PlannedStep::begin_again() {
  MutexLock lock(mu_);
  batch_.reset();
  builders_.clear();
  lacks_columns_ = false;
  count(0);
  remaining_.store(step_.tasks.size(), std::memory_order_release);
  stays_on_cpu_.store(true, std::memory_order_release);
  is_open_.store(false, std::memory_order_release);
}

void PlannedStep::finish() {
  auto batch = std::make_unique<Batch>();
  batch->after = step_.after;
  batch->groups = step_.groups;
  for (const Task& t : step_.tasks) {
    batch->indices.push_back(static_cast<int64_t>(t.sample));
    batch->sources.push_back(t.source);
    batch->valid.push_back(t.valid ? 1 : 0);
  }
  if (status().ok())
    for (ColumnBuilder& b : builders_) batch->columns.push_back(b.finish());
  give(std::move(batch));
}

void PlannedStep::give(std::unique_ptr<Batch> batch) {
  MutexLock lock(mu_);
  batch_ = std::move(batch);
  if (batch_) count(bytes_of(*batch_));
}

uint64_t PlannedStep::bytes() const {
  MutexLock lock(mu_);
  return memory_.bytes();
}

}  // namespace headrace
