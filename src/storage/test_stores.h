// SPDX-License-Identifier: Apache-2.0
//
// Stores that behave as badly as remote ones do, for tests and benchmarks: one that takes its time,
// one that fails later, one that never answers.  All complete from threads of their own.
//
//   LatencyStore far(memory, {.latency = 50ms, .bytes_per_second = 100'000'000});
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

struct LatencyOptions {
  std::chrono::nanoseconds latency = std::chrono::milliseconds(50);
  uint64_t bytes_per_second = 0;        // of one read; 0: its bytes come at once
  uint64_t total_bytes_per_second = 0;  // of all reads together; 0: no limit
  unsigned threads = 2;                 // that complete reads, and copy their bytes
};

// Any number of reads at once; each completes after the latency and the time its bytes take.  Where
// all share a bandwidth, those of the smallest priority get it first.  Nothing is resident.
// Destroyed, it completes what it holds with kCancelled.  Thread-safe.
class LatencyStore final : public StoreWrapper {
 public:
  explicit LatencyStore(std::shared_ptr<const Store> inner, LatencyOptions options = {});
  ~LatencyStore() override;

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  void cancel(const ReadGroup& group) const override;
  StoreCost cost(const std::string& path) const override;

  size_t under_way() const;                               // reads
  size_t most_under_way() const { return most_.load(); }  // at any time so far

 private:
  struct Held {
    ReadRequest request;
    uint64_t bytes = 0;
    uint64_t ready_ns = 0;  // its first byte comes, where others do not hold it up
    uint64_t number = 0;
  };
  using Order = std::tuple<uint64_t, uint64_t, uint64_t>;  // when, priority, number
  using Queue = std::map<Order, Held>;

  // All under mu_, but for next(), which takes it.
  void run();
  // The next read whose time has come; none in the end.
  std::optional<ReadRequest> next() const;
  void advance(uint64_t now) const;
  uint64_t next_event() const;
  void due(Held held, uint64_t when) const;
  template <typename Which>
  std::vector<ReadRequest> take_if(const Which& which) const;

  const LatencyOptions options_;
  // The standard ones: base/mutex.h waits for milliseconds, which is coarse for a latency.
  mutable std::mutex mu_;
  mutable std::condition_variable wakes_;
  mutable Queue waiting_;  // for their first byte
  mutable Queue link_;     // for their share of the bandwidth
  mutable Queue due_;      // for their last byte
  mutable uint64_t link_free_ns_ = 0;
  mutable uint64_t numbers_ = 0;
  bool closing_ = false;
  mutable std::atomic<size_t> most_{0};
  std::vector<std::thread> threads_;
};

struct FailLaterOptions {
  uint64_t fail_read = 1;      // the n-th that is handed over, from 1; 0: none
  bool and_all_later = false;  // and so does every one after it
  Code code = Code::kUnavailable;
  std::chrono::nanoseconds latency = std::chrono::milliseconds(1);
};

// Every read completes after the latency, from another thread; the n-th fails then.  Thread-safe.
class FailLaterStore final : public StoreWrapper {
 public:
  explicit FailLaterStore(std::shared_ptr<const Store> inner, FailLaterOptions options = {});
  void read(std::span<ReadRequest> requests) const override;
  uint64_t reads() const { return reads_.load(); }  // handed over so far

 private:
  const FailLaterOptions options_;
  mutable std::atomic<uint64_t> reads_{0};
};

// Holds what it is asked to read until it is cancelled, or destroyed.  Thread-safe.
class SilentStore final : public StoreWrapper {
 public:
  explicit SilentStore(std::shared_ptr<const Store> inner) : StoreWrapper(std::move(inner)) {}
  ~SilentStore() override;

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  void cancel(const ReadGroup& group) const override;
  StoreCost cost(const std::string& path) const override;
  size_t held() const;  // reads

 private:
  mutable Mutex mu_;
  mutable std::vector<ReadRequest> held_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
