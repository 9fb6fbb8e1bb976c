// SPDX-License-Identifier: Apache-2.0
//
// A task that is not done, and one try to have it answered.  For the loop alone.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/buffer.h"
#include "storage/http/loop.h"

namespace headrace {

inline constexpr size_t kMostErrorText = 64 << 10;

class HttpLoop::Try final : public Transfer {
 public:
  Try(Call& of, bool is_second, HttpRequest asked)
      : call(of), second(is_second), request(std::move(asked)) {}

  bool head(HttpHead&& head) override;
  bool body(Bytes bytes) override;
  void sent() override;

  // A good answer, all of it.
  bool is_whole() const { return is_good() && (got == plan.bytes || plan.bytes == kWholeFile); }
  bool is_good() const { return answer.head.status >= 200 && answer.head.status < 300; }
  // Into the memory, after what is there.  False: there is none, as `status` says.
  bool copy(Bytes bytes);

  Call& call;
  const bool second;  // beside one that is late: its bytes go to memory of its own
  HttpRequest request;
  uint64_t sent_ns = steady_ns();
  uint64_t first_byte_ns = 0;
  uint64_t progress_ns = sent_ns;
  HttpAnswer answer;
  BodyPlan plan;
  BodyPieces pieces;
  size_t piece = 0;        // that is filled now
  MutableBytes into;       // its memory; empty before its first byte
  uint64_t piece_got = 0;  // of it, with what is skipped
  uint64_t rest = 0;       // behind all of them
  Buffer own;
  uint64_t skipped = 0;
  uint64_t got = 0;
  Status status;      // why it was stopped
  bool over = false;  // nobody wants to hear of it any more
};

struct HttpLoop::Call {
  enum class Place : uint8_t { kWaiting, kDelayed, kUnderWay };

  HttpTask task;
  Pool* pool = nullptr;
  uint64_t number = 0;
  uint64_t cost = 0;  // in the loop's load
  Calls::iterator self;
  Place place = Place::kWaiting;
  std::multimap<uint64_t, Call*>::iterator delay;
  std::unique_ptr<Try> first;
  std::unique_ptr<Try> second;
  uint32_t tries = 0;
  uint32_t redirects = 0;
  uint64_t progress_ns = 0;  // the last byte of any try; at first, when it was sent
  std::string failed;        // why the last try that ended did
  bool warned = false;
  bool hedged = false;
};

}  // namespace headrace
