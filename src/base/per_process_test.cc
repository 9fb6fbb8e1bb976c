// SPDX-License-Identifier: Apache-2.0
#include "base/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/mutex.h"

namespace headrace {
namespace {

struct Counted {
  Mutex mu;
  int value HEADRACE_GUARDED_BY(mu) = 7;
};

TEST(PerProcessTest, AForkedChildHasItsOwnAndNoLockOfAnother) {
  const PerProcess<Counted> counted([] { return std::make_unique<Counted>(); });
  Counted& first = *counted;
  {
    MutexLock lock(first.mu);
    first.value = 8;
  }
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_end{false};
  std::thread holder([&] {
    MutexLock lock(first.mu);
    is_held = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    Counted& own = *counted;
    MutexLock lock(own.mu);
    _exit(own.value == 7 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  may_end = true;
  holder.join();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(&*counted, &first);
  MutexLock lock(first.mu);
  EXPECT_EQ(first.value, 8) << "the parent keeps what it has";
}

}  // namespace
}  // namespace headrace
