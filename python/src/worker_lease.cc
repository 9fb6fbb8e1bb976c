// SPDX-License-Identifier: Apache-2.0
//
// Messages, little endian, one datagram each:
//
//   to a process    'C' target header_bytes inputs places news gone   seven u32, then the places
//                       (segment, offset, bytes: u64 each) of inputs and places, (segment, bytes)
//                       of news, whose descriptors come along, segments that are gone, the header
//                   'P' result, place                                  write that result there
//   from a process  'R'                                                it is ready
//                   'D' header_bytes results, (segment, offset, bytes) of each, the header; segment
//                       kNone: it waits for a place, kPlaced: in the place that was given
//                   'A'                                                written
//                   'B' | 'E' | 'X' words_bytes, words, traceback      bad data; it failed; no
//                   start
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <unistd.h>

#include "worker.h"

namespace headrace::py {
namespace {

constexpr size_t kMostKnown = 64;  // segments that a process keeps mapped
constexpr size_t kMostMessage = 128 << 10;
constexpr uint64_t kPlaced = ~uint64_t{0} - 1;
constexpr int kMostStarts = 3;  // of a process that dies before it is ready
constexpr int kStartMs = 120'000;
constexpr int kLastWordsMs = 100;  // a process whose socket ended has so long to end itself

void put32(std::string& to, uint64_t n) {
  const auto value = static_cast<uint32_t>(n);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put64(std::string& to, uint64_t n) {
  to.append(reinterpret_cast<const char*>(&n), sizeof n);
}

// Adds segments to a message; their descriptors go along with it.
std::vector<int> add_segments(const std::vector<SharedName>& news, std::string& message) {
  std::vector<int> descriptors;
  for (const SharedName& name : news) {
    put64(message, name.segment);
    put64(message, name.segment_bytes);
    descriptors.push_back(name.fd);
  }
  return descriptors;
}

// Reads a message from its front; what is beyond its end is zero, and then ok() is false.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}
  template <typename T>
  T number() {
    T out{};
    const std::string_view bytes = text(sizeof out);
    if (bytes.size() == sizeof out) std::memcpy(&out, bytes.data(), sizeof out);
    return out;
  }
  std::string_view text(size_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    if (!ok_) return {};
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

WorkerPool::Lease::Lease(WorkerPool& pool) : pool_(pool) {
  auto taken = pool_.take();
  if (!taken.ok()) {
    begun_ = taken.status();
    return;
  }
  worker_ = taken.value();
  begun_ = begin();
}

WorkerPool::Lease::~Lease() {
  if (worker_ == nullptr) return;
  bool closed = false;
  {
    MutexLock lock(pool_.mu_);
    closed = pool_.closed_;
  }
  if (closed && worker_->pid > 0) (void)lost("");
  pool_.give_back(worker_);
}

// Waits until the process is ready; starts it again where it died.
Status WorkerPool::Lease::begin() {
  Status why;
  for (int i = 0; i < kMostStarts; ++i) {
    why = begin_once();
    if (why.code() != Code::kCorrupt) return why;  // it is ready, or was not killed
  }
  return why;
}

Status WorkerPool::Lease::begin_once() {
  if (worker_->pid <= 0) {
    HEADRACE_TRY(pool_.spawn(*worker_));
    MutexLock lock(pool_.mu_);
    ++pool_.restarts_;
    if (pool_.closed_) return cancelled("the processes were ended");
  }
  if (worker_->ready) return {};
  auto message = receive(kStartMs, "starting");
  if (!message.ok())
    return Status(message.status().code(), fmt::format("a process for functions did not start: {}",
                                                       message.status().message()));
  worker_->ready = true;
  return {};
}

// What became of the process, which is reaped.
Status WorkerPool::Lease::lost(std::string_view why) {
  pid_t pid = -1;
  int status = 0;
  {
    MutexLock lock(worker_->mu);
    pid = worker_->pid;
    if (pid > 0) {
      // It may be about to end: what it ended with is worth a moment.
      if (!why.empty() || !wait_for_end(pid, kLastWordsMs, status)) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
      }
      ::close(worker_->socket);
    }
    worker_->pid = -1;
    worker_->ready = false;
  }
  return corrupt(
      fmt::format("process {} {}", pid, why.empty() ? how_it_ended(status) : std::string(why)));
}

Status WorkerPool::Lease::send(std::string message, const std::vector<int>& descriptors) {
  iovec data{message.data(), message.size()};
  msghdr head{};
  head.msg_iov = &data;
  head.msg_iovlen = 1;
  std::vector<char> extra(CMSG_SPACE(descriptors.size() * sizeof(int)));
  if (!descriptors.empty()) {
    head.msg_control = extra.data();
    head.msg_controllen = extra.size();
    cmsghdr* c = CMSG_FIRSTHDR(&head);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
  }
  ssize_t n = -1;
  do {
    n = sendmsg(worker_->socket, &head, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET) return lost("");
  // It would not know of segments that this end takes for known: another process starts anew.
  return lost(fmt::format("could not be told what to call ({})", strerror(errno)));
}

Result<std::string> WorkerPool::Lease::receive(int timeout_ms, std::string_view doing) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::string out;
  while (true) {
    pollfd wait{worker_->socket, POLLIN, 0};
    const int left =
        timeout_ms == 0
            ? -1
            : std::max<int>(
                  0, static_cast<int>(
                         std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now())
                             .count()));
    const int events = poll(&wait, 1, left);
    if (events < 0 && errno == EINTR) continue;
    if (events == 0)
      return lost(fmt::format("was stuck {}: it gave nothing for {:g} s and was killed", doing,
                              timeout_ms / 1000.0));
    // How long the datagram is, then all of it.
    const ssize_t n = recv(worker_->socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return lost("");
    out.resize(static_cast<size_t>(n));
    if (recv(worker_->socket, out.data(), out.size(), 0) != n) return lost("");
    break;
  }
  const char kind = out[0];
  if (kind != 'B' && kind != 'E' && kind != 'X') return out;
  MessageReader read(std::string_view(out).substr(1));
  const auto words = read.number<uint32_t>();
  error_.what = read.text(words);
  error_.traceback = read.rest();
  if (kind == 'X') {
    (void)lost("did not start");
    return invalid(error_.what);
  }
  return kind == 'B' ? corrupt(error_.what) : invalid(error_.what);
}

Status WorkerPool::Lease::add_place(Bytes memory, std::string& message,
                                    std::vector<SharedName>& news) {
  if (memory.empty()) {  // nothing to find there
    for (int i = 0; i < 3; ++i) put64(message, 0);
    return {};
  }
  const auto name = process_arena()->name_of(memory.data());
  if (!name) return internal("memory for a process that is not shared");
  put64(message, name->segment);
  put64(message, name->offset);
  put64(message, memory.size());
  for (Worker::Known& known : worker_->known) {
    if (known.segment != name->segment) continue;
    known.used = worker_->calls;
    return {};
  }
  news.push_back(*name);
  worker_->known.push_back({name->segment, worker_->calls});
  return {};
}

Result<WorkerReply> WorkerPool::Lease::call(uint32_t target, std::string_view header,
                                            std::span<const Bytes> inputs,
                                            std::span<const MutableBytes> places) {
  HEADRACE_TRY(begun_);
  // Before anything is noted as known to the process.
  if (header.size() + 24 * (inputs.size() + places.size()) > kMostMessage)
    return invalid("a call with more than 128 KiB of small arguments: pass large ones as arrays");
  if (target >= pool_.timeouts_ms_.size()) return internal("a call of a target that is not there");
  timeout_ms_ = pool_.timeouts_ms_[target];
  ++worker_->calls;
  std::vector<SharedName> news;
  std::string where;
  for (const Bytes input : inputs) HEADRACE_TRY(add_place(input, where, news));
  for (const MutableBytes place : places) HEADRACE_TRY(add_place(place, where, news));
  std::vector<uint64_t> gone;
  auto& known = worker_->known;
  while (known.size() > kMostKnown) {
    const auto oldest = std::min_element(
        known.begin(), known.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
    if (oldest->used == worker_->calls) break;
    gone.push_back(oldest->segment);
    known.erase(oldest);
  }
  std::string message = "C";
  for (const uint64_t n : {uint64_t{target}, uint64_t{header.size()}, uint64_t{inputs.size()},
                           uint64_t{places.size()}, uint64_t{news.size()}, uint64_t{gone.size()}})
    put32(message, n);
  message += where;
  const std::vector<int> descriptors = add_segments(news, message);
  for (const uint64_t segment : gone) put64(message, segment);
  message += header;
  HEADRACE_TRY(send(std::move(message), descriptors));
  HEADRACE_ASSIGN(const std::string reply, receive(timeout_ms_, "in the function"));
  MessageReader read(std::string_view(reply).substr(1));
  const auto header_bytes = read.number<uint32_t>();
  const auto results = read.number<uint32_t>();
  WorkerReply out;
  for (uint32_t i = 0; i < results && read.ok(); ++i) {
    WorkerResult result;
    result.segment = read.number<uint64_t>();
    result.offset = read.number<uint64_t>();
    result.bytes = read.number<uint64_t>();
    result.is_placed = result.segment == kPlaced;
    out.results.push_back(result);
  }
  out.header = read.text(header_bytes);
  if (reply[0] != 'D' || !read.ok()) return internal("a process gave an answer of another form");
  return out;
}

Status WorkerPool::Lease::place(uint32_t result, MutableBytes room) {
  HEADRACE_TRY(begun_);
  std::string message = "P";
  std::string where;
  std::vector<SharedName> news;
  HEADRACE_TRY(add_place(room, where, news));
  put32(message, result);
  put32(message, news.size());
  message += where;
  const std::vector<int> descriptors = add_segments(news, message);
  HEADRACE_TRY(send(std::move(message), descriptors));
  HEADRACE_ASSIGN(const std::string reply, receive(timeout_ms_, "giving its result"));
  return reply[0] == 'A' ? Status() : internal("a process gave an answer of another form");
}

}  // namespace headrace::py
