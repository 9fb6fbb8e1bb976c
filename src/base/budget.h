// SPDX-License-Identifier: Apache-2.0
//
// Budget: how much memory may be in use at a time.  What is taken is a Grant, which gives back what
// it holds when it goes out of scope; there is no count that anyone keeps by hand.
//
//   Budget budget(uint64_t{1} << 30);
//   budget.on_release([&] { wake_up(); });
//   if (std::optional<Grant> grant = budget.try_take(bytes)) …  // within the limit
//   Grant head = budget.take(bytes);                             // always: what must go on
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace headrace {

class Budget;

// One thread at a time; any number of grants of a budget on any number of threads.
class [[nodiscard]] Grant {
 public:
  Grant() = default;  // of no budget: holds nothing, and can hold nothing
  ~Grant() { reset(); }
  Grant(Grant&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Grant& operator=(Grant&& other) noexcept;

  uint64_t bytes() const { return bytes_; }
  void grow(uint64_t bytes);      // always, beyond the limit too
  bool try_grow(uint64_t bytes);  // false, and nothing changed, where the limit is in the way
  void shrink(uint64_t bytes);    // at most what it holds
  void resize(uint64_t bytes);    // grow() or shrink() to this
  Grant split(uint64_t bytes);    // moves these, at most all, to a grant of their own
  void merge(Grant other);        // takes over what another grant of the same budget holds
  void reset() noexcept;          // gives all back; is then of no budget

 private:
  friend class Budget;
  Grant(Budget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

  Budget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

// Thread-safe, without a lock.  Outlives its grants.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : limit_(bytes) {}
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  Grant take(uint64_t bytes);                     // always, beyond the limit too
  std::optional<Grant> try_take(uint64_t bytes);  // only what the limit leaves room for

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // May fall below what is used: try_take() then fails until enough was given back.
  void set_limit(uint64_t bytes);

  // Called after bytes were given back or the limit rose, on the thread that did it, and with no
  // lock held here; must not throw.  Set once, before the first grant.
  void on_release(std::function<void()> call) { on_release_ = std::move(call); }

 private:
  friend class Grant;
  void add(uint64_t bytes);
  bool try_add(uint64_t bytes);
  void give_back(uint64_t bytes) noexcept;
  void note_peak(uint64_t used);

  std::atomic<uint64_t> limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  std::function<void()> on_release_;
};

}  // namespace headrace
