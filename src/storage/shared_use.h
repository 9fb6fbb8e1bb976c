// SPDX-License-Identifier: Apache-2.0
//
// SharedUse: a place (a file or a folder) that the processes of a user on one machine share.  The
// first makes it, the others wait for that, the last removes it.  What is held in memory, pictures
// that were decoded once and copies of Loader(stage=) are shared by this one protocol.
//
//   PLACE        the file or folder; whole or not, as its maker's is_whole() says
//   PLACE.lock   flock: alone by who makes or removes the place, together by all who use it
//
// Locks end with their process, so nothing stays locked by a killed one: what it left is used
// where it is whole, and else made anew, or swept away by the next that comes.  Why nobody uses
// what another removes: removing takes the lock alone, and unlinks it; who gets a lock looks
// whether PLACE.lock is still that file, and else begins anew.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace headrace {

// Immutable, hence thread-safe.
class SharedUse {
 public:
  struct Wish {
    std::string place;
    std::function<bool()> is_whole;  // whether it is there, all of it
    std::function<Status()> make;    // makes it; nobody else is there
    // Removes it, whole or not.  Null: SharedUse removes the file of that name.
    std::function<void(const std::string& place)> remove = {};
    const std::atomic<bool>* cancel = nullptr;
  };
  // kExhausted where there can be no lock.  Waits for who makes it.
  static Result<std::unique_ptr<SharedUse>> take(Wish wish);
  // For a place that may be used while it is not whole; null where somebody removes it now, or
  // there can be no lock.
  static std::unique_ptr<SharedUse> join(Wish wish);
  // Removes what nobody uses any more: places of this user in `folder` whose names begin with
  // `prefix`, but for `keep`.
  static void sweep(const std::string& folder, std::string_view prefix, const std::string& keep,
                    const std::function<void(const std::string& place)>& remove);
  // The last one removes the place.
  ~SharedUse();
  SharedUse(const SharedUse&) = delete;
  SharedUse& operator=(const SharedUse&) = delete;

  bool was_there() const { return was_there_; }
  static std::string lock_path(const std::string& place) { return place + ".lock"; }
  // By who uses it no more; false where others do.  `remove` as in a wish.
  static bool remove_unused(const std::string& place,
                            const std::function<void(const std::string& place)>& remove);

 private:
  SharedUse(Wish wish, int fd);
  // Once: lets go, and removes the place where nobody else uses it.
  void let_go();
  friend struct SharedUsesAtExit;

  const Wish wish_;
  int fd_;
  bool was_there_ = true;
  const int pid_;  // a forked child shares the lock and must not touch it
};

}  // namespace headrace
