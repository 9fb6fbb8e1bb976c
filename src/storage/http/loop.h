// SPDX-License-Identifier: Apache-2.0
//
// HttpLoop: a thread that sends requests and receives answers.  It orders them by priority, keeps
// as many under way as the server bears (PoolLimit), tries again what failed in passing, asks a
// second time for what is late, and reports what does not come at all.
//
//   add() ──► inbox ──► pool.waiting ──► under way ──► done()
//                            ▲               │ failed in passing: later, by backoff or Retry-After
//                            └─── delayed ◄──┘
//
// Why nothing is lost or done twice: a task lies in exactly one place (inbox, a pool's waiting,
// delayed, under way), and but for the inbox only the loop's thread moves it; done() is called
// where it is taken out for good, and where ranges that lie one behind the other wait together the
// first takes the others over, to be asked for in one request.  Who adds or cancels wakes the loop
// after the inbox or the mark is set.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "storage/http/late_answer.h"
#include "storage/http/pool_limit.h"
#include "storage/http/task.h"
#include "storage/http/transfers.h"

namespace headrace {

// Thread-safe.
class HttpLoop {
 public:
  // Of several loops that share the servers' limits.
  explicit HttpLoop(uint32_t loops = 1);
  // Completes what it holds with kCancelled.
  ~HttpLoop();

  void add(std::vector<HttpTask> tasks);
  // Looks through all tasks for those whose group was cancelled.
  void sweep();
  // Completes the tasks of `owner`; returns when all are, unless it is called by the loop itself.
  void abandon(const void* owner);
  // Of tasks not done: their bytes, with what a request costs beside them.
  uint64_t load() const { return load_.load(); }
  static uint64_t cost_of(const HttpTask& task) { return task.bytes + kRequestCost; }

 private:
  static constexpr uint64_t kRequestCost = 64 << 10;  // as much work as so many bytes

  struct Call;   // a task that is not done
  class Try;     // one request for it
  struct Pool {  // what is asked of one server
    Pool(uint32_t most, uint32_t loops) : limit(most, loops) {}
    PoolLimit limit;
    using FilePlace = std::tuple<const void*, std::string, uint64_t>;  // owner, path, offset
    std::map<std::pair<uint64_t, uint64_t>, Call*> waiting;            // by priority, number
    std::map<FilePlace, Call*> ranges;  // those of them that are ranges of files, by where they lie
    uint64_t range_bytes = 0;           // of these
    void add(Call& call);
    void remove(Call& call);
    PoolLimit::UnderWay under_way;
    uint32_t first_left = 0;  // calls of a first batch that are not done
    uint32_t first_all = 0;   // and of all of it, as long as one is not
    // Most of it is still to come.
    bool waits_for_first() const { return 2 * first_left > first_all; }
    bool has_answered = false;
  };
  using Calls = std::list<std::unique_ptr<Call>>;

  void run();
  void take_inbox();
  void take_abandoned();
  void end_cancelled();
  void send_waiting(uint64_t now);
  Call& join_neighbours(Call& call);
  void absorb(Call& call, Call& next);
  void send(Call& call, bool is_second);
  static void began(Pool& pool, const Call& call);
  static void ended(Pool& pool, const Call& call);
  void finished(const Finished& what);
  void answered(Call& call, Try& one);
  bool follow(Call& call, Try& one);
  void try_again(Call& call, Status why, double wait_s);
  void failed(Call& call, const Finished& what);
  void look_after(uint64_t now);
  void hedge(uint64_t now);
  UsualAnswer usual_answer(const Call& call, uint64_t now) const;
  void stop_tries(Call& call);
  void end(Call& call, Status status, HttpAnswer&& answer);
  Pool& pool_of(const HttpTask& task);
  int wait_ms(uint64_t now) const;

  const uint32_t loops_;
  Transfers transfers_;  // of the loop's thread, but for wake()
  // Of the loop's thread alone.
  std::map<std::string, Pool> pools_;
  Calls calls_;
  std::multimap<uint64_t, Call*> delayed_;  // by the time at which they go on
  std::vector<std::unique_ptr<Try>> over_;  // freed when nothing of a poll names them any more
  uint64_t numbers_ = 0;
  uint64_t looked_ns_ = 0;

  std::atomic<uint64_t> load_{0};
  std::atomic<bool> sweep_{false};
  Mutex mu_;
  CondVar is_abandoned_;
  std::vector<HttpTask> inbox_ HEADRACE_GUARDED_BY(mu_);
  std::vector<const void*> abandoned_ HEADRACE_GUARDED_BY(mu_);
  uint64_t abandons_ HEADRACE_GUARDED_BY(mu_) = 0;  // carried out
  uint64_t asked_ HEADRACE_GUARDED_BY(mu_) = 0;     // and asked for
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace headrace
