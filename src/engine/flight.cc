// SPDX-License-Identifier: Apache-2.0
#include "engine/flight.h"

namespace headrace {

Flight::Flight(uint64_t sequence, FeedStep step, const std::vector<ColumnWork>& columns,
               BufferPool& pool)
    : sequence_(sequence),
      step_(std::move(step)),
      planned_(step_.tasks),
      remaining_(step_.tasks.size()) {
  builders_.reserve(columns.size());
  for (const ColumnWork& c : columns) {
    builders_.emplace_back(c.spec, planned_.size(), pool);
    if (c.spec.packing == Packing::kDense) bytes_ += c.spec.value.bytes() * planned_.size();
  }
}

void Flight::fail(size_t slot, Status status) {
  MutexLock lock(mu_);
  if (!status_.ok() && failed_slot_ <= slot) return;
  failed_slot_ = slot;
  status_ = std::move(status);
}

Status Flight::status() const {
  MutexLock lock(mu_);
  return status_;
}

void Flight::finish() {
  batch_ = std::make_unique<Batch>();
  batch_->after = step_.after;
  for (const Task& t : step_.tasks) {
    batch_->indices.push_back(static_cast<int64_t>(t.sample));
    batch_->sources.push_back(t.source);
    batch_->valid.push_back(t.valid ? 1 : 0);
  }
  if (!status().ok()) return;
  for (ColumnBuilder& b : builders_) batch_->columns.push_back(b.finish());
  count_bytes();
}

Status Flight::apply(const BatchStep& step, Key draws, BufferPool& pool) {
  const Status status = step.apply(*batch_, draws, pool);
  count_bytes();
  return status;
}

void Flight::count_bytes() {
  bytes_ = 0;
  for (const Column& column : batch_->columns) {
    if (column.values) bytes_ += column.values->size();
    for (const SharedBuffer& item : column.items) bytes_ += item->size();
  }
}

}  // namespace headrace
