// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <algorithm>
#include <cassert>

namespace headrace {

Grant& Grant::operator=(Grant&& other) noexcept {
  if (this == &other) return *this;
  reset();
  budget_ = std::exchange(other.budget_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void Grant::grow(uint64_t bytes) {
  assert(budget_ != nullptr || bytes == 0);
  if (budget_ == nullptr) return;
  budget_->add(bytes);
  bytes_ += bytes;
}

bool Grant::try_grow(uint64_t bytes) {
  if (budget_ == nullptr || !budget_->try_add(bytes)) return false;
  bytes_ += bytes;
  return true;
}

void Grant::shrink(uint64_t bytes) {
  bytes = std::min(bytes, bytes_);
  if (bytes == 0) return;
  bytes_ -= bytes;
  budget_->give_back(bytes);
}

void Grant::resize(uint64_t bytes) {
  if (bytes > bytes_)
    grow(bytes - bytes_);
  else
    shrink(bytes_ - bytes);
}

Grant Grant::split(uint64_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return {budget_, bytes};
}

void Grant::merge(Grant other) {
  assert(budget_ == nullptr || other.budget_ == nullptr || budget_ == other.budget_);
  if (budget_ == nullptr) budget_ = other.budget_;
  bytes_ += std::exchange(other.bytes_, 0);
}

void Grant::reset() noexcept {
  shrink(bytes_);
  budget_ = nullptr;
}

Budget::~Budget() {
  assert(used() == 0);
}

Grant Budget::take(uint64_t bytes) {
  add(bytes);
  return {this, bytes};
}

std::optional<Grant> Budget::try_take(uint64_t bytes) {
  if (!try_add(bytes)) return std::nullopt;
  return Grant(this, bytes);
}

void Budget::set_limit(uint64_t bytes) {
  if (limit_.exchange(bytes, std::memory_order_seq_cst) < bytes && on_release_) on_release_();
}

void Budget::add(uint64_t bytes) {
  note_peak(used_.fetch_add(bytes, std::memory_order_seq_cst) + bytes);
}

bool Budget::try_add(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_seq_cst);
  do {
    const uint64_t limit = limit_.load(std::memory_order_seq_cst);
    if (used > limit || bytes > limit - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_seq_cst));
  note_peak(used + bytes);
  return true;
}

void Budget::give_back(uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_seq_cst);
  if (on_release_) on_release_();
}

void Budget::note_peak(uint64_t used) {
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
}

}  // namespace headrace
