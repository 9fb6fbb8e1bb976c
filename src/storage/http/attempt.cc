// SPDX-License-Identifier: Apache-2.0
#include "storage/http/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/guard.h"
#include "storage/http/late_answer.h"

namespace headrace {
namespace {

Result<MutableBytes> own_memory(Buffer& buffer, uint64_t bytes) {
  return guard([&]() -> Result<MutableBytes> {
    buffer.resize(bytes);
    return buffer.span();
  });
}

}  // namespace

bool HttpLoop::Try::head(HttpHead&& came) {
  first_byte_ns = progress_ns = call.progress_ns = steady_ns();
  call.task.stats->first_byte_ns.add(first_byte_ns - sent_ns);
  call.pool->limit.began(first_byte_ns - sent_ns);
  answer.head = std::move(came);
  if (!is_good() || !call.task.plan) return true;
  const Result<BodyPlan> wanted = call.task.plan(answer.head);
  if (!wanted.ok()) {
    status = wanted.status();
    return false;
  }
  plan = wanted.value();
  if (plan.bytes == kWholeFile) return true;
  pieces = second ? BodyPieces{{0, plan.bytes}} : call.task.pieces(plan.bytes);
  return true;
}

bool HttpLoop::Try::copy(Bytes bytes) {
  got += bytes.size();
  while (!bytes.empty()) {
    const BodyPiece& to = pieces[piece];
    size_t n = 0;
    if (piece_got < to.skip) {
      n = std::min<uint64_t>(to.skip - piece_got, bytes.size());
    } else {
      if (into.empty()) {
        const Result<MutableBytes> memory =
            second ? own_memory(own, to.bytes) : call.task.memory(piece);
        if (!memory.ok()) {
          status = memory.status();
          return false;
        }
        into = memory.value();
      }
      const MutableBytes room = into.subspan(piece_got - to.skip);
      n = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), n);
    }
    bytes = bytes.subspan(n);
    piece_got += n;
    if (piece_got < to.skip + to.bytes) continue;
    ++piece;
    piece_got = 0;
    into = {};
  }
  return true;
}

void HttpLoop::Try::sent() {
  progress_ns = call.progress_ns = steady_ns();
}

bool HttpLoop::Try::body(Bytes bytes) {
  progress_ns = call.progress_ns = steady_ns();
  call.pool->limit.arrived(bytes.size());
  if (!is_good() || plan.bytes == kWholeFile) {
    if (is_good() || answer.text.size() < kMostErrorText) answer.text.append(as_text(bytes));
    return true;
  }
  const size_t unwanted = std::min<uint64_t>(plan.skip - skipped, bytes.size());
  skipped += unwanted;
  bytes = bytes.subspan(unwanted);
  const size_t wanted = std::min<uint64_t>(plan.bytes - got, bytes.size());
  if (!copy(bytes.first(wanted))) return false;
  if (got == plan.bytes && bytes.size() >= kRateBytes / 4 && plan.bytes >= kRateBytes)
    call.task.stats->bytes_a_second.add(plan.bytes * 1'000'000'000 /
                                        std::max<uint64_t>(1, progress_ns - first_byte_ns));
  if (wanted == bytes.size()) {
    // The last ones are told of at the end, when the answer is known to be all that it says.
    if (!second && call.task.arrived && got < plan.bytes && piece > 0) call.task.arrived(got);
    return true;
  }
  rest += bytes.size() - wanted;
  if (rest <= plan.rest) return true;
  // More than asked for: of a server that sends the whole file the rest is not wanted.
  if (plan.skip == 0 && answer.head.status == 206)
    status =
        unavailable(fmt::format("the answer is longer than the {} bytes it names", plan.bytes));
  return false;
}

}  // namespace headrace
