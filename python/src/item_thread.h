// SPDX-License-Identifier: Apache-2.0
//
// ItemThread: the one thread that calls Python for a data set, always the same one.  So objects
// that two threads may not use (an open h5py file, a connection to a data base) are safe, and what
// the user's code keeps for each thread it keeps once.
//
//   engine's threads ──read()──► queue ──► [GIL: server.serve(some of them)] ──► complete(), no GIL
//
// The GIL is taken once for many samples: for kTurn at a time, then whoever waits for it has a
// turn. Requests complete without the GIL, so nobody waits for it under a lock of the engine's.
//
// Where other processes make the samples, as many threads as those wait for them, without the GIL:
// each takes as many samples as the server wants in one call.
//
// The thread starts with the first request and ends when its last user does; end_item_threads()
// joins all of them before the interpreter goes.  A forked child starts its own.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/per_process.h"
#include "index/row_maker.h"
#include "storage/store.h"

namespace headrace::py {

// Some of the samples of a RowsToMake.
struct RowRun {
  RowsToMake* rows = nullptr;
  size_t from = 0;
  size_t count = 0;
};

// Reads samples.  Called by the thread of an ItemThread: with the GIL, unless is_elsewhere().
class ItemServer {
 public:
  virtual ~ItemServer() = default;
  // How many it is glad to get at a time.
  virtual size_t most_together() const = 0;
  // The most that it takes at a time, whatever they cost.
  virtual size_t most_at_all() const { return most_together(); }
  // Other processes make them: the calling thread only waits.
  virtual bool is_elsewhere() const { return false; }
  // Fills into and status of each.  Does not throw.
  virtual void serve(std::span<ReadRequest> requests) const = 0;
  // Fills the slots of all these samples, and names those that fail.  Does not throw.
  virtual void make(std::span<const RowRun> runs) const = 0;
};

// Thread-safe.
class ItemThread {
 public:
  // `processes` > 0: all its servers are elsewhere; a thread for each calls them, and one more, so
  // that a process has its next call while another thread takes what the last one gave.
  explicit ItemThread(size_t processes = 0);
  size_t callers() const;  // threads
  ~ItemThread();
  ItemThread(const ItemThread&) = delete;
  ItemThread& operator=(const ItemThread&) = delete;

  // Without the GIL.  Completes all requests, later; those of one batch in order.
  void read(const std::shared_ptr<const ItemServer>& server, std::span<ReadRequest> requests) const;
  // Likewise, into their slots.
  void make(const std::shared_ptr<const ItemServer>& server, RowsToMake&& rows) const;
  // Completes those of the group that wait.
  void cancel(const ReadGroup& group) const;
  // Calls `work` on the thread, with the GIL, and returns when it is done; `poll` is called every
  // now and then while it waits, and ends the waiting by false.  Without the GIL.
  void run(std::function<void()> work, const std::function<bool()>& poll) const;

  class Queue;

 private:
  const PerProcess<std::shared_ptr<Queue>> queue_;
};

// Joins all threads.  Without the GIL.  Whatever is asked of one after that is cancelled.
void end_item_threads();

}  // namespace headrace::py
