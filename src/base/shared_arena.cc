// SPDX-License-Identifier: Apache-2.0
//
// The shared arena: segments of memory that have a descriptor (memfd), cut into allocations by
// first fit.  Meant for a pool in front of it: each call takes one lock and walks the gaps.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <utility>

#include "base/arena.h"
#include "base/mutex.h"
#include "base/per_process.h"

namespace headrace {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 62;  // beyond it file offsets end
// From here on what is freed goes back to the machine, though its segment stays.
constexpr uint64_t kPunchBytes = 64 << 10;

uint64_t round_up(uint64_t n, uint64_t step) {
  return (n + step - 1) / step * step;
}

// One thread at a time.
class SharedSegment {
 public:
  static Result<std::unique_ptr<SharedSegment>> make(uint64_t bytes, uint64_t number) {
    const int fd = memfd_create("headrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return from_errno(errno, "memfd_create");
    // From here on the destructor closes and unmaps.
    std::unique_ptr<SharedSegment> out(new SharedSegment(fd, bytes, number));
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0)
      return from_errno(errno, "size of a shared segment");
    // Nobody who has the descriptor can cut pages off under those who have them mapped.
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return from_errno(errno, "sealing a shared segment");
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return from_errno(errno, "mapping a shared segment");
    out->base_ = static_cast<std::byte*>(p);
    madvise(p, bytes, MADV_HUGEPAGE);
    return out;
  }
  ~SharedSegment() {
    if (base_ != nullptr) munmap(base_, bytes_);
    close(fd_);
  }
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  const std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t number() const { return number_; }
  bool is_empty() const { return gaps_.size() == 1 && gaps_.begin()->second == bytes_; }
  SharedName name_of(const std::byte* at) const {
    return {fd_, static_cast<uint64_t>(at - base_), number_, bytes_};
  }

  // Null where no gap is large enough.
  std::byte* take(uint64_t bytes, uint64_t alignment) {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      const auto [begin, length] = *gap;
      const uint64_t at = round_up(begin, alignment);
      const uint64_t end = begin + length;
      if (at > end || end - at < bytes) continue;
      gaps_.erase(gap);
      if (at > begin) gaps_[begin] = at - begin;
      if (at + bytes < end) gaps_[at + bytes] = end - at - bytes;
      return base_ + at;
    }
    return nullptr;
  }

  void give_back(const std::byte* data, uint64_t bytes) {
    uint64_t begin = static_cast<uint64_t>(data - base_);
    uint64_t end = begin + bytes;
    punch(begin, end);
    auto next = gaps_.upper_bound(begin);
    if (next != gaps_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == begin) {
        begin = before->first;
        gaps_.erase(before);
      }
    }
    if (next != gaps_.end() && next->first == end) {
      end += next->second;
      gaps_.erase(next);
    }
    gaps_[begin] = end - begin;
  }

 private:
  SharedSegment(int fd, uint64_t bytes, uint64_t number)
      : fd_(fd), bytes_(bytes), number_(number), gaps_{{0, bytes}} {}

  // Frees the pages that lie wholly in [begin, end).
  void punch(uint64_t begin, uint64_t end) {
    if (end - begin < kPunchBytes) return;
    begin = round_up(begin, kPageBytes);
    end = end / kPageBytes * kPageBytes;
    madvise(base_ + begin, end - begin, MADV_REMOVE);
  }

  const int fd_;
  const uint64_t bytes_;
  const uint64_t number_;
  std::byte* base_ = nullptr;
  std::map<uint64_t, uint64_t> gaps_;  // offset to length; no two touch
};

// The segments of one process.  Thread-safe.
class SharedSegments {
 public:
  explicit SharedSegments(uint64_t segment_bytes) : segment_bytes_(segment_bytes) {}

  Status add() {
    MutexLock lock(mu_);
    return add_locked(segment_bytes_).status();
  }

  MemoryBlock allocate(uint64_t bytes, uint64_t alignment) {
    MutexLock lock(mu_);
    // The oldest that has room, so that the youngest become empty and go.
    for (const auto& [number, segment] : segments_)
      if (std::byte* data = segment->take(bytes, alignment)) return {data, bytes};
    const auto made = add_locked(std::max(segment_bytes_, round_up(bytes, kPageBytes)));
    if (!made.ok()) throw std::bad_alloc();
    return {made.value()->take(bytes, alignment), bytes};
  }

  void release(MemoryBlock memory) {
    MutexLock lock(mu_);
    SharedSegment* found = find(memory.data);
    if (found == nullptr) return;  // the parent's, in a forked child
    found->give_back(memory.data, memory.bytes);
    if (!found->is_empty()) return;
    // One empty segment is kept: it holds few pages.
    if (has_spare(found) || found->bytes() > segment_bytes_) {
      by_address_.erase(found->base());
      segments_.erase(found->number());
    }
  }

  std::optional<SharedName> name_of(const std::byte* at) {
    MutexLock lock(mu_);
    const SharedSegment* found = find(at);
    if (found == nullptr) return std::nullopt;
    return found->name_of(at);
  }

 private:
  Result<SharedSegment*> add_locked(uint64_t bytes) HEADRACE_REQUIRES(mu_) {
    HEADRACE_ASSIGN(std::unique_ptr<SharedSegment> made, SharedSegment::make(bytes, next_number_));
    ++next_number_;
    SharedSegment* out = made.get();
    by_address_.emplace(out->base(), out);
    segments_.emplace(out->number(), std::move(made));
    return out;
  }

  // Null where it lies in none.
  SharedSegment* find(const std::byte* at) HEADRACE_REQUIRES(mu_) {
    const auto after = by_address_.upper_bound(at);
    if (after == by_address_.begin()) return nullptr;
    SharedSegment* before = std::prev(after)->second;
    return at < before->base() + before->bytes() ? before : nullptr;
  }

  bool has_spare(const SharedSegment* other_than) const HEADRACE_REQUIRES(mu_) {
    for (const auto& [number, segment] : segments_)
      if (segment.get() != other_than && segment->is_empty()) return true;
    return false;
  }

  const uint64_t segment_bytes_;
  Mutex mu_;
  std::map<uint64_t, std::unique_ptr<SharedSegment>> segments_ HEADRACE_GUARDED_BY(mu_);
  std::map<const std::byte*, SharedSegment*> by_address_ HEADRACE_GUARDED_BY(mu_);
  uint64_t next_number_ HEADRACE_GUARDED_BY(mu_) = 0;
};

class SharedArena final : public Arena {
 public:
  explicit SharedArena(uint64_t segment_bytes)
      : segments_([segment_bytes] { return std::make_unique<SharedSegments>(segment_bytes); }) {}

  Status begin() { return segments_->add(); }

  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    if (bytes > kMostBytes) throw std::bad_alloc();
    return segments_->allocate(round_up(std::max<size_t>(bytes, 1), kAlignment), alignment);
  }
  void release(MemoryBlock memory) override { segments_->release(memory); }
  std::optional<SharedName> name_of(const std::byte* at) const override {
    return segments_->name_of(at);
  }
  ArenaKind kind() const override { return ArenaKind::kShared; }

 private:
  const PerProcess<SharedSegments> segments_;
};

}  // namespace

Result<std::shared_ptr<Arena>> shared_arena(uint64_t segment_bytes) {
  if (segment_bytes == 0 || segment_bytes > kMostBytes)
    return invalid("a shared arena needs segments of at least one byte and at most 2^62");
  auto arena = std::make_shared<SharedArena>(round_up(segment_bytes, kPageBytes));
  HEADRACE_TRY(arena->begin());
  return std::shared_ptr<Arena>(std::move(arena));
}

}  // namespace headrace
