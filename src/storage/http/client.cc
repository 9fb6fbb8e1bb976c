// SPDX-License-Identifier: Apache-2.0
#include "storage/http/client.h"

#include <algorithm>
#include <utility>

#include "base/machine.h"
#include "base/mutex.h"
#include "base/per_process.h"

namespace headrace {
namespace {

constexpr uint32_t kMostRequests = PoolLimit::kMost;  // to one server

// One copies some gigabytes a second; TLS takes more.
size_t loop_count() {
  const int cpus = usable_cpus();
  return cpus <= 4 ? 1 : cpus <= 16 ? 2 : 4;
}

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
    loops_.push_back(std::make_unique<HttpLoop>(kMostRequests / static_cast<uint32_t>(loops)));
}

void HttpClient::add(std::vector<HttpTask> tasks) {
  if (loops_.size() == 1) return loops_[0]->add(std::move(tasks));
  std::vector<std::vector<HttpTask>> shares(loops_.size());
  std::vector<size_t> loads;
  for (const auto& loop : loops_) loads.push_back(loop->load());
  for (HttpTask& task : tasks) {
    const auto least = std::min_element(loads.begin(), loads.end()) - loads.begin();
    ++loads[static_cast<size_t>(least)];
    shares[static_cast<size_t>(least)].push_back(std::move(task));
  }
  for (size_t i = 0; i < loops_.size(); ++i) loops_[i]->add(std::move(shares[i]));
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
  for (size_t i = 0; i < tasks.size(); ++i)
    tasks[i].done = [&waiter, i](Status status, HttpAnswer&& answer) {
      waiter.set(i, status.ok() ? Result<HttpAnswer>(std::move(answer))
                                : Result<HttpAnswer>(std::move(status)));
    };
  add(std::move(tasks));
  return waiter.wait();
}

}  // namespace headrace
