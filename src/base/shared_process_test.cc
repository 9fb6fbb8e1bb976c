// SPDX-License-Identifier: Apache-2.0
//
// Shared buffers as other processes see them: a forked one, and one that is started anew and gets
// the descriptor over a socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/buffer.h"

extern char** environ;

namespace headrace {
namespace {

constexpr size_t kBytes = 100'000;
constexpr int kSocket = 9;  // of the process that is started
constexpr const char* kWhere = "HEADRACE_TEST_SHARED_NAME";

std::byte pattern(size_t i) {
  return std::byte(i * 31 + 7);
}

// What the other process does: maps the segment anew, checks all bytes, answers in place.
int check_and_answer(const SharedName& name) {
  void* p = mmap(nullptr, name.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, name.fd, 0);
  if (p == MAP_FAILED) return 2;
  std::byte* data = static_cast<std::byte*>(p) + name.offset;
  for (size_t i = 0; i < kBytes; ++i)
    if (data[i] != pattern(i)) return 3;
  std::memset(data, 0xa5, kBytes);
  if (ftruncate(name.fd, 0) == 0) return 4;  // sealed: nobody can pull the pages away
  return 0;
}

// Not the first allocation, so that the offset is not 0.
struct Shared {
  std::shared_ptr<Arena> arena = shared_arena(1 << 20).value();
  Buffer before{arena}, buffer{arena};
  Shared() {
    before.resize(12'345);
    buffer.resize(kBytes);
    for (size_t i = 0; i < kBytes; ++i) buffer.data()[i] = pattern(i);
  }
  SharedName name() const { return buffer.shared_name().value(); }
  void expect_answer() const {
    for (const std::byte b : buffer.bytes()) ASSERT_EQ(b, std::byte{0xa5});
  }
};

int exit_code(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

void send_fd(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
}

int receive_fd(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

TEST(SharedProcessTest, AForkedProcessFindsABufferByItsName) {
  const Shared shared;
  const SharedName name = shared.name();
  EXPECT_GT(name.offset, 0u);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(check_and_answer(name));
  EXPECT_EQ(exit_code(child), 0);
  shared.expect_answer();
}

// The other side of the next test; runs only in the process that it starts.
TEST(SharedProcessTest, DISABLED_TheProcessThatWasStarted) {
  const char* where = std::getenv(kWhere);
  ASSERT_NE(where, nullptr) << "this is started by AStartedProcessFindsABufferByItsName";
  SharedName name;
  name.fd = receive_fd(kSocket);
  ASSERT_EQ(std::sscanf(where, "%lu %lu", &name.offset, &name.segment_bytes), 2);
  EXPECT_EQ(check_and_answer(name), 0);
}

TEST(SharedProcessTest, AStartedProcessFindsABufferByItsName) {
  const Shared shared;
  const SharedName name = shared.name();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  send_fd(sockets[0], name.fd);
  const std::string where = std::to_string(name.offset) + " " + std::to_string(name.segment_bytes);
  ASSERT_EQ(setenv(kWhere, where.c_str(), 1), 0);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], kSocket);
  std::string self = "/proc/self/exe", run = "--gtest_also_run_disabled_tests",
              brief = "--gtest_brief=1", filter = "--gtest_filter=SharedProcessTest.DISABLED_*",
              output = "--gtest_output=";
  char* arguments[] = {self.data(),   run.data(),    brief.data(),
                       filter.data(), output.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, self.c_str(), &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(exit_code(child), 0);
  unsetenv(kWhere);
  close(sockets[0]);
  close(sockets[1]);
  shared.expect_answer();
}

// The parent's memory and its books stay as they are, whatever the child does.
TEST(SharedProcessTest, AForkedChildAllocatesForItselfAndFreesNothingOfItsParent) {
  Shared shared;
  std::byte* parents = shared.buffer.data();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Buffer own(shared.arena);
    own.resize(kBytes);
    std::memset(own.data(), 1, kBytes);
    const SharedName name = own.shared_name().value();
    shared.buffer = Buffer();  // inherited: let go of, not freed
    Buffer again(shared.arena);
    again.resize(kBytes);
    std::memset(again.data(), 2, kBytes);
    const bool apart = own.data() != parents && again.data() != parents;
    _exit(apart && name.fd >= 0 ? 0 : 1);
  }
  EXPECT_EQ(exit_code(child), 0);
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(parents[i], pattern(i));
  Buffer next(shared.arena);
  next.resize(kBytes);
  EXPECT_NE(next.data(), parents);
}

// A fork while another thread is inside the arena: the child must not wait for its lock.
TEST(SharedProcessTest, AForkInTheMiddleOfAnAllocationDoesNotHangTheChild) {
  const auto arena = shared_arena(1 << 20).value();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      Buffer buffer(arena);
      buffer.resize(1000);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      const MemoryBlock memory = arena->allocate(1000, kAlignment);
      arena->release(memory);
      _exit(0);
    }
    EXPECT_EQ(exit_code(child), 0);
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace headrace
