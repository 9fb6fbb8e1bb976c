// SPDX-License-Identifier: Apache-2.0
#include "trace/spans.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "base/guard.h"
#include "base/mutex.h"
#include "base/per_process.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, kStages> kNames{
    "plan", "resolve", "read", "open", "decode", "pack", "stage", "deliver", "consume"};
constexpr size_t kEntries = kSpansKept + 1;  // one may be half written
constexpr uint64_t kOverlaps = 0x80;         // beside the stage
constexpr uint64_t kMostBytes = (uint64_t{1} << 56) - 1;

// One thread writes, at any time; the collector reads, one at a time.
//
// Span n lies in entry n % kEntries.  The writer fills the entry and then raises `written_` to
// n + 1.  A collector that reads of entry n what span n + kEntries stored there sees, by the
// release and the acquire of that field, `written_` at n + kEntries or above afterwards, and
// throws the entry away.  So no entry that is kept is torn.
class SpanRing {
 public:
  SpanRing(std::string name, uint64_t thread_id)
      : name_(std::move(name)), thread_id_(thread_id), depth_(fork_depth()) {}

  // By the thread whose ring it is.
  void write(Stage stage, bool overlaps, uint64_t begin_ns, uint64_t end_ns, uint64_t batch,
             uint64_t bytes) {
    const uint64_t n = written_.load(std::memory_order_relaxed);
    Entry& e = entries_[n % kEntries];
    e.begin_ns.store(begin_ns, std::memory_order_release);
    e.end_ns.store(end_ns, std::memory_order_release);
    e.batch.store(batch, std::memory_order_release);
    e.rest.store(std::min(bytes, kMostBytes) << 8 | (overlaps ? kOverlaps : 0) |
                     static_cast<uint64_t>(stage),
                 std::memory_order_release);
    written_.store(n + 1, std::memory_order_release);
  }
  void end() { has_ended_.store(true, std::memory_order_release); }
  bool is_of_this_process() const { return depth_ == fork_depth(); }

  // By the collector: appends what was not collected yet; returns how many were overwritten.
  uint64_t collect(std::vector<SpanRecord>& out) {
    const uint64_t end = written_.load(std::memory_order_acquire);
    const uint64_t begin = std::max(collected_, oldest(end));
    const size_t at = out.size();
    for (uint64_t n = begin; n < end; ++n) out.push_back(read(entries_[n % kEntries]));
    // The entry that follows the last one may be half written.
    const uint64_t intact = oldest(written_.load(std::memory_order_acquire) + 1);
    const uint64_t torn = intact > begin ? std::min(intact, end) - begin : 0;
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(at);
    out.erase(first, first + static_cast<std::ptrdiff_t>(torn));
    const uint64_t lost = begin + torn - collected_;
    collected_ = end;
    return lost;
  }
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  uint64_t waiting() const { return written_.load(std::memory_order_acquire) - collected_; }
  void rename(std::string name) { name_ = std::move(name); }

 private:
  struct Entry {
    std::atomic<uint64_t> begin_ns, end_ns, batch, rest;
  };

  static uint64_t oldest(uint64_t written) { return written > kEntries ? written - kEntries : 0; }

  SpanRecord read(const Entry& e) const {
    SpanRecord out{.thread = name_, .thread_id = thread_id_};
    out.begin_ns = e.begin_ns.load(std::memory_order_acquire);
    out.end_ns = e.end_ns.load(std::memory_order_acquire);
    out.batch = e.batch.load(std::memory_order_acquire);
    const uint64_t rest = e.rest.load(std::memory_order_acquire);
    out.bytes = rest >> 8;
    out.overlaps = (rest & kOverlaps) != 0;
    out.stage = static_cast<Stage>(rest & (kOverlaps - 1));
    return out;
  }

  std::string name_;  // under the lock of the rings
  const uint64_t thread_id_;
  const uint64_t depth_;
  uint64_t collected_ = 0;  // under the lock of the rings
  std::atomic<bool> has_ended_{false};
  alignas(64) std::atomic<uint64_t> written_{0};
  std::array<Entry, kEntries> entries_{};
};

// The rings of a process.  Thread-safe.
class SpanRings {
 public:
  SpanRing* add(std::unique_ptr<SpanRing> ring) {
    MutexLock lock(mu_);
    rings_.push_back(std::move(ring));
    SpanRing* added = rings_.back().get();
    bound();
    return added;
  }

  void rename(SpanRing& ring, std::string name) {
    MutexLock lock(mu_);
    ring.rename(std::move(name));
  }

  std::vector<SpanRecord> collect() {
    std::vector<SpanRecord> out;
    {
      MutexLock lock(mu_);
      std::erase_if(rings_, [&](const std::unique_ptr<SpanRing>& ring) HEADRACE_REQUIRES(mu_) {
        const bool has_ended = ring->has_ended();  // first: nothing is written after it
        lost_ += ring->collect(out);
        return has_ended;
      });
    }
    std::sort(out.begin(), out.end(), [](const SpanRecord& a, const SpanRecord& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    return out;
  }

  uint64_t lost() {
    MutexLock lock(mu_);
    return lost_;
  }

 private:
  // Of threads that ended the last kRingsKept stay.
  void bound() HEADRACE_REQUIRES(mu_) {
    auto ended = static_cast<size_t>(std::count_if(
        rings_.begin(), rings_.end(), [](const auto& ring) { return ring->has_ended(); }));
    std::erase_if(rings_, [&](const std::unique_ptr<SpanRing>& ring) HEADRACE_REQUIRES(mu_) {
      if (ended <= kRingsKept || !ring->has_ended()) return false;
      --ended;
      lost_ += ring->waiting();
      return true;
    });
  }

  Mutex mu_;
  std::vector<std::unique_ptr<SpanRing>> rings_ HEADRACE_GUARDED_BY(mu_);  // oldest first
  uint64_t lost_ HEADRACE_GUARDED_BY(mu_) = 0;
};

// Never destroyed: threads may record while the process ends.
SpanRings& all_rings() {
  static auto& rings = *new PerProcess<SpanRings>([] { return std::make_unique<SpanRings>(); });
  return *rings;
}

// What a thread has.  Plain memory: valid also while its other variables are destroyed.
struct SpanThread {
  SpanRing* ring = nullptr;
  bool is_closed = false;  // it ended, or there was no memory for a ring
  char name[32] = {};

  bool has_ring() const { return ring != nullptr && ring->is_of_this_process(); }
};

SpanThread& this_thread() {
  static constinit thread_local SpanThread state;
  return state;
}

// Says that the thread ended.
struct SpanThreadEnd {
  ~SpanThreadEnd() {
    SpanThread& self = this_thread();
    self.is_closed = true;
    if (self.ring != nullptr) self.ring->end();
    self.ring = nullptr;
  }
};

Status make_ring(SpanThread& self) {
  static thread_local SpanThreadEnd at_end;
  (void)at_end;
  if (self.name[0] == 0) pthread_getname_np(pthread_self(), self.name, sizeof self.name);
  self.ring =
      all_rings().add(std::make_unique<SpanRing>(self.name, static_cast<uint64_t>(gettid())));
  return {};
}

// Null where this thread records no more.
SpanRing* ring_of_thread() {
  SpanThread& self = this_thread();
  if (self.has_ring()) return self.ring;
  if (self.is_closed) return nullptr;
  if (const Status made = guard([&] { return make_ring(self); }); made.ok()) return self.ring;
  self.is_closed = true;
  return nullptr;
}

}  // namespace

std::string_view name_of(Stage stage) {
  return kNames[static_cast<size_t>(stage)];
}

void set_tracing(bool on) {
  tracing_flag().store(on, std::memory_order_relaxed);
}

void Span::end() {
  const uint64_t end_ns = steady_ns();
  if (SpanRing* ring = ring_of_thread())
    ring->write(stage_, false, begin_ns_, end_ns, batch_, bytes_);
}

void record_span(Stage stage, uint64_t begin_ns, uint64_t end_ns, uint64_t batch, uint64_t bytes) {
  if (!is_tracing()) return;
  if (SpanRing* ring = ring_of_thread()) ring->write(stage, true, begin_ns, end_ns, batch, bytes);
}

std::vector<SpanRecord> collect_spans() {
  return all_rings().collect();
}

uint64_t lost_spans() {
  return all_rings().lost();
}

void name_this_thread(std::string_view name) {
  SpanThread& self = this_thread();
  const size_t size = std::min(name.size(), sizeof self.name - 1);
  std::memcpy(self.name, name.data(), size);
  self.name[size] = 0;
  char shown[16] = {};  // the system keeps 15
  std::memcpy(shown, self.name, std::min(size, sizeof shown - 1));
  pthread_setname_np(pthread_self(), shown);
  if (self.has_ring()) all_rings().rename(*self.ring, self.name);
}

}  // namespace headrace
