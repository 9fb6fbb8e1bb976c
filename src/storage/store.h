// SPDX-License-Identifier: Apache-2.0
//
// Store: named, immutable runs of bytes, somewhere.  Local files, memory, an
// object store; wrappers (fault, later retry and cache) are Stores around Stores.
//
// Reads are batched ranges that complete later: read() may finish them before it
// returns (local files: the calling thread waits), or from a thread of the
// store's own (a remote one).  The caller never assumes which.
//
//   store.read(requests)  ──►  each request's done(status) exactly once, any thread
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

inline constexpr uint64_t kWholeFile = ~uint64_t{0};  // a length: to the end, whatever the size

struct FileInfo {
  std::string path;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // 0 where the store has none
  bool is_folder = false;
  std::string part = {};  // what of it is meant, where a user wrote path#part; no store sets it
};

// One range of one file.  The owner keeps path and `into` alive until done() is called.
struct ReadRequest {
  std::string_view path;
  uint64_t offset = 0;
  uint64_t length = 0;     // kWholeFile: the store finds the size out (offset is then 0)
  Buffer* into = nullptr;  // the store sizes it; holds exactly the range after an OK
  std::function<void(Status)> done;
};

// Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // Fills all of every range or fails it: there is no short read to forget.  Past the
  // end is kCorrupt, because the index that led here is then wrong.
  virtual void read(std::span<ReadRequest> requests) const = 0;

  // Reads the range if that needs no waiting, because its bytes are in memory already; false where
  // they are not, or the store cannot tell.  done() is not called.
  virtual bool read_if_there(const ReadRequest& request) const {
    (void)request;
    return false;
  }

  // The range where it lies, if that is memory which stays as it is while the store lives; none
  // where it is not, or the file has no such range: read() says why.
  virtual std::optional<Bytes> look(std::string_view path, uint64_t offset, uint64_t length) const {
    (void)path, (void)offset, (void)length;
    return std::nullopt;
  }

  virtual Result<FileInfo> stat(const std::string& path) const = 0;
  // The entries of a folder, sorted by the bytes of their names, without a stat per
  // file: bytes and times stay 0 where the store does not give them for nothing.
  // Each path is whole, as read() takes it.
  virtual Result<std::vector<FileInfo>> list(const std::string& folder) const = 0;

  // Whether one large read is much cheaper than many small ones (remote, spinning):
  // the engine then reads whole runs and keeps them.
  virtual bool prefers_runs() const { return false; }

  // Whether a read of this file may take milliseconds that nobody computes in (a network between):
  // then more threads wait for reads at a time.
  virtual bool is_far(const std::string& path) const {
    (void)path;
    return prefers_runs();
  }

  // Blocking conveniences over read().  Errors name the path and the offset.
  Status read_at(const std::string& path, uint64_t offset, uint64_t length, Buffer& into) const;
  Result<Buffer> read_all(const std::string& path) const;
};

// The local file system.  Keeps up to `open_files` descriptors of files that are read
// by ranges; whole files are opened, read and closed.
std::shared_ptr<const Store> local_store(size_t open_files = 256);

}  // namespace headrace
