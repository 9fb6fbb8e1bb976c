// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: the loops of this process, shared by all stores, and with them the connections.
// Nothing starts before the first request; a forked child makes its own.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "storage/http/loop.h"

namespace headrace {

// Thread-safe.
class HttpClient {
 public:
  static HttpClient& of_process();

  HttpClient();
  void add(std::vector<HttpTask> tasks);
  void sweep();
  void abandon(const void* owner);
  // Hands them over and waits for all; results in their order.  done() of the tasks is ours.
  std::vector<Result<HttpAnswer>> ask(std::vector<HttpTask> tasks);

 private:
  size_t choose(const HttpTask& task, const std::vector<uint64_t>& loads) HEADRACE_REQUIRES(mu_);

  std::vector<std::unique_ptr<HttpLoop>> loops_;
  Mutex mu_;
  // Which loop reads a part of a file (kMostJoined bytes), by its hash.
  std::unordered_map<uint64_t, size_t> places_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
