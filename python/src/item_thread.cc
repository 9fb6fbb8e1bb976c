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
constexpr size_t kRowsOfALook = 8;     // samples between two looks at the clock
constexpr auto kPoll = std::chrono::milliseconds(100);

}  // namespace

class ItemThread::Queue {
 public:
  // Requests that were handed over together, or samples to make, or a function to call.
  struct Entry {
    std::shared_ptr<const ItemServer> server;
    std::vector<ReadRequest> requests;
    std::vector<RowsToMake> rows;
    size_t served = 0;  // so many samples of them, from the first on, are done
    std::function<void()> work;
    uint64_t priority() const {
      if (!rows.empty()) return rows.front().priority;
      return requests.empty() ? 0 : requests.front().priority;
    }
    size_t size() const {
      size_t out = requests.size();
      for (const RowsToMake& each : rows) out += each.samples.size();
      return out;
    }
    bool empty() const { return requests.empty() && rows.empty() && !work; }
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
  void serve_some(Entry& entry) const;
  void serve(std::vector<Entry>& done);
  void finish(std::vector<Entry>& done);
  void cancel_all();

  static thread_local const Queue* serving_;  // whose thread this is

  const size_t threads_;
  const bool is_elsewhere_;
  Mutex mu_;
  CondVar wakes_;
  std::deque<Entry> queue_ HEADRACE_GUARDED_BY(mu_);
  size_t queued_ HEADRACE_GUARDED_BY(mu_) = 0;  // samples
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

void complete_rows(RowsToMake&& rows) {
  const auto done = std::move(rows.done);
  done(std::move(rows));
}

// The first so many of them; samples that are made once all are.
void complete_served(ItemThread::Queue::Entry& entry) {
  if (!entry.rows.empty()) {
    if (entry.served < entry.size()) return;
    for (RowsToMake& rows : entry.rows) complete_rows(std::move(rows));
    entry.rows.clear();
    entry.served = 0;
    return;
  }
  for (size_t i = 0; i < entry.served; ++i) {
    Status status = std::move(entry.requests[i].status);
    complete(std::move(entry.requests[i]), std::move(status));
  }
  entry.requests.erase(entry.requests.begin(),
                       entry.requests.begin() + static_cast<std::ptrdiff_t>(entry.served));
  entry.served = 0;
}

void fail_rows(RowsToMake&& rows, const Status& status) {
  for (size_t i = 0; i < rows.samples.size(); ++i) rows.failed.emplace_back(i, status);
  complete_rows(std::move(rows));
}

void fail_all(ItemThread::Queue::Entry& entry, const Status& status) {
  for (ReadRequest& request : entry.requests) complete(std::move(request), status);
  entry.requests.clear();
  for (RowsToMake& rows : entry.rows) fail_rows(std::move(rows), status);
  entry.rows.clear();
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
    queued_ += entry.size() - entry.served;
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
  std::vector<RowsToMake> gone_rows;
  {
    MutexLock lock(mu_);
    for (Entry& entry : queue_) {
      std::erase_if(entry.rows, [&](RowsToMake& rows) {
        if (rows.group.get() != &group) return false;
        queued_ -= rows.samples.size() - std::exchange(entry.served, 0);
        gone_rows.push_back(std::move(rows));
        return true;
      });
      std::vector<ReadRequest> kept;
      for (ReadRequest& request : entry.requests)
        (request.group.get() == &group ? gone : kept).push_back(std::move(request));
      entry.requests = std::move(kept);
    }
    queued_ -= gone.size();
    std::erase_if(queue_, [](const Entry& e) { return e.empty(); });
  }
  for (RowsToMake& rows : gone_rows) fail_rows(std::move(rows), cancelled("it was given up"));
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
  queued_ -= out.size() - out.served;
  // Samples that are made by one thread are made batch by batch.
  if (!out.rows.empty() && !is_elsewhere_) return true;
  size_t taken = out.size();
  while (!queue_.empty() && queue_.front().server == out.server &&
         queue_.front().rows.empty() == out.rows.empty() && taken + queue_.front().size() <= most) {
    Entry& more = queue_.front();
    taken += more.size();
    queued_ -= more.size();
    std::move(more.requests.begin(), more.requests.end(), std::back_inserter(out.requests));
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(out.rows));
    queue_.pop_front();
  }
  return true;
}

void ItemThread::Queue::put_back(Entry&& entry) {
  MutexLock lock(mu_);
  queued_ += entry.size() - entry.served;
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

// The next samples of it, as many as the server wants at a time.  Those of one Loader may have been
// given up, and others not.
void ItemThread::Queue::serve_some(Entry& entry) const {
  const size_t size = entry.size();
  const size_t most = entry.server->most_together();
  if (entry.rows.empty()) {
    const auto now =
        std::span(entry.requests).subspan(entry.served, std::min(most, size - entry.served));
    // Those that are given up come last.
    const auto end = std::stable_partition(
        now.begin(), now.end(), [](const ReadRequest& request) { return !request.is_cancelled(); });
    for (ReadRequest& request : now) mark_sent(request);
    if (end != now.begin()) entry.server->serve({now.begin(), end});
    std::for_each(end, now.end(),
                  [](ReadRequest& request) { request.status = cancelled("it was given up"); });
    entry.served += now.size();
    return;
  }
  std::vector<RowRun> runs;
  for (RowsToMake& rows : entry.rows) {
    const RowRun run = is_elsewhere_
                           ? RowRun{&rows, 0, rows.samples.size()}
                           : RowRun{&rows, entry.served,
                                    std::min(std::max(most, kRowsOfALook), size - entry.served)};
    entry.served += run.count;
    if (!rows.is_cancelled()) {
      runs.push_back(run);
      continue;
    }
    for (size_t i = run.from; i < run.from + run.count; ++i)
      rows.failed.emplace_back(i, cancelled("it was given up"));
  }
  if (!runs.empty()) entry.server->make(runs);
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
    const size_t size = entry.size();
    while (entry.served < size && (entry.served == 0 || turn.ns() < kTurnNs)) serve_some(entry);
    done.push_back(std::move(entry));
    entry = {};
  }
}

// What was served of each completes; the rest waits on.
void ItemThread::Queue::finish(std::vector<Entry>& done) {
  for (Entry& entry : done) {
    complete_served(entry);
    if (!entry.empty()) put_back(std::move(entry));
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
  Queue::Entry entry;
  entry.server = server;
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

void ItemThread::make(const std::shared_ptr<const ItemServer>& server, RowsToMake&& rows) const {
  const std::shared_ptr<Queue>& queue = *queue_;
  Queue::Entry entry;
  entry.server = server;
  entry.rows.push_back(std::move(rows));
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
