// SPDX-License-Identifier: Apache-2.0
//
// For tests: a web server on loopback with files in memory, and a place for answers of its own.
//
//   TestServer server;
//   server.put("/d/a.bin", "0123456789");
//   server.answer([](const Asked& asked) -> std::optional<std::string> { return "HTTP/1.1 503 …";
//   }); open_store(server.url("/d/a.bin"))
//
// An answer of nothing ("") hangs until the server ends.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace headrace {

struct Asked {
  std::string method;
  std::string path;   // with its query
  std::string head;   // all lines, names in lower case
  size_t number = 0;  // of all requests, from 0
  std::string field(std::string_view name) const;
};

// Thread-safe.
class TestServer {
 public:
  using Answer = std::function<std::optional<std::string>(const Asked&)>;

  TestServer();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void put(const std::string& path, std::string_view content);
  // What goes before the files; nothing: the files answer.
  void answer(Answer answer);
  std::string url(std::string_view path) const;
  size_t requests() const { return requests_.load(); }
  size_t connections() const { return connections_.load(); }
  std::vector<Asked> asked() const;
  std::vector<std::pair<std::string, size_t>> files() const;  // paths and sizes

 private:
  struct File {
    std::string content;
    int version = 0;
  };
  void accept_all();
  void serve(int fd);
  std::string reply(const Asked& asked);
  std::string file_reply(const Asked& asked, const File& file) const;
  std::string index_reply(const std::string& path) const;

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> closing_{false};
  std::atomic<size_t> requests_{0};
  std::atomic<size_t> connections_{0};
  mutable Mutex mu_;
  std::map<std::string, File> files_ HEADRACE_GUARDED_BY(mu_);
  Answer answer_ HEADRACE_GUARDED_BY(mu_);
  std::vector<Asked> asked_ HEADRACE_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ HEADRACE_GUARDED_BY(mu_);
  std::thread accepts_;
};

}  // namespace headrace
