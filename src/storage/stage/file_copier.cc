// SPDX-License-Identifier: Apache-2.0
#include "storage/stage/file_copier.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <future>

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "storage/cache/checksum.h"
#include "storage/descriptors.h"
#include "storage/spare_buffers.h"

namespace headrace {
namespace {

constexpr uint64_t kPiece = 512 << 10;
constexpr uint64_t kPart = uint64_t{16} << 20;       // that a thread, or a request, may be at
constexpr uint64_t kFarRead = uint64_t{8} << 20;     // of a mounted file system far away
constexpr uint64_t kUnderWay = uint64_t{256} << 20;  // and not yet written
constexpr size_t kFilesAtATime = 128;                // as many as a server is asked for at a time

Status write_at(int fd, uint64_t offset, Bytes data) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return from_errno(errno, "write");
    data = data.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

// The checksum of a file: that of the checksums of its pieces.
uint32_t checksum_of(const std::vector<uint32_t>& pieces) {
  return crc32c(std::as_bytes(std::span(pieces)));
}

uint64_t pieces_in(uint64_t bytes) {
  return (bytes + kPiece - 1) / kPiece;
}

// One file on its way.  Thread-safe.
class FileCopy {
 public:
  explicit FileCopy(const StageFile& file) : file_(file), sums_(pieces_in(file.bytes)) {
    left_ = file.bytes;
  }

  const StageFile& file() const { return file_; }

  // Bytes that begin with a piece and end with one.  The last of them finishes the file.
  Status write(uint64_t offset, Bytes data, const CopyOptions& options) {
    HEADRACE_ASSIGN(const OpenFile out, opened(options));
    for (uint64_t at = 0; at < data.size(); at += kPiece) {
      const Bytes piece = data.subspan(at, std::min<uint64_t>(kPiece, data.size() - at));
      sums_[(offset + at) / kPiece] = piece_checksum(piece);  // one thread at a piece
      HEADRACE_TRY(write_at(out->fd(), offset + at, piece));
    }
    if (left_.fetch_sub(data.size()) == data.size()) {
      HEADRACE_TRY(options.finish(file_, out->fd(), checksum_of(sums_)));
      MutexLock lock(mu_);
      open_ = nullptr;
    }
    if (options.tell) options.tell(data.size());
    return {};
  }

 private:
  Result<OpenFile> opened(const CopyOptions& options) {
    MutexLock lock(mu_);
    if (open_ != nullptr) return open_;
    const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    const int fd = ::open(options.path(file_).c_str(), flags, 0644);
    if (fd < 0) return from_errno(errno, "open");
    open_ = std::make_shared<const Descriptor>(fd);
    if (::ftruncate(fd, static_cast<off_t>(file_.bytes)) != 0) return from_errno(errno, "truncate");
    return open_;
  }

  const StageFile& file_;
  std::vector<uint32_t> sums_;  // each one's place is written by who has the piece
  std::atomic<uint64_t> left_{0};
  Mutex mu_;
  OpenFile open_ HEADRACE_GUARDED_BY(mu_);
};
using FileCopies = std::deque<FileCopy>;

Status ended(const CopyOptions& options) {
  if (options.cancel == nullptr || !options.cancel->load()) return {};
  return cancelled("copying was ended; the same call goes on");
}

// A range at a version, into `into`; blocks.
Status read_range(const Store& from, const StageFile& file, uint64_t offset, uint64_t length,
                  Buffer& into) {
  std::promise<ReadRequest> promise;
  std::future<ReadRequest> future = promise.get_future();
  ReadRequest request{.path = file.path,
                      .offset = offset,
                      .length = length,
                      .into = std::move(into),
                      .version = file.version,
                      .done = [&promise](ReadRequest&& r) { promise.set_value(std::move(r)); }};
  from.read({&request, 1});
  ReadRequest done = future.get();
  into = std::move(done.into);
  return done.status;
}

// Threads that read and write by turns.
Status copy_by_threads(const Store& from, FileCopies& files, const CopyOptions& options,
                       const StoreCost& cost) {
  struct Part {
    FileCopy* copy;
    uint64_t offset;
  };
  const unsigned useful = cost.is_near() ? 4 : std::clamp<unsigned>(cost.parallel_reads, 8, 32);
  const unsigned threads = options.streams > 0 ? options.streams : useful;
  const uint64_t step = cost.is_near() ? kPiece : kFarRead;
  // The parts of so many files by turns, so that each thread has a file of its own.
  std::vector<Part> parts;
  for (size_t first = 0; first < files.size(); first += threads) {
    const size_t end = std::min(files.size(), first + threads);
    bool any = true;
    for (uint64_t offset = 0; any; offset += kPart) {
      any = false;
      for (size_t i = first; i < end; ++i) {
        if (offset > 0 && offset >= files[i].file().bytes) continue;
        parts.push_back({&files[i], offset});
        any = true;
      }
    }
  }
  SpareBuffers spare;
  return parallel_for(parts.size(), threads, [&](size_t n) -> Status {
    FileCopy& copy = *parts[n].copy;
    const StageFile& file = copy.file();
    const uint64_t end = std::min(file.bytes, parts[n].offset + kPart);
    Buffer data = spare.take();
    for (uint64_t at = parts[n].offset; at < end; at += step) {
      HEADRACE_TRY(ended(options));
      const uint64_t length = std::min(step, end - at);
      Status status = read_range(from, file, at, length, data);
      if (status.ok()) status = copy.write(at, data.bytes(), options);
      if (!status.ok()) return status.in_file(file.path);
    }
    spare.give_back(std::move(data));
    return {};
  });
}

// Reads that complete later, and threads that write what they brought.
//
// Why it ends: a piece is under way from the request to its last write, and only while some are, or
// may be asked for, does a thread wait.  Whoever changes what they wait for notifies after it,
// under the lock: a piece that arrived, one that was written, a failure.  After a failure nothing
// is asked for, and what is under way is given up; the last thread leaves when nothing is.
class ArrivingCopies {
 public:
  ArrivingCopies(const Store& from, FileCopies& files, const CopyOptions& options)
      : from_(from),
        files_(files),
        options_(options),
        most_bytes_(options.streams > 0 ? options.streams * kPart : kUnderWay),
        most_files_(options.streams > 0 ? options.streams : kFilesAtATime),
        arrivals_(files.size()) {}

  Status run() {
    const auto threads = static_cast<unsigned>(std::clamp(usable_cpus(), 2, 8));
    return parallel_for(threads, threads, [this](size_t) { return work(); });
  }

 private:
  // Of one file.
  struct Arrivals {
    std::vector<ReadRequest> pieces;  // that are to be written
    size_t under_way = 0;             // these, and those that are read or written now
    bool is_written = false;          // a thread is at it
  };

  Status work() {
    while (true) {
      std::vector<ReadRequest> asked;
      std::vector<ReadRequest> pieces;
      size_t file = 0;
      bool gives_up = false;
      {
        MutexLock lock(mu_);
        while (true) {
          if (status_.ok()) status_ = ended(options_);
          if (!status_.ok() && !std::exchange(gave_up_, true)) {
            gives_up = true;
            break;
          }
          if (!ready_.empty()) {
            file = ready_.front();
            ready_.pop_front();
            arrivals_[file].is_written = true;
            pieces.swap(arrivals_[file].pieces);
            break;
          }
          if (status_.ok()) asked = next_requests();
          if (!asked.empty()) break;
          if (files_under_way_ == 0) {
            wakes_.notify_all();
            return status_;
          }
          wakes_.wait(mu_);
        }
      }
      if (gives_up) {
        group_->cancel();
        from_.cancel(*group_);
      } else if (!asked.empty()) {
        from_.read(asked);
      } else {
        write(file, pieces);
      }
    }
  }

  // The next parts of files, as long as there is room for them.
  std::vector<ReadRequest> next_requests() HEADRACE_REQUIRES(mu_) {
    std::vector<ReadRequest> out;
    while (next_file_ < files_.size()) {
      const StageFile& file = files_[next_file_].file();
      const uint64_t end = std::min(file.bytes, next_offset_ + kPart);
      const uint64_t bytes = end - next_offset_;
      if (next_offset_ == 0 && files_under_way_ >= most_files_) break;
      if (bytes_under_way_ > 0 && bytes_under_way_ + bytes > most_bytes_) break;
      Arrivals& arrivals = arrivals_[next_file_];
      if (arrivals.under_way == 0) ++files_under_way_;
      for (; next_offset_ < end; next_offset_ += kPiece) out.push_back(request(next_file_));
      arrivals.under_way += pieces_in(bytes);
      bytes_under_way_ += bytes;
      if (end < file.bytes) continue;
      ++next_file_;
      next_offset_ = 0;
    }
    return out;
  }

  ReadRequest request(size_t number) HEADRACE_REQUIRES(mu_) {
    const StageFile& file = files_[number].file();
    return {.path = file.path,
            .offset = next_offset_,
            .length = std::min(kPiece, file.bytes - next_offset_),
            .into = Buffer(arena_),
            .priority = number,
            .version = file.version,
            .group = group_,
            .done = [this, number](ReadRequest&& done) { arrived(number, std::move(done)); }};
  }

  void arrived(size_t number, ReadRequest&& piece) {
    MutexLock lock(mu_);
    Arrivals& arrivals = arrivals_[number];
    if (piece.status.ok() && status_.ok()) {
      arrivals.pieces.push_back(std::move(piece));
      if (arrivals.pieces.size() == 1 && !arrivals.is_written) ready_.push_back(number);
    } else {
      if (status_.ok()) status_ = piece.status.in_file(files_[number].file().path);
      gone(arrivals, 1, piece.length);
    }
    wakes_.notify_one();
  }

  void write(size_t number, std::vector<ReadRequest>& pieces) {
    Status status;
    uint64_t bytes = 0;
    for (ReadRequest& piece : pieces) {
      bytes += piece.length;
      if (status.ok())
        status =
            guard([&] { return files_[number].write(piece.offset, piece.into.bytes(), options_); });
      piece.into = Buffer();  // for the next
    }
    MutexLock lock(mu_);
    if (!status.ok() && status_.ok())
      status_ = status.in_file(options_.path(files_[number].file()));
    Arrivals& arrivals = arrivals_[number];
    arrivals.is_written = false;
    if (!arrivals.pieces.empty()) ready_.push_back(number);
    gone(arrivals, pieces.size(), bytes);
    wakes_.notify_one();
  }

  void gone(Arrivals& arrivals, size_t pieces, uint64_t bytes) HEADRACE_REQUIRES(mu_) {
    bytes_under_way_ -= bytes;
    arrivals.under_way -= pieces;
    if (arrivals.under_way == 0) --files_under_way_;
    if (files_under_way_ == 0) wakes_.notify_all();
  }

  const Store& from_;
  FileCopies& files_;
  const CopyOptions& options_;
  const uint64_t most_bytes_;
  const size_t most_files_;
  const std::shared_ptr<Arena> arena_ = slab_arena();
  const std::shared_ptr<ReadGroup> group_ = std::make_shared<ReadGroup>();
  Mutex mu_;
  CondVar wakes_;
  size_t next_file_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t next_offset_ HEADRACE_GUARDED_BY(mu_) = 0;
  std::vector<Arrivals> arrivals_ HEADRACE_GUARDED_BY(mu_);
  std::deque<size_t> ready_ HEADRACE_GUARDED_BY(mu_);  // files with pieces that nobody writes
  size_t files_under_way_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t bytes_under_way_ HEADRACE_GUARDED_BY(mu_) = 0;
  bool gave_up_ HEADRACE_GUARDED_BY(mu_) = false;
  Status status_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Status copy_files(const Store& from, std::span<const StageFile* const> files,
                  const CopyOptions& options) {
  FileCopies copies;
  for (const StageFile* file : files) {
    FileCopy& copy = copies.emplace_back(*file);
    if (file->bytes > 0) continue;
    HEADRACE_TRY(copy.write(0, {}, options));
    copies.pop_back();
  }
  if (copies.empty()) return {};
  const StoreCost cost = from.cost(copies.front().file().path);
  if (cost.in_caller) return copy_by_threads(from, copies, options, cost);
  return ArrivingCopies(from, copies, options).run();
}

Result<uint32_t> checksum_of_copy(const std::string& path, uint64_t bytes) {
  HEADRACE_ASSIGN(const OpenFile file, open_descriptor(path));
  std::vector<uint32_t> sums;
  Buffer piece;
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    piece.resize(std::min(kPiece, bytes - at));
    MutableBytes left = piece.span();
    while (!left.empty()) {
      const ssize_t n = ::pread(file->fd(), left.data(), left.size(),
                                static_cast<off_t>(at + piece.size() - left.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return from_errno(n < 0 ? errno : EIO, "read").in_file(path);
      left = left.subspan(static_cast<size_t>(n));
    }
    sums.push_back(piece_checksum(piece.bytes()));
  }
  return checksum_of(sums);
}

}  // namespace headrace
