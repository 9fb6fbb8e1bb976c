// SPDX-License-Identifier: Apache-2.0
#include "storage/test_stores.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

constexpr uint32_t kAnyNumber = 1024;  // reads at once that are worth it

uint64_t nanoseconds_of(uint64_t bytes, uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 /
                               static_cast<double>(bytes_per_second));
}

void complete_all_cancelled(std::vector<ReadRequest> requests) {
  for (ReadRequest& request : requests) complete_cancelled(std::move(request));
}

}  // namespace

LatencyStore::LatencyStore(std::shared_ptr<const Store> inner, LatencyOptions options)
    : StoreWrapper(std::move(inner)), options_(options) {
  for (unsigned t = 0; t < std::max(1u, options_.threads); ++t)
    threads_.emplace_back([this] { run(); });
}

LatencyStore::~LatencyStore() {
  std::vector<ReadRequest> left;
  {
    const std::lock_guard lock(mu_);
    closing_ = true;
    left = take_if([](const ReadRequest&) { return true; });
    wakes_.notify_all();
  }
  complete_all_cancelled(std::move(left));
  for (std::thread& thread : threads_) thread.join();
}

void LatencyStore::read(std::span<ReadRequest> requests) const {
  std::vector<ReadRequest> given_up;
  const uint64_t now = steady_ns();
  std::vector<Held> fresh;
  for (ReadRequest& request : requests) {
    mark_sent(request);
    uint64_t bytes = request.length;
    if (bytes == kWholeFile) {
      const Result<FileInfo> info = inner().stat(request.path);
      bytes = info.ok() ? info.value().bytes : 0;  // the read says what is wrong
    }
    fresh.push_back(
        {std::move(request), bytes, now + static_cast<uint64_t>(options_.latency.count())});
  }
  {
    const std::lock_guard lock(mu_);
    for (Held& held : fresh) {
      // Asked under the lock: what comes after cancel() has looked through the queues sees it.
      if (held.request.is_cancelled() || closing_) {
        given_up.push_back(std::move(held.request));
        continue;
      }
      held.number = numbers_++;
      const Order order{held.ready_ns, held.request.priority, held.number};
      waiting_.emplace(order, std::move(held));
    }
    const size_t under_way = waiting_.size() + link_.size() + due_.size();
    if (under_way > most_.load()) most_.store(under_way);
    wakes_.notify_one();
  }
  complete_all_cancelled(std::move(given_up));
}

void LatencyStore::run() {
  while (std::optional<ReadRequest> request = next()) inner().read({&*request, 1});
}

std::optional<ReadRequest> LatencyStore::next() const {
  std::unique_lock lock(mu_);
  while (!closing_) {
    const uint64_t now = steady_ns();
    advance(now);
    if (!due_.empty() && std::get<0>(due_.begin()->first) <= now) {
      Held held = std::move(due_.extract(due_.begin()).mapped());
      if (next_event() <= now) wakes_.notify_one();  // another thread copies that one
      return std::move(held.request);
    }
    const uint64_t event = next_event();
    if (event == ~uint64_t{0})
      wakes_.wait(lock);
    else
      wakes_.wait_until(lock, std::chrono::system_clock::now() +
                                  std::chrono::nanoseconds(event > now ? event - now : 0));
  }
  return std::nullopt;
}

// Times are those of the events, not those at which a thread woke: nothing is lost by a late one.
void LatencyStore::advance(uint64_t now) const {
  while (!waiting_.empty() && std::get<0>(waiting_.begin()->first) <= now) {
    Held held = std::move(waiting_.extract(waiting_.begin()).mapped());
    if (options_.total_bytes_per_second == 0) {
      const uint64_t when = held.ready_ns + nanoseconds_of(held.bytes, options_.bytes_per_second);
      due(std::move(held), when);
    } else {
      const Order order{0, held.request.priority, held.number};
      link_.emplace(order, std::move(held));
    }
  }
  while (!link_.empty() && link_free_ns_ <= now) {
    Held held = std::move(link_.extract(link_.begin()).mapped());
    link_free_ns_ = std::max(link_free_ns_, held.ready_ns) +
                    nanoseconds_of(held.bytes, options_.total_bytes_per_second);
    const uint64_t alone = held.ready_ns + nanoseconds_of(held.bytes, options_.bytes_per_second);
    due(std::move(held), std::max(link_free_ns_, alone));
  }
}

void LatencyStore::due(Held held, uint64_t when) const {
  const Order order{when, held.request.priority, held.number};
  due_.emplace(order, std::move(held));
}

uint64_t LatencyStore::next_event() const {
  uint64_t next = ~uint64_t{0};
  if (!waiting_.empty()) next = std::min(next, std::get<0>(waiting_.begin()->first));
  if (!due_.empty()) next = std::min(next, std::get<0>(due_.begin()->first));
  if (!link_.empty()) next = std::min(next, link_free_ns_);
  return next;
}

template <typename Which>
std::vector<ReadRequest> LatencyStore::take_if(const Which& which) const {
  std::vector<ReadRequest> out;
  for (Queue* queue : {&waiting_, &link_, &due_})
    for (auto it = queue->begin(); it != queue->end();) {
      const auto here = it++;
      if (!which(here->second.request)) continue;
      out.push_back(std::move(here->second.request));
      queue->erase(here);
    }
  return out;
}

void LatencyStore::cancel(const ReadGroup& group) const {
  std::vector<ReadRequest> given_up;
  {
    const std::lock_guard lock(mu_);
    given_up = take_if([&group](const ReadRequest& r) { return r.group.get() == &group; });
  }
  complete_all_cancelled(std::move(given_up));
  inner().cancel(group);
}

bool LatencyStore::read_if_resident(ReadRequest&) const {
  return false;
}

std::optional<Pin> LatencyStore::pin(std::string_view, uint64_t, uint64_t) const {
  return std::nullopt;
}

StoreCost LatencyStore::cost(const std::string&) const {
  return {.latency_ns = static_cast<uint64_t>(options_.latency.count()),
          .bytes_per_second = options_.bytes_per_second,
          .parallel_reads = kAnyNumber,
          .in_caller = false};
}

size_t LatencyStore::under_way() const {
  const std::lock_guard lock(mu_);
  return waiting_.size() + link_.size() + due_.size();
}

FailLaterStore::FailLaterStore(std::shared_ptr<const Store> inner, FailLaterOptions options)
    : StoreWrapper(std::make_shared<const LatencyStore>(
          std::move(inner), LatencyOptions{.latency = options.latency, .threads = 1})),
      options_(options) {}

void FailLaterStore::read(std::span<ReadRequest> requests) const {
  for (ReadRequest& request : requests) {
    const uint64_t number = reads_.fetch_add(1) + 1;
    const bool fails =
        options_.fail_read != 0 &&
        (options_.and_all_later ? number >= options_.fail_read : number == options_.fail_read);
    if (!fails) continue;
    request.done = [code = options_.code, done = std::move(request.done)](ReadRequest&& r) {
      if (r.status.ok()) r.status = Status(code, "injected fault").at(r.offset).in_file(r.path);
      done(std::move(r));
    };
  }
  inner().read(requests);
}

SilentStore::~SilentStore() {
  std::vector<ReadRequest> left;
  {
    MutexLock lock(mu_);
    left.swap(held_);
  }
  complete_all_cancelled(std::move(left));
}

void SilentStore::read(std::span<ReadRequest> requests) const {
  std::vector<ReadRequest> given_up;
  {
    MutexLock lock(mu_);
    for (ReadRequest& request : requests) {
      mark_sent(request);
      (request.is_cancelled() ? given_up : held_).push_back(std::move(request));
    }
  }
  complete_all_cancelled(std::move(given_up));
}

void SilentStore::cancel(const ReadGroup& group) const {
  std::vector<ReadRequest> given_up;
  {
    MutexLock lock(mu_);
    std::erase_if(held_, [&](ReadRequest& r) {
      if (r.group.get() != &group) return false;
      given_up.push_back(std::move(r));
      return true;
    });
  }
  complete_all_cancelled(std::move(given_up));
  inner().cancel(group);
}

bool SilentStore::read_if_resident(ReadRequest&) const {
  return false;
}

std::optional<Pin> SilentStore::pin(std::string_view, uint64_t, uint64_t) const {
  return std::nullopt;
}

StoreCost SilentStore::cost(const std::string&) const {
  return {.latency_ns = 50'000'000, .parallel_reads = kAnyNumber, .in_caller = false};
}

size_t SilentStore::held() const {
  MutexLock lock(mu_);
  return held_.size();
}

}  // namespace headrace
