// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool: processes that are spawned once, call Python functions, and read and write shared
// memory.  What goes over the socket is small: where values lie (segment and offset of a memfd),
// and a header that only the two ends of a call understand.
//
//   WorkerPool::Lease lease(pool);                          // waits for a free process
//   HEADRACE_ASSIGN(auto reply, lease.call(target, header, inputs, places));
//   HEADRACE_TRY(lease.place(0, room));                     // of a result that has no place yet
//
// A process that dies or is stuck is named, and another is started in its place by the next lease.
// Processes end when the pool does, and when this process does, however that ends: the kernel kills
// them (PR_SET_PDEATHSIG of the thread that spawns them, which lives as long as the pool), and the
// socket's end tells them.  headrace/processes/worker.py is the other end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "batch/buffer_pool.h"

namespace headrace::py {

// The memory that processes share: one arena for all pools of this process, with a pool of buffers
// before it.
std::shared_ptr<Arena> process_arena();
BufferPool& process_memory();

struct WorkerOptions {
  std::vector<std::string> command;  // of a process; it finds its socket at 3, the payload at 4
  std::vector<std::string> environment;
};

// What the processes call, known once all who use the pool are.
struct WorkerTargets {
  std::string payload;
  size_t processes = 1;
  std::vector<int> timeouts_ms;  // of a call of each target; 0: none
};

// A result of a call: in shared memory already, or waiting for a place.
struct WorkerResult {
  uint64_t bytes = 0;
  bool is_placed = false;    // in the place that the call gave for it
  uint64_t segment = kNone;  // in this segment, at this offset; kNone: nowhere yet
  uint64_t offset = 0;
  static constexpr uint64_t kNone = ~uint64_t{0};
};

struct WorkerReply {
  std::string header;
  std::vector<WorkerResult> results;
};

// What a function raised: "Type: words", and the traceback of the process.
struct WorkerError {
  std::string what, traceback;
};

// Thread-safe.  Of one process: a forked child gets an error.
class WorkerPool {
 public:
  static Result<std::shared_ptr<WorkerPool>> make(WorkerOptions options);
  // Once, before the first lease.
  Status prepare(WorkerTargets targets);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void start();  // spawns all, without waiting for them; else the first lease does
  void close();  // ends all; calls under way fail
  std::vector<pid_t> pids() const;
  uint64_t restarts() const;

  class Lease;

 private:
  struct Worker;
  class Spawner;
  explicit WorkerPool(WorkerOptions options);
  Result<Worker*> take() HEADRACE_EXCLUDES(mu_);
  void give_back(Worker* worker) HEADRACE_EXCLUDES(mu_);
  Status spawn(Worker& worker);  // by the thread that spawns
  Status spawn_here(Worker& worker);

  const WorkerOptions options_;
  const pid_t owner_;
  std::vector<int> timeouts_ms_;
  int payload_ = -1;
  std::unique_ptr<Spawner> spawner_;
  mutable Mutex mu_;
  CondVar freed_;
  bool started_ HEADRACE_GUARDED_BY(mu_) = false;
  bool closed_ HEADRACE_GUARDED_BY(mu_) = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_ HEADRACE_GUARDED_BY(mu_);  // the last one is warm
  // Who came first is served first: else threads that go on to later batches keep the head waiting.
  uint64_t came_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t served_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t restarts_ HEADRACE_GUARDED_BY(mu_) = 0;
};

// One process, until the lease ends.  One thread at a time.
class WorkerPool::Lease {
 public:
  explicit Lease(WorkerPool& pool);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Calls.  `inputs` and `places` lie in process_arena(); what a place must hold, the header says.
  // kCorrupt: the process died, was stuck, or the function said that its data are bad.  kInvalid:
  // the function failed otherwise; error() then says how.
  Result<WorkerReply> call(uint32_t target, std::string_view header, std::span<const Bytes> inputs,
                           std::span<const MutableBytes> places = {});
  // Writes a result of the last call there.
  Status place(uint32_t result, MutableBytes room);
  const WorkerError& error() const { return error_; }

 private:
  Status begin();
  Status begin_once();
  Status send(std::string message, const std::vector<int>& descriptors);
  Result<std::string> receive(int timeout_ms, std::string_view doing);
  Status lost(std::string_view why);
  // Adds to the message where the memory lies, and to `news` the segments it does not know yet.
  Status add_place(Bytes memory, std::string& message, std::vector<SharedName>& news);

  WorkerPool& pool_;
  Worker* worker_ = nullptr;
  Status begun_;
  int timeout_ms_ = 0;  // of the last call
  WorkerError error_;
};

// What Python holds of a pool.
struct WorkerPoolHandle {
  std::shared_ptr<WorkerPool> pool;
};

}  // namespace headrace::py
