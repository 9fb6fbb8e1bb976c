// SPDX-License-Identifier: Apache-2.0
//
// What a read of the cache consists of: an Assembly is a request whose memory is filled part by
// part, a BlockFetch a block on its way from the store to all who want some of it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "storage/cache/reads.h"

namespace headrace {

// Memory of a request, and the place in the file of what belongs there.
struct CacheTarget {
  uint64_t offset = 0;
  MutableBytes out;
};

// Thread-safe.  Completes its request once: when the last part is there, or at the first failure.
class Assembly {
 public:
  // `ended` is called once, before the request completes.
  Assembly(ReadRequest&& request, std::vector<CacheTarget> targets,
           std::function<void(const Assembly&)> ended)
      : priority_(request.priority),
        group_(request.group),
        targets_(std::move(targets)),
        ended_(std::move(ended)),
        request_(std::move(request)) {}

  uint64_t priority() const { return priority_; }
  // Written through fill() alone: after a failure they are the caller's again.
  std::span<const CacheTarget> targets() const { return targets_; }
  bool is_cancelled() const { return group_ != nullptr && group_->is_cancelled(); }
  bool is_of(const ReadGroup& group) const { return group_.get() == &group; }

  // It begins with one part of its own, so that it does not end while parts are added.
  void add_part() {
    MutexLock lock(mu_);
    ++left_;
  }
  // Calls `write` while the memory is ours; true at once where it no longer is.
  template <typename Write>
  bool fill(const Write& write) {
    MutexLock lock(mu_);
    return is_done_ || write();
  }
  void part_done() { finish(false, {}); }
  void fail(Status status) { finish(true, std::move(status)); }
  // Until the request has completed.
  void wait() {
    MutexLock lock(mu_);
    while (!is_over_) over_.wait(mu_);
  }

 private:
  void finish(bool failed, Status status) {
    {
      MutexLock lock(mu_);
      if (is_done_ || (!failed && --left_ > 0)) return;
      is_done_ = true;
    }
    // Nobody else touches the request from here on.
    ended_(*this);
    complete(std::move(request_), std::move(status));
    MutexLock lock(mu_);
    is_over_ = true;
    over_.notify_all();
  }

  const uint64_t priority_;
  const std::shared_ptr<const ReadGroup> group_;
  const std::vector<CacheTarget> targets_;
  const std::function<void(const Assembly&)> ended_;
  ReadRequest request_;
  Mutex mu_;
  CondVar over_;
  size_t left_ HEADRACE_GUARDED_BY(mu_) = 1;
  bool is_done_ HEADRACE_GUARDED_BY(mu_) = false;
  bool is_over_ HEADRACE_GUARDED_BY(mu_) = false;
};

// Guarded by CacheReads' lock until it has arrived; its data do not change after that.
struct BlockFetch {
  struct Waiter {
    std::shared_ptr<Assembly> assembly;
    uint64_t begin = 0;  // in the block
    MutableBytes out;
  };

  void deliver(const Waiter& waiter) const {
    if (!status.ok()) {
      waiter.assembly->fail(status);
      return;
    }
    waiter.assembly->fill([&] {
      std::memcpy(waiter.out.data(), data.data() + (waiter.begin - skip), waiter.out.size());
      return true;
    });
    waiter.assembly->part_done();
  }

  CacheEntryPointer entry;
  uint64_t block = 0;
  uint64_t priority = 0;
  std::shared_ptr<const Segment> segment;
  std::unique_ptr<Segment::Claim> claim;  // null: the block is not kept
  uint64_t reserved = 0;                  // bytes of the folder's count
  uint64_t offset = 0;                    // of what is read, in the object
  uint64_t length = 0;
  uint64_t skip = 0;  // of the block, before that
  bool arrived = false;
  bool was_there = false;    // another process had written it
  bool is_uncached = false;  // the file is no longer what the block would be of
  Buffer data;
  Status status;
  std::vector<Waiter> waiters;
};

}  // namespace headrace
