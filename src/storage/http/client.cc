// SPDX-License-Identifier: Apache-2.0
#include "storage/http/client.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/machine.h"
#include "base/mutex.h"
#include "base/per_process.h"
#include "storage/http/web_read.h"

namespace headrace {
namespace {

// One receives some gigabytes a second; TLS takes more.
size_t loop_count() {
  const int cpus = usable_cpus();
  return cpus <= 1 ? 1 : cpus <= 16 ? 2 : 4;
}

constexpr size_t kMostPlaces = 1 << 16;  // remembered

// Answers that someone waits for.
class AnswerWaiter {
 public:
  explicit AnswerWaiter(size_t count) : left_(count) {
    answers_.assign(count, Result<HttpAnswer>(internal("not asked")));
  }
  void set(size_t i, Result<HttpAnswer> answer) {
    MutexLock lock(mu_);
    answers_[i] = std::move(answer);
    if (--left_ == 0) all_.notify_one();
  }
  // False: the flag was set first.
  bool wait_until(const std::atomic<bool>& flag) {
    MutexLock lock(mu_);
    while (left_ > 0 && !flag.load()) all_.wait_for_ms(mu_, kInterruptMs);
    return left_ == 0;
  }
  std::vector<Result<HttpAnswer>> wait() {
    MutexLock lock(mu_);
    while (left_ > 0) all_.wait(mu_);
    return std::move(answers_);
  }

 private:
  Mutex mu_;
  CondVar all_;
  size_t left_ HEADRACE_GUARDED_BY(mu_);
  std::vector<Result<HttpAnswer>> answers_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

// Never destroyed: libraries below libcurl clean up after themselves when the process ends, in an
// order that nobody knows.
HttpClient& HttpClient::of_process() {
  static const auto& client =
      *new PerProcess<HttpClient>([] { return std::make_unique<HttpClient>(); });
  return *client;
}

HttpClient::HttpClient() {
  const size_t loops = loop_count();
  for (size_t i = 0; i < loops; ++i)
    loops_.push_back(std::make_unique<HttpLoop>(static_cast<uint32_t>(loops)));
}

void HttpClient::add(std::vector<HttpTask> tasks) {
  if (loops_.size() == 1) return loops_[0]->add(std::move(tasks));
  std::vector<std::vector<HttpTask>> shares(loops_.size());
  {
    MutexLock lock(mu_);
    std::vector<uint64_t> loads;
    for (const auto& loop : loops_) loads.push_back(loop->load());
    for (HttpTask& task : tasks) {
      const size_t loop = choose(task, loads);
      loads[loop] += HttpLoop::cost_of(task);
      shares[loop].push_back(std::move(task));
    }
  }
  for (size_t i = 0; i < loops_.size(); ++i) loops_[i]->add(std::move(shares[i]));
}

// Ranges that lie beside each other go to the same loop, which may ask for them in one request; all
// else to the one that has the least to do.
size_t HttpClient::choose(const HttpTask& task, const std::vector<uint64_t>& loads) {
  // Fewer connections than loops: so many loops take part.
  const size_t most = task.options->connections != 0 ? task.options->connections : loads.size();
  const auto end = loads.begin() + static_cast<ptrdiff_t>(std::min(most, loads.size()));
  const auto least = static_cast<size_t>(std::min_element(loads.begin(), end) - loads.begin());
  if (task.read == nullptr || task.bytes == 0) return least;
  const ReadRequest& request = task.read->request;
  if (places_.size() >= kMostPlaces) places_.clear();
  const uint64_t place = Hasher().add(request.path).finish().low + request.offset / kMostJoined;
  const size_t known = places_.try_emplace(place, least).first->second;
  return known < most ? known : least;
}

void HttpClient::sweep() {
  for (const auto& loop : loops_) loop->sweep();
}

void HttpClient::abandon(const void* owner) {
  for (const auto& loop : loops_) loop->abandon(owner);
}

std::vector<Result<HttpAnswer>> HttpClient::ask(std::vector<HttpTask> tasks) {
  if (tasks.empty()) return {};
  AnswerWaiter waiter(tasks.size());
  const std::atomic<bool>* const interrupt = interrupt_flag();
  const auto group = interrupt == nullptr ? nullptr : std::make_shared<ReadGroup>();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (group != nullptr) tasks[i].group = group;
    tasks[i].done = [&waiter, i](Status status, HttpAnswer&& answer) {
      waiter.set(i, status.ok() ? Result<HttpAnswer>(std::move(answer))
                                : Result<HttpAnswer>(std::move(status)));
    };
  }
  add(std::move(tasks));
  if (interrupt != nullptr && !waiter.wait_until(*interrupt)) {
    group->cancel();
    sweep();
  }
  return waiter.wait();
}

}  // namespace headrace
