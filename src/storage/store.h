// SPDX-License-Identifier: Apache-2.0
//
// Store: named, immutable runs of bytes, somewhere.  Local files, memory, an
// object store; wrappers (fault, held, latency) are Stores around Stores.
//
// Reads are batched ranges that complete later: read() may finish them before it
// returns (local files: the calling thread waits), or from a thread of the
// store's own (a remote one).  The caller never assumes which.
//
//   store.read(requests)  ──►  each request, with its memory, into its done() exactly once
//   group.cancel(), store.cancel(group)  ──►  those of the group that are not done complete at once
//
// A path is what the store was opened with (open_store.h): of the local file system a path, of all
// else the whole URL, so that a message names what the user wrote.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"
#include "trace/clock.h"

namespace headrace {

inline constexpr uint64_t kWholeFile = ~uint64_t{0};  // a length: to the end, whatever the size

struct FileInfo {
  std::string path;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // 0 where the store has none
  bool is_folder = false;
  std::string part = {};     // what of it is meant, where a user wrote path#part; no store sets it
  std::string version = {};  // an ETag, or "<bytes>-<modified_ns>"; "" where it costs a request
};

// Entries of a folder, and where the next page begins: "" after the last.
struct ListPage {
  std::vector<FileInfo> entries;
  std::string next = {};
};

// Reads that are given up together: those of an epoch.  Thread-safe.
class ReadGroup {
 public:
  // Then Store::cancel(), which completes what is under way.
  void cancel() { cancelled_.store(true); }
  bool is_cancelled() const { return cancelled_.load(); }

 private:
  std::atomic<bool> cancelled_{false};
};

// What reading from a store costs, as far as it knows before anything was measured.
struct StoreCost {
  uint64_t latency_ns = 0;        // from handing a request over to its first byte
  uint64_t bytes_per_second = 0;  // of one request; 0: not known
  uint32_t parallel_reads = 1;    // so many at a time are useful
  bool in_caller = true;  // read() returns when the bytes are there: the caller's thread waits

  // A disk or memory of this machine.
  bool is_near() const { return latency_ns < 1'000'000; }
  // A server that answers requests: one large read is much cheaper than many small ones.
  bool is_remote() const { return !in_caller && !is_near(); }
};

// A part of a range that gets memory of its own.
struct ReadPiece {
  uint64_t begin = 0;  // within the range
  uint64_t length = 0;
  Buffer into = {};  // memory to use; after an OK it holds exactly the piece
};

// One range of one file.  Handed over: the store owns it, with its memory, until it completes it.
struct ReadRequest {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;  // kWholeFile: the store finds the size out (offset is then 0)
  Buffer into = {};     // memory to use; after an OK it holds exactly the range
  // Where a range of known length goes instead of `into`: in order, apart, inside the range; bytes
  // between them are not wanted.  A store fills each and says so by `in_pieces`, or fills `into`:
  // then complete() copies them out of it.  They come back with their memory, whatever happened.
  std::vector<ReadPiece> pieces = {};
  uint64_t priority = 0;  // smaller goes first: the number of the batch that wants it
  // "": any; else the file must be of this version, and kCorrupt says that it is not.  On
  // completion the version that the bytes are of, where the store knows it.
  std::string version = {};
  std::shared_ptr<const ReadGroup> group = {};   // may be null
  std::function<void(ReadRequest&&)> done = {};  // called exactly once, from any thread

  // Filled in by the store.
  bool in_pieces = false;
  Status status = {};
  uint64_t sent_ns = 0;  // of the steady clock
  uint64_t completed_ns = 0;

  bool is_cancelled() const { return group != nullptr && group->is_cancelled(); }
  // Of a request that is complete.
  uint64_t bytes_read() const {
    return pieces.empty() ? into.size() : status.ok() ? length : uint64_t{0};
  }
};

// Stamps the request and moves it into its done().  A failure names the file.
void complete(ReadRequest&& request, Status status);
// Copies the bytes of all of its range to where the request wants them: its pieces, or `into`.
Status fill_request(ReadRequest& request, Bytes range);
// kInternal, unless the pieces lie in order, apart and inside the range.
Status check_pieces(const ReadRequest& request);
// With kCancelled.
void complete_cancelled(ReadRequest&& request);
// By a store that begins to read: stamps the request, unless a store around it has.
void mark_sent(ReadRequest& request);
// kCorrupt, for a file that is no longer what a request asked for.
Status changed_file(std::string_view wanted, std::string_view found);
// The version of a file that has no better one.
std::string version_of(uint64_t bytes, int64_t modified_ns);

// A run of bytes that lies in memory and stays there while the pin lives.  Immutable.
class Pin {
 public:
  Pin(Bytes bytes, std::shared_ptr<const void> keep) : bytes_(bytes), keep_(std::move(keep)) {}
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::shared_ptr<const void> keep_;
};

// Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // Moves from every request and completes it.  Fills all of its range or fails it: there is no
  // short read to forget.  Past the end is kCorrupt, because the index that led here is then wrong.
  // Those of a cancelled group complete with kCancelled, unread.
  virtual void read(std::span<ReadRequest> requests) const = 0;

  // Fills request.into if that needs no waiting, because the bytes are in memory already; false
  // where they are not, or the store cannot tell.  done() is not called.  The request has no
  // pieces.
  virtual bool read_if_resident(ReadRequest& request) const;

  // The range where it lies, if that is memory; none where it is not, or the file has no such
  // range: read() says why.
  virtual std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const;

  // After group.cancel(): completes at once (kCancelled) all requests of the group that are held or
  // under way.  A store whose read() returns when the bytes are there holds none.
  virtual void cancel(const ReadGroup& group) const;

  virtual StoreCost cost(const std::string& path) const = 0;

  // One result a path, in their order.
  virtual std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const = 0;
  // The entries of a folder after `after` ("", then what the last page called next), sorted by the
  // bytes of their names, without a stat per file: bytes, times and versions stay empty where the
  // store does not give them for nothing.  Each path is whole, as read() takes it.
  virtual Result<ListPage> list_page(const std::string& folder, const std::string& after) const = 0;

  // Blocking conveniences over these.  Errors name the path and the offset.
  Result<FileInfo> stat(const std::string& path) const;
  Result<std::vector<FileInfo>> list(const std::string& folder) const;  // all pages
  Status read_at(const std::string& path, uint64_t offset, uint64_t length, Buffer& into) const;
  Result<Buffer> read_all(const std::string& path) const;
};

// What a store around a store derives from: it forwards every call, and the wrapper overrides what
// it changes.  Thread-safe.
class StoreWrapper : public Store {
 public:
  explicit StoreWrapper(std::shared_ptr<const Store> inner) : inner_(std::move(inner)) {}

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  void cancel(const ReadGroup& group) const override;
  StoreCost cost(const std::string& path) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

 protected:
  const Store& inner() const { return *inner_; }
  const std::shared_ptr<const Store>& shared_inner() const { return inner_; }

 private:
  const std::shared_ptr<const Store> inner_;
};

}  // namespace headrace
