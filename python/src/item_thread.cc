// SPDX-License-Identifier: Apache-2.0
#include "item_thread.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "trace/clock.h"
#include "trace/spans.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

constexpr uint64_t kTurnNs = 500'000;  // with the GIL, where samples come faster
constexpr auto kPoll = std::chrono::milliseconds(100);

}  // namespace

class ItemThread::Queue {
 public:
  // Requests that were handed over together, or a function to call.
  struct Entry {
    std::shared_ptr<const ItemServer> server;
    std::vector<ReadRequest> requests;
    size_t served = 0;  // so many of them, from the first on, are done
    std::function<void()> work;
    uint64_t priority() const { return requests.empty() ? 0 : requests.front().priority; }
  };

  explicit Queue(size_t processes) : threads_(processes + 1), is_elsewhere_(processes > 0) {}
  size_t size() const { return threads_; }

  // False once it is closed.
  bool add(Entry&& entry, const std::shared_ptr<Queue>& self);
  void cancel(const ReadGroup& group);
  void close() {
    MutexLock lock(mu_);
    closing_ = true;
    wakes_.notify_all();
  }
  bool is_this_thread() const { return serving_ == this; }

  // What the thread does.
  void main();

 private:
  bool wait();
  bool take(Entry& out);
  void put_back(Entry&& entry);
  void call(Entry& entry) const;
  void serve(std::vector<Entry>& done);
  void finish(std::vector<Entry>& done);
  void cancel_all();

  static thread_local const Queue* serving_;  // whose thread this is

  const size_t threads_;
  const bool is_elsewhere_;
  Mutex mu_;
  CondVar wakes_;
  std::deque<Entry> queue_ HEADRACE_GUARDED_BY(mu_);
  size_t queued_ HEADRACE_GUARDED_BY(mu_) = 0;  // requests
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  bool started_ HEADRACE_GUARDED_BY(mu_) = false;
};

thread_local const ItemThread::Queue* ItemThread::Queue::serving_ = nullptr;

namespace {

// All threads of this process, to be joined.
class Threads {
 public:
  // False once they were ended.
  bool start(const std::shared_ptr<ItemThread::Queue>& queue) {
    std::vector<std::thread> gone;
    MutexLock lock(mu_);
    if (ended_) return false;
    for (auto at = running_.begin(); at != running_.end();) {
      if (!at->done->load()) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->thread));
      at = running_.erase(at);
    }
    for (std::thread& thread : gone) thread.join();  // they have nothing left to do
    auto done = std::make_shared<std::atomic<bool>>(false);
    running_.push_back({std::thread([queue = queue, done]() mutable {
                          queue->main();
                          queue.reset();
                          done->store(true);
                        }),
                        done, queue});
    return true;
  }
  void end() {
    std::deque<Running> all;
    {
      MutexLock lock(mu_);
      ended_ = true;
      all.swap(running_);
    }
    for (const Running& each : all)
      if (const auto queue = each.queue.lock()) queue->close();
    for (Running& each : all) each.thread.join();
  }

 private:
  struct Running {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> done;
    std::weak_ptr<ItemThread::Queue> queue;
  };
  Mutex mu_;
  std::deque<Running> running_ HEADRACE_GUARDED_BY(mu_);
  bool ended_ HEADRACE_GUARDED_BY(mu_) = false;
};

Threads& threads() {
  // Never freed: the process may end with threads that nobody joined.
  static auto* all = new PerProcess<Threads>([] { return std::make_unique<Threads>(); });
  return **all;
}

// The first so many of them.
void complete_served(ItemThread::Queue::Entry& entry) {
  for (size_t i = 0; i < entry.served; ++i) {
    Status status = std::move(entry.requests[i].status);
    complete(std::move(entry.requests[i]), std::move(status));
  }
  entry.requests.erase(entry.requests.begin(),
                       entry.requests.begin() + static_cast<std::ptrdiff_t>(entry.served));
  entry.served = 0;
}

void fail_all(ItemThread::Queue::Entry& entry, const Status& status) {
  for (ReadRequest& request : entry.requests) complete(std::move(request), status);
  entry.requests.clear();
}

}  // namespace

bool ItemThread::Queue::add(Entry&& entry, const std::shared_ptr<Queue>& self) {
  bool start = false;
  {
    MutexLock lock(mu_);
    if (closing_) return false;
    start = !started_;
    started_ = true;
    // Nearly always the last: a bad sample's replacement is of an earlier batch.
    auto at = queue_.end();
    while (at != queue_.begin() && std::prev(at)->priority() > entry.priority()) --at;
    queued_ += entry.requests.size();
    queue_.insert(at, std::move(entry));
    wakes_.notify_one();
  }
  for (size_t i = 0; start && i < threads_; ++i) {
    if (threads().start(self)) continue;
    close();
    cancel_all();
    break;
  }
  return true;
}

void ItemThread::Queue::cancel(const ReadGroup& group) {
  std::vector<ReadRequest> gone;
  {
    MutexLock lock(mu_);
    for (Entry& entry : queue_) {
      std::vector<ReadRequest> kept;
      for (ReadRequest& request : entry.requests)
        (request.group.get() == &group ? gone : kept).push_back(std::move(request));
      entry.requests = std::move(kept);
    }
    queued_ -= gone.size();
    std::erase_if(queue_, [](const Entry& e) { return e.requests.empty() && !e.work; });
  }
  for (ReadRequest& request : gone) complete_cancelled(std::move(request));
}

void ItemThread::Queue::cancel_all() {
  std::deque<Entry> left;
  {
    MutexLock lock(mu_);
    left.swap(queue_);
    queued_ = 0;
  }
  for (Entry& entry : left) fail_all(entry, cancelled("Python has ended"));
}

bool ItemThread::Queue::wait() {
  MutexLock lock(mu_);
  while (queue_.empty() && !closing_) wakes_.wait(mu_);
  return !closing_;
}

bool ItemThread::Queue::take(Entry& out) {
  MutexLock lock(mu_);
  if (queue_.empty() || closing_) return false;
  // Each thread its share of what waits.
  const size_t share = (queued_ + threads_ - 1) / threads_;
  Entry& first = queue_.front();
  const size_t most =
      first.server ? std::max<size_t>(1, std::min(first.server->most_together(), share)) : 0;
  if (is_elsewhere_ && first.requests.size() > most && most > 0) {
    // The rest is for the other threads.
    const auto end = first.requests.begin() + static_cast<std::ptrdiff_t>(most);
    out.server = first.server;
    out.requests.assign(std::make_move_iterator(first.requests.begin()),
                        std::make_move_iterator(end));
    first.requests.erase(first.requests.begin(), end);
    queued_ -= most;
    return true;
  }
  out = std::move(first);
  queue_.pop_front();
  queued_ -= out.requests.size();
  while (!queue_.empty() && queue_.front().server == out.server &&
         out.requests.size() + queue_.front().requests.size() <= most) {
    std::vector<ReadRequest>& more = queue_.front().requests;
    queued_ -= more.size();
    std::move(more.begin(), more.end(), std::back_inserter(out.requests));
    queue_.pop_front();
  }
  return true;
}

void ItemThread::Queue::put_back(Entry&& entry) {
  MutexLock lock(mu_);
  queued_ += entry.requests.size();
  queue_.push_front(std::move(entry));
}

// A function in Python, and what it holds let go of.
void ItemThread::Queue::call(Entry& entry) const {
  if (is_elsewhere_) {
    const nb::gil_scoped_acquire gil;
    entry.work();
    entry.work = nullptr;
    return;
  }
  entry.work();
  entry.work = nullptr;
}

// Serves for a turn; what is done of it goes to `done`.
void ItemThread::Queue::serve(std::vector<Entry>& done) {
  const Stopwatch turn;
  Entry entry;
  while (turn.ns() < kTurnNs && take(entry)) {
    if (entry.work) {
      call(entry);
      continue;
    }
    const size_t most = entry.server->most_together();
    while (entry.served < entry.requests.size() && (entry.served == 0 || turn.ns() < kTurnNs)) {
      const size_t count = std::min(most, entry.requests.size() - entry.served);
      const auto now = std::span(entry.requests).subspan(entry.served, count);
      for (ReadRequest& request : now) mark_sent(request);
      if (now[0].is_cancelled())
        for (ReadRequest& request : now) request.status = cancelled("it was given up");
      else
        entry.server->serve(now);
      entry.served += count;
    }
    done.push_back(std::move(entry));
    entry = {};
  }
}

// What was served of each completes; the rest waits on.
void ItemThread::Queue::finish(std::vector<Entry>& done) {
  for (Entry& entry : done) {
    complete_served(entry);
    if (!entry.requests.empty()) put_back(std::move(entry));
  }
  done.clear();
}

void ItemThread::Queue::main() {
  name_this_thread("hr-python");
  serving_ = this;
  std::vector<Entry> done;
  if (is_elsewhere_) {
    while (wait()) {
      serve(done);
      finish(done);
    }
  } else {
    // For as long as the thread lives: what Python keeps for a thread stays.
    const nb::gil_scoped_acquire gil;
    while (true) {
      {
        const nb::gil_scoped_release release;
        finish(done);
        if (!wait()) break;
      }
      serve(done);
    }
  }
  cancel_all();
}

ItemThread::ItemThread(size_t processes)
    : queue_([processes] {
        return std::make_unique<std::shared_ptr<Queue>>(std::make_shared<Queue>(processes));
      }) {}

size_t ItemThread::callers() const {
  return (*queue_)->size();
}

ItemThread::~ItemThread() {
  (*queue_)->close();
}

void ItemThread::read(const std::shared_ptr<const ItemServer>& server,
                      std::span<ReadRequest> requests) const {
  const std::shared_ptr<Queue>& queue = *queue_;
  Queue::Entry entry{.server = server, .requests = {}, .work = {}};
  entry.requests.reserve(requests.size());
  for (ReadRequest& request : requests) {
    if (request.is_cancelled())
      complete_cancelled(std::move(request));
    else
      entry.requests.push_back(std::move(request));
  }
  if (entry.requests.empty()) return;
  if (queue->is_this_thread()) {  // a sample that is made of other samples
    if (server->is_elsewhere()) {
      server->serve(entry.requests);
    } else {
      const nb::gil_scoped_acquire gil;
      server->serve(entry.requests);
    }
    entry.served = entry.requests.size();
    return complete_served(entry);
  }
  if (!queue->add(std::move(entry), queue)) fail_all(entry, cancelled("Python has ended"));
}

void ItemThread::cancel(const ReadGroup& group) const {
  (*queue_)->cancel(group);
}

void ItemThread::run(std::function<void()> work, const std::function<bool()>& poll) const {
  const std::shared_ptr<Queue>& queue = *queue_;
  if (queue->is_this_thread()) {
    const nb::gil_scoped_acquire gil;
    return work();
  }
  auto promise = std::make_shared<std::promise<void>>();
  std::future<void> done = promise->get_future();
  Queue::Entry entry;
  entry.work = [work = std::move(work), promise = std::move(promise)] {
    work();
    promise->set_value();
  };
  if (!queue->add(std::move(entry), queue)) return;
  while (done.wait_for(kPoll) != std::future_status::ready && poll()) {
  }
}

void end_item_threads() {
  threads().end();
}

}  // namespace headrace::py
