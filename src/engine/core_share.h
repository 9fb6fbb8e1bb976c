// SPDX-License-Identifier: Apache-2.0
//
// CoreShare: threads that decode and processes that run functions share the processors.  How many
// threads may run follows from how many processes were busy lately: processors that processes leave
// idle, because they wait for values, go to threads, and those that they keep busy are theirs.  The
// order of the samples knows nothing of it.
#pragma once

#include <cstdint>

namespace headrace {

// Threads that may run beside so many busy processes, on average: at least one, so that processes
// get their values, and at most `threads`.
int threads_beside(int cpus, double busy_processes, int threads);

// Under the lock of whoever has it.
class CoreShare {
 public:
  // `processes` == 0: all threads may run, always.
  CoreShare(int cpus, int processes, int threads)
      : cpus_(cpus), processes_(processes), threads_(threads), may_run_(threads) {}

  bool is_shared() const { return processes_ > 0; }
  int may_run() const { return may_run_; }
  int away() const { return away_; }  // threads that wait for a process, or for what it gives

  void leave() { ++away_; }
  // A process was busy for so long meanwhile.  True when another number of threads may run.
  bool come_back(uint64_t busy_ns, uint64_t now_ns);

 private:
  const int cpus_, processes_, threads_;
  int may_run_;
  int away_ = 0;
  uint64_t begin_ns_ = 0;  // of the interval that is measured
  uint64_t busy_ns_ = 0;   // of processes, in it
  double busy_ = -1;       // processes on average, the last intervals weighing most; -1: not known
};

}  // namespace headrace
