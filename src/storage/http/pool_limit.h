// SPDX-License-Identifier: Apache-2.0
//
// PoolLimit: how many requests to one server are under way at a time.  It grows while more of them
// bring more bytes, goes a step back where they do not, and halves where the server says that it
// has enough (503, 429).  Single such answers are a matter of those requests: only where they are
// more than kBearable of all does the limit fall.
//
// Large reads fill a wire with few connections: more of them only get in each other's way (83 reads
// of 4 MiB from one server of this machine took longer than 16), and of a server that answers at
// once what is wanted first is there the sooner the fewer come beside it.  Small ones wait for the
// server nearly all the time: while all that is under way is little, as many go out as are allowed
// at all; of a server that answers at once fewer, because there a connection costs more than a
// wait.  Of any other server large reads go out beside the small ones, and do not wait until those
// are answered: that would be a round trip in which nothing else is asked for.  While most of
// the first batch is on its way a third as many go out beside it: each connection gets as much of
// the wire as any other.
//
// Where several loops ask the same server, each has a limit of its own and begins with its share.
#pragma once

#include <cstdint>

namespace headrace {

// One thread at a time.  Times are those of the steady clock, in nanoseconds.
class PoolLimit {
 public:
  static constexpr uint32_t kFirst = 16;
  static constexpr uint32_t kFirstNear = 6;                // of a server that answers within kNear
  static constexpr uint64_t kNear = 5'000'000;             // ns
  static constexpr uint32_t kFirstFar = 32;                // of a server that takes kFar to answer
  static constexpr uint64_t kFar = 20'000'000;             // ns
  static constexpr uint64_t kLittle = uint64_t{16} << 20;  // bytes under way
  static constexpr uint32_t kLittleNear = 32;              // small reads of a near server, at first
  static constexpr uint64_t kLarge = uint64_t{1} << 20;    // bytes of a large read
  static constexpr uint32_t kMost = 128;
  static constexpr double kBearable = 0.05;

  // `most` is this loop's; `loops` ask the same server.
  explicit PoolLimit(uint32_t most = kMost, uint32_t loops = 1);

  uint32_t limit() const { return limit_; }
  uint32_t little_limit() const { return little_limit_; }
  // What is under way.
  struct UnderWay {
    uint32_t requests = 0;
    uint32_t large = 0;  // of these
    uint64_t bytes = 0;
  };
  // Whether one more may go out, of so many bytes.  `is_beside_first`: most of the first batch is
  // on its way, and this is not for it.
  bool may_send(const UnderWay& now, uint64_t bytes, bool is_beside_first = false) const {
    const bool is_large = !is_near_ && bytes >= kLarge;
    if (is_large && is_beside_first && now.large >= (limit_ + 2) / 3) return false;
    if (now.requests < limit_) return true;
    if (now.requests >= little_limit_) return false;
    return now.bytes < little_bytes_ || (is_large && now.large < limit_);
  }
  // An answer began so long after it was asked for.
  void began(uint64_t ns);
  // As many requests as the limit are under way, and others wait.
  void full() { was_full_ = true; }
  void arrived(uint64_t bytes) { bytes_ += bytes; }
  void answered() { ++answers_; }
  void throttled() { ++throttles_; }
  // Now and then: ends an interval when it is long enough.
  void tick(uint64_t now_ns);

 private:
  void grow_or_hold(double rate);

  const uint32_t most_;
  const uint32_t first_;
  const uint32_t first_near_;
  const uint32_t first_far_;
  const uint32_t little_near_;
  const uint64_t little_bytes_;
  uint32_t limit_;
  uint32_t little_limit_;  // of small reads
  bool has_begun_ = false;
  bool is_near_ = true;  // until an answer says otherwise
  uint64_t interval_begin_ = 0;
  uint64_t bytes_ = 0;
  uint64_t answers_ = 0;
  uint64_t throttles_ = 0;
  bool was_full_ = false;
  bool grew_ = false;     // at the end of the last interval
  double best_rate_ = 0;  // bytes a second, at this limit or a smaller one
  int hold_ = 0;          // intervals before it tries to grow again
};

}  // namespace headrace
