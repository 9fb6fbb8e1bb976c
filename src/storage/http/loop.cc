// SPDX-License-Identifier: Apache-2.0
#include "storage/http/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/http/attempt.h"
#include "storage/http/web_read.h"
#include "trace/notices.h"
#include "trace/spans.h"

namespace headrace {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kLookEvery = 20 * kMillisecond;  // at stalls, limits and what is late
constexpr int kIdleMs = 10'000;
constexpr uint64_t kLeastRate = 10'000;  // bytes a second, below which a try is not worth waiting

uint64_t nanoseconds(double seconds) {
  return static_cast<uint64_t>(seconds * 1e9);
}

}  // namespace

HttpLoop::HttpLoop(uint32_t loops) : loops_(std::max(1u, loops)), thread_([this] { run(); }) {}

HttpLoop::~HttpLoop() {
  {
    MutexLock lock(mu_);
    closing_ = true;
  }
  transfers_.wake();
  thread_.join();
}

void HttpLoop::add(std::vector<HttpTask> tasks) {
  if (tasks.empty()) return;
  for (const HttpTask& task : tasks) load_ += cost_of(task);
  {
    MutexLock lock(mu_);
    std::move(tasks.begin(), tasks.end(), std::back_inserter(inbox_));
  }
  transfers_.wake();
}

void HttpLoop::sweep() {
  sweep_.store(true);
  transfers_.wake();
}

void HttpLoop::abandon(const void* owner) {
  uint64_t mine = 0;
  {
    MutexLock lock(mu_);
    abandoned_.push_back(owner);
    mine = ++asked_;
  }
  transfers_.wake();
  if (std::this_thread::get_id() == thread_.get_id()) return;  // it does so next
  MutexLock lock(mu_);
  while (abandons_ < mine) is_abandoned_.wait(mu_);
}

void HttpLoop::run() {
  name_this_thread("hr-http");
  while (true) {
    {
      MutexLock lock(mu_);
      if (closing_) break;
    }
    take_inbox();
    if (sweep_.exchange(false)) end_cancelled();
    take_abandoned();
    uint64_t now = steady_ns();
    while (!delayed_.empty() && delayed_.begin()->first <= now) {
      Call& call = *delayed_.begin()->second;
      delayed_.erase(delayed_.begin());
      call.place = Call::Place::kWaiting;
      call.pool->add(call);
    }
    send_waiting(now);
    for (const Finished& what : transfers_.poll(wait_ms(now))) finished(what);
    over_.clear();
    now = steady_ns();
    if (now >= looked_ns_ + kLookEvery) {
      looked_ns_ = now;
      look_after(now);
      over_.clear();
    }
  }
  take_inbox();
  while (!calls_.empty()) end(*calls_.front(), cancelled("the read was given up"), {});
  over_.clear();
  MutexLock lock(mu_);
  abandons_ = asked_;
  is_abandoned_.notify_all();
}

void HttpLoop::take_inbox() {
  std::vector<HttpTask> tasks;
  {
    MutexLock lock(mu_);
    tasks.swap(inbox_);
  }
  for (HttpTask& task : tasks) {
    calls_.push_back(std::make_unique<Call>());
    Call& call = *calls_.back();
    call.task = std::move(task);
    call.cost = cost_of(call.task);
    call.self = std::prev(calls_.end());
    call.number = numbers_++;
    call.pool = &pool_of(call.task);
    call.pool->add(call);
    if (call.task.is_first) {
      call.pool->first_all = call.pool->first_left == 0 ? 1 : call.pool->first_all + 1;
      ++call.pool->first_left;
    }
    if (call.task.is_cancelled()) end(call, cancelled("the read was given up"), {});
  }
}

void HttpLoop::take_abandoned() {
  std::vector<const void*> owners;
  {
    MutexLock lock(mu_);
    if (abandoned_.empty()) return;
    owners.swap(abandoned_);
  }
  take_inbox();  // what they added before
  for (auto it = calls_.begin(); it != calls_.end();) {
    Call& call = **it++;
    if (std::find(owners.begin(), owners.end(), call.task.owner) != owners.end())
      end(call, cancelled("the read was given up"), {});
  }
  over_.clear();
  MutexLock lock(mu_);
  abandons_ += owners.size();
  is_abandoned_.notify_all();
}

void HttpLoop::end_cancelled() {
  for (auto it = calls_.begin(); it != calls_.end();) {
    Call& call = **it++;
    if (call.task.is_cancelled()) end(call, cancelled("the read was given up"), {});
  }
}

HttpLoop::Pool& HttpLoop::pool_of(const HttpTask& task) {
  const uint32_t asked = task.options->connections;
  const uint32_t most = asked != 0 ? asked : PoolLimit::kMost;
  return pools_
      .try_emplace(fmt::format("{} {}", task.origin, asked), std::max(1u, most / loops_), loops_)
      .first->second;
}

void HttpLoop::send_waiting(uint64_t now) {
  for (auto& [origin, pool] : pools_) {
    while (!pool.waiting.empty()) {
      Call& first = *pool.waiting.begin()->second;
      const bool is_beside_first = pool.waits_for_first() && !first.task.is_first;
      if (!pool.limit.may_send(pool.under_way, first.task.bytes, is_beside_first)) break;
      pool.remove(first);
      Call& call = join_neighbours(first);
      call.place = Call::Place::kUnderWay;
      if (call.progress_ns == 0) call.progress_ns = now;
      send(call, false);
    }
    if (!pool.waiting.empty()) pool.limit.full();
  }
}

void HttpLoop::Pool::add(Call& call) {
  waiting.emplace(std::pair(call.task.priority, call.number), &call);
  if (call.task.read == nullptr || call.task.bytes == 0 || call.tries > 0) return;
  const ReadRequest& request = call.task.read->request;
  if (ranges.try_emplace({call.task.owner, request.path, request.offset}, &call).second)
    range_bytes += call.task.bytes;
}

void HttpLoop::Pool::remove(Call& call) {
  waiting.erase({call.task.priority, call.number});
  if (call.task.read == nullptr) return;
  const ReadRequest& request = call.task.read->request;
  const auto found = ranges.find({call.task.owner, request.path, request.offset});
  if (found == ranges.end() || found->second != &call) return;
  range_bytes -= call.task.bytes;
  ranges.erase(found);
}

// Where more waits than connections are free, each request takes its share of it: ranges that lie
// one behind the other.  The call that has all of them: `call` itself, or one that lies before it.
// A small one is not joined with a large one: its bytes, or those of others that are wanted as
// soon, would wait for the large one's.
HttpLoop::Call& HttpLoop::join_neighbours(Call& call) {
  if (call.task.read == nullptr || call.task.bytes == 0 || call.tries > 0) return call;
  Pool& pool = *call.pool;
  // Twice its share: the next ones are waiting by the time that connections are free.
  const uint64_t share =
      2 * (pool.range_bytes + call.task.bytes) / std::max(1u, pool.limit.limit());
  Call* first = &call;
  const bool is_small = call.task.bytes < PoolLimit::kLarge;
  const auto fits = [&](const Call& a, const Call& b, const Call& other) {
    if (is_small && other.task.bytes >= PoolLimit::kLarge) return false;
    return first->task.bytes < share && a.task.read->is_before(*b.task.read) &&
           b.task.read->end() - a.task.read->request.offset <= kMostJoined;
  };
  while (true) {
    const WebRead& read = *first->task.read;
    const auto next = pool.ranges.lower_bound({call.task.owner, read.request.path, read.end()});
    if (next == pool.ranges.end() || !fits(*first, *next->second, *next->second)) break;
    Call& other = *next->second;
    pool.remove(other);
    absorb(*first, other);
  }
  while (true) {
    const ReadRequest& begin = first->task.read->request;
    auto before = pool.ranges.lower_bound({call.task.owner, begin.path, begin.offset});
    if (before == pool.ranges.begin()) break;
    Call& other = *(--before)->second;
    if (!fits(other, *first, other)) break;
    pool.remove(other);
    absorb(other, *first);
    first = &other;
  }
  return *first;
}

// `call` reads what `next` reads too, which waits no longer.
void HttpLoop::absorb(Call& call, Call& next) {
  call.task.read->join(*next.task.read);
  call.task.bytes = call.task.read->bytes_left();
  call.task.priority = std::min(call.task.priority, next.task.priority);
  call.task.is_whole_read = false;  // a second request would bring what is there already
  if (call.task.is_first && next.task.is_first) --call.pool->first_left;
  call.task.is_first = call.task.is_first || next.task.is_first;
  const ReadRequest& first = call.task.read->request;
  call.task.name = fmt::format("{} [{} +{}]", first.path, first.offset, call.task.bytes);
  call.cost += next.cost;
  calls_.erase(next.self);
}

void HttpLoop::send(Call& call, bool is_second) {
  Result<HttpRequest> request = call.task.make();
  if (!request.ok()) return is_second ? void() : end(call, request.status(), {});
  auto one = std::make_unique<Try>(call, is_second, std::move(request).value());
  one->answer.url = one->request.url;
  const Status status = transfers_.start(*one, one->request, *call.task.options);
  if (!status.ok()) return is_second ? void() : end(call, status, {});
  began(*call.pool, call);
  ++call.task.stats->requests;
  if (!is_second) ++call.tries;
  (is_second ? call.second : call.first) = std::move(one);
}

void HttpLoop::began(Pool& pool, const Call& call) {
  ++pool.under_way.requests;
  pool.under_way.large += call.task.bytes >= PoolLimit::kLarge ? 1 : 0;
  pool.under_way.bytes += call.task.bytes;
}

void HttpLoop::ended(Pool& pool, const Call& call) {
  --pool.under_way.requests;
  pool.under_way.large -= call.task.bytes >= PoolLimit::kLarge ? 1 : 0;
  pool.under_way.bytes -= call.task.bytes;
}

// A call that waits for others counts no time; one that was sent does, whatever it does now.
void HttpLoop::look_after(uint64_t now) {
  for (auto& [origin, pool] : pools_) pool.limit.tick(now);
  for (auto it = calls_.begin(); it != calls_.end();) {
    Call& call = **it++;
    if (call.progress_ns == 0) continue;
    const StoreOptions& options = *call.task.options;
    const uint64_t silent = now - std::min(now, call.progress_ns);
    if (silent > nanoseconds(options.stall_error_s)) {
      end(call,
          unavailable(fmt::format("no byte for {:.3g} s, {} tries: {}",
                                  static_cast<double>(silent) / 1e9, call.tries,
                                  call.failed.empty() ? "the server or the network hangs"
                                                      : std::string_view(call.failed))),
          {});
      continue;
    }
    if (silent > nanoseconds(options.stall_warning_s) && !call.warned) {
      call.warned = true;
      tell_user(fmt::format("{}: no byte for {:.3g} s; still trying, for {:.3g} s in all",
                            call.task.name, static_cast<double>(silent) / 1e9,
                            options.stall_error_s));
    }
    const Try* one = call.first != nullptr ? call.first.get() : call.second.get();
    if (one == nullptr) continue;
    const uint64_t deadline =
        one->sent_ns + nanoseconds(options.stall_retry_s) +
        nanoseconds(static_cast<double>(call.task.bytes) / static_cast<double>(kLeastRate));
    if (now - std::min(now, one->progress_ns) > nanoseconds(options.stall_retry_s) ||
        now > deadline) {
      stop_tries(call);
      --call.tries;  // the stall has a limit of its own
      try_again(call, unavailable("no byte came"), 0);
    }
  }
  hedge(now);
}

// Where nothing else waits: what takes longer than nearly all others did is asked for again.
void HttpLoop::hedge(uint64_t now) {
  constexpr uint64_t kLeastSeen = 50;
  constexpr uint64_t kShare = 20;  // at most one request in so many
  for (const auto& held : calls_) {
    Call& call = *held;
    if (call.place != Call::Place::kUnderWay || call.hedged || !call.task.is_whole_read) continue;
    if (!call.task.options->hedge || call.first == nullptr || !call.pool->waiting.empty()) continue;
    if (call.pool->under_way.requests >= call.pool->limit.limit()) continue;
    WebStats& stats = *call.task.stats;
    if (stats.hedges.load() * kShare > stats.requests.load()) continue;
    if (stats.first_byte_ns.snapshot().count < kLeastSeen) continue;
    const bool has_begun = call.first->first_byte_ns != 0;
    const auto late = late_after_ns(usual_answer(call, now), has_begun, call.task.bytes);
    if (!late || now - std::min(now, call.first->sent_ns) < *late) continue;
    call.hedged = true;
    ++stats.hedges;
    send(call, true);
  }
}

// With the bodies that come beside this one, from the same server.
UsualAnswer HttpLoop::usual_answer(const Call& call, uint64_t now) const {
  const WebStats& stats = *call.task.stats;
  const HistogramStats rate = stats.bytes_a_second.snapshot();
  UsualAnswer usual{.first_byte_ns = stats.first_byte_ns.quantile(0.99),
                    .bytes_a_second = rate.count == 0 ? 0 : rate.quantile(0.5)};
  for (const auto& held : calls_) {
    const Try* one = held->first.get();
    if (held.get() == &call || held->pool != call.pool || one == nullptr) continue;
    if (one->first_byte_ns == 0 || one->first_byte_ns >= now || held->task.bytes < kRateBytes)
      continue;
    const double ns = static_cast<double>(now - one->first_byte_ns);
    usual.others.push_back(static_cast<uint64_t>(static_cast<double>(one->got) * 1e9 / ns));
  }
  return usual;
}

int HttpLoop::wait_ms(uint64_t now) const {
  uint64_t until = now + uint64_t{kIdleMs} * kMillisecond;
  if (!calls_.empty()) until = now + 2 * kLookEvery;
  if (!delayed_.empty()) until = std::min(until, delayed_.begin()->first);
  return until <= now ? 0 : static_cast<int>((until - now) / kMillisecond + 1);
}

}  // namespace headrace
