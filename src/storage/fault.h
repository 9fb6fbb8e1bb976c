// SPDX-License-Identifier: Apache-2.0
//
// FaultStore: a store around a store that fails on purpose.  End-to-end tests
// run through it.
//
//   FaultStore store(open_store(folder).value().store);
//   store.add({.path = "a.tar", .fail_read = 3, .code = Code::kUnavailable});
//   store.add({.truncate_at = 4096});                  // every file
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

// What goes wrong with files whose path ends with `path` ("": with all of them).
struct Fault {
  std::string path = {};
  uint64_t fail_read = 0;              // the n-th read it matches fails, from 1; 0: none
  bool and_all_later = false;          // and so does every one after it
  Code code = Code::kUnavailable;      // with this
  uint64_t truncate_at = kWholeFile;   // the file ends here, for reads and for stat()
  std::chrono::milliseconds delay{0};  // every read waits so long in the thread that asked
  uint64_t flip_at = kWholeFile;       // the byte at this offset of the file
  std::byte flip_mask{1};              // is changed in these bits
};

// Thread-safe.
class FaultStore final : public StoreWrapper {
 public:
  explicit FaultStore(std::shared_ptr<const Store> inner) : StoreWrapper(std::move(inner)) {}

  void add(Fault fault);
  void clear();
  uint64_t reads() const { return reads_.load(); }  // ranges asked for so far

  void read(std::span<ReadRequest> requests) const override;
  // Those without a fault: what is to fail is read().
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;

 private:
  struct Armed {
    Fault fault;
    uint64_t seen = 0;
  };
  // All faults that meet one read, folded into one.
  struct Plan {
    std::optional<Code> fail = {};
    uint64_t end = kWholeFile;
    std::chrono::milliseconds delay{0};
    std::vector<std::pair<uint64_t, std::byte>> flips = {};
  };
  Plan plan(std::string_view path) const;
  bool has_fault(std::string_view path) const;
  void read_one(ReadRequest& request) const;

  mutable std::atomic<uint64_t> reads_{0};
  mutable Mutex mu_;
  mutable std::vector<Armed> faults_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
