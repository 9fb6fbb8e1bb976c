// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <thread>

namespace headrace::py {
namespace {

constexpr uint64_t kSegmentBytes = uint64_t{64} << 20;
constexpr uint64_t kKeepBytes = uint64_t{256} << 20;  // of inputs and results that went round
constexpr int kEndMs = 1000;                          // a process that was told to end has so long
constexpr int kSocket = 3, kPayload = 4;

// High enough to be out of the way of the numbers that the child gets.
Result<int> moved_up(int fd) {
  const int up = fcntl(fd, F_DUPFD_CLOEXEC, 16);
  const int error = errno;
  close(fd);
  if (up < 0) return from_errno(error, "descriptor of a process");
  return up;
}

Result<int> payload_file(std::string_view payload) {
  const int fd = memfd_create("headrace-payload", MFD_CLOEXEC);
  if (fd < 0) return from_errno(errno, "memfd_create");
  HEADRACE_ASSIGN(const int up, moved_up(fd));
  while (!payload.empty()) {
    const ssize_t n = write(up, payload.data(), payload.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      close(up);
      return from_errno(error, "writing what processes call");
    }
    payload.remove_prefix(static_cast<size_t>(n));
  }
  return up;
}

struct SharedProcessMemory {
  std::shared_ptr<Arena> arena;
  std::shared_ptr<BufferPool> pool;
};

const SharedProcessMemory& shared_memory() {
  // Never freed: arrays of the user's may live to the very end.
  static const auto* memory = [] {
    auto arena = shared_arena(kSegmentBytes);
    auto* out = new SharedProcessMemory;
    if (arena.ok()) out->arena = arena.value();
    out->pool = BufferPool::make(kKeepBytes, out->arena);
    return out;
  }();
  return *memory;
}

}  // namespace

bool wait_for_end(pid_t pid, int timeout_ms, int& status) {
#ifdef SYS_pidfd_open
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) {
    pollfd ends{fd, POLLIN, 0};
    while (poll(&ends, 1, timeout_ms) < 0 && errno == EINTR) {
    }
    ::close(fd);
  }
#else
  (void)timeout_ms;
#endif
  return waitpid(pid, &status, WNOHANG) != 0;
}

std::shared_ptr<Arena> process_arena() {
  return shared_memory().arena;
}
BufferPool& process_memory() {
  return *shared_memory().pool;
}

// The thread that spawns: the kernel tells its children when it ends.
class WorkerPool::Spawner {
 public:
  Spawner() : thread_([this] { run(); }) {}
  ~Spawner() {
    {
      MutexLock lock(mu_);
      closing_ = true;
      wakes_.notify_all();
    }
    thread_.join();
  }
  Status operator()(std::function<Status()> work) {
    std::packaged_task<Status()> task(std::move(work));
    std::future<Status> done = task.get_future();
    {
      MutexLock lock(mu_);
      tasks_.push_back(std::move(task));
      wakes_.notify_all();
    }
    return done.get();
  }

 private:
  void run() {
    while (true) {
      std::packaged_task<Status()> task;
      {
        MutexLock lock(mu_);
        while (tasks_.empty() && !closing_) wakes_.wait(mu_);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  Mutex mu_;
  CondVar wakes_;
  std::deque<std::packaged_task<Status()>> tasks_ HEADRACE_GUARDED_BY(mu_);
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

WorkerPool::WorkerPool(WorkerOptions options) : options_(std::move(options)), owner_(getpid()) {}

Result<std::shared_ptr<WorkerPool>> WorkerPool::make(WorkerOptions options) {
  if (process_arena() == nullptr) return exhausted("no shared memory can be had (memfd_create)");
  return std::shared_ptr<WorkerPool>(new WorkerPool(std::move(options)));
}

Status WorkerPool::prepare(WorkerTargets targets) {
  if (targets.processes == 0 || !workers_.empty())
    return internal("a pool is prepared once, for at least one process");
  HEADRACE_ASSIGN(payload_, payload_file(targets.payload));
  timeouts_ms_ = std::move(targets.timeouts_ms);
  for (size_t i = 0; i < targets.processes; ++i) workers_.push_back(std::make_unique<Worker>());
  return {};
}

WorkerPool::~WorkerPool() {
  if (getpid() != owner_) {
    (void)spawner_.release();  // its thread is the parent's
    return;
  }
  close();
  spawner_.reset();
  if (payload_ >= 0) ::close(payload_);
}

Status WorkerPool::spawn(Worker& worker) {
  return (*spawner_)([&] { return spawn_here(worker); });
}

Status WorkerPool::spawn_here(Worker& worker) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return from_errno(errno, "socket of a process");
  auto mine = moved_up(ends[0]);
  auto its = moved_up(ends[1]);
  if (!mine.ok() || !its.ok()) {
    if (mine.ok()) ::close(mine.value());
    if (its.ok()) ::close(its.value());
    return mine.ok() ? its.status() : mine.status();
  }
  std::vector<char*> command, environment;
  for (const std::string& word : options_.command)
    command.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& line : options_.environment)
    environment.push_back(const_cast<char*>(line.c_str()));
  command.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, its.value(), kSocket);
  posix_spawn_file_actions_adddup2(&files, payload_, kPayload);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, command[0], &files, nullptr, command.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  ::close(its.value());
  if (error != 0) {
    ::close(mine.value());
    return from_errno(error, fmt::format("starting {}", options_.command[0]));
  }
  MutexLock lock(worker.mu);
  worker.pid = pid;
  worker.socket = mine.value();
  worker.ready = false;
  worker.known.clear();
  return {};
}

void WorkerPool::start() {
  {
    MutexLock lock(mu_);
    if (started_ || closed_) return;
    started_ = true;
    spawner_ = std::make_unique<Spawner>();
  }
  for (const auto& worker : workers_) (void)spawn(*worker);
  MutexLock lock(mu_);
  for (const auto& worker : workers_) idle_.push_back(worker.get());
  freed_.notify_all();
}

Result<WorkerPool::Worker*> WorkerPool::take() {
  if (getpid() != owner_)
    return invalid(
        "processes were started before a fork: make the Loader or data set in the process that "
        "uses it");
  if (workers_.empty()) return internal("a pool that was not prepared");
  start();
  MutexLock lock(mu_);
  const uint64_t turn = came_++;
  while ((idle_.empty() || served_ != turn) && !closed_) freed_.wait(mu_);
  if (closed_) return cancelled("the processes were ended");
  ++served_;
  if (!idle_.empty()) freed_.notify_all();
  Worker* out = idle_.back();
  idle_.pop_back();
  return out;
}

void WorkerPool::give_back(Worker* worker) {
  MutexLock lock(mu_);
  // Those that have yet to start wait behind those that are ready.
  if (worker->ready)
    idle_.push_back(worker);
  else
    idle_.insert(idle_.begin(), worker);
  freed_.notify_all();
}

void WorkerPool::close() {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
    freed_.notify_all();
    // Those that are idle hear the end of their socket; those that work are killed.
    for (Worker* worker : idle_) {
      MutexLock of_worker(worker->mu);
      if (worker->pid > 0) shutdown(worker->socket, SHUT_RDWR);
    }
    for (const auto& worker : workers_) {
      if (std::find(idle_.begin(), idle_.end(), worker.get()) != idle_.end()) continue;
      MutexLock of_worker(worker->mu);
      if (worker->pid > 0) kill(worker->pid, SIGKILL);
    }
    // Leases that are under way reap their own.
    std::vector<Worker*> idle;
    idle.swap(idle_);
    for (Worker* worker : idle) {
      MutexLock of_worker(worker->mu);
      if (worker->pid <= 0) continue;
      int status = 0;
      if (!wait_for_end(worker->pid, kEndMs, status)) {
        kill(worker->pid, SIGKILL);
        waitpid(worker->pid, &status, 0);
      }
      ::close(worker->socket);
      worker->pid = -1;
    }
  }
}

std::vector<pid_t> WorkerPool::pids() const {
  std::vector<pid_t> out;
  for (const auto& worker : workers_) {
    MutexLock lock(worker->mu);
    if (worker->pid > 0) out.push_back(worker->pid);
  }
  return out;
}

uint64_t WorkerPool::restarts() const {
  MutexLock lock(mu_);
  return restarts_;
}

}  // namespace headrace::py
