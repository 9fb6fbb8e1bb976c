// SPDX-License-Identifier: Apache-2.0
#include "storage/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/rng.h"

namespace headrace {
namespace {

constexpr std::string_view kTemporary = ".hrtmp";
constexpr size_t kBufferBytes = size_t{1} << 20;  // one write() a MiB, however small the pieces

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// ".<name>.<16 digits>.hrtmp" beside `path`; the digits differ over processes and machines.
std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const uint64_t unique = Key(static_cast<uint64_t>(now))
                              .with(static_cast<uint64_t>(::getpid()))
                              .with(counter.fetch_add(1))
                              .value();
  const size_t slash = path.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  return fmt::format("{}.{}.{:016x}{}", path.substr(0, base), path.substr(base), unique,
                     kTemporary);
}

Status sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return from_errno(errno, "open folder");
  const int failed = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  // EINVAL: file systems that keep no folder of their own (some FUSE) have nothing to sync.
  return failed == 0 || failed == EINVAL ? Status() : from_errno(failed, "fsync folder");
}

class FileSink final : public Sink {
 public:
  FileSink(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {
    buffer_.reserve(kBufferBytes);
  }
  ~FileSink() override {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(temporary_.c_str());
  }

  Status append(Bytes data) override {
    if (fd_ < 0) return internal("append after close");
    if (buffer_.size() + data.size() > kBufferBytes) HEADRACE_TRY(flush());
    if (data.size() >= kBufferBytes) return write_all(data);
    buffer_.insert(buffer_.end(), data.begin(), data.end());
    return {};
  }

  Status rewrite(uint64_t offset, Bytes data) override {
    if (fd_ < 0) return internal("rewrite after close");
    HEADRACE_TRY(flush());
    if (offset > written_ || data.size() > written_ - offset)
      return internal("rewrite past the end");
    while (!data.empty()) {
      const ssize_t n = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
      if (n < 0 && errno != EINTR) return failed("write");
      if (n <= 0) continue;
      data = data.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  Status close() override {
    if (fd_ < 0) return internal("closed twice");
    HEADRACE_TRY(flush());
    if (::fsync(fd_) != 0) return failed("fsync");
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) return failed("close");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename");
    renamed_ = true;
    return sync_folder(folder_of(path_)).in_file(path_);
  }

 private:
  Status failed(std::string_view doing) const { return from_errno(errno, doing).in_file(path_); }

  Status flush() {
    const Status status = write_all(buffer_);
    buffer_.clear();
    return status;
  }

  Status write_all(Bytes data) {
    while (!data.empty()) {
      const ssize_t n = ::write(fd_, data.data(), data.size());
      if (n < 0 && errno != EINTR) return failed("write");
      if (n <= 0) continue;
      data = data.subspan(static_cast<size_t>(n));
      written_ += static_cast<uint64_t>(n);
    }
    return {};
  }

  int fd_;
  const std::string path_;
  const std::string temporary_;
  bool renamed_ = false;
  uint64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

class MemorySink final : public Sink {
 public:
  explicit MemorySink(std::vector<std::byte>& out) : out_(out) {}
  Status append(Bytes data) override {
    out_.insert(out_.end(), data.begin(), data.end());
    return {};
  }
  Status rewrite(uint64_t offset, Bytes data) override {
    if (offset > out_.size() || data.size() > out_.size() - offset)
      return internal("rewrite past the end");
    std::copy(data.begin(), data.end(), out_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Status close() override { return {}; }

 private:
  std::vector<std::byte>& out_;
};

class AppendOnlySink final : public Sink {
 public:
  explicit AppendOnlySink(std::unique_ptr<Sink> inner) : inner_(std::move(inner)) {}
  Status append(Bytes data) override { return inner_->append(data); }
  Status rewrite(uint64_t offset, Bytes data) override {
    return unsupported(
               fmt::format("{} bytes that were written cannot be written over here: pack in "
                           "another format, or to a local folder",
                           data.size()))
        .at(offset);
  }
  Status close() override { return inner_->close(); }

 private:
  const std::unique_ptr<Sink> inner_;
};

}  // namespace

std::unique_ptr<Sink> append_only_sink(std::unique_ptr<Sink> inner) {
  return std::make_unique<AppendOnlySink>(std::move(inner));
}

Result<std::unique_ptr<Sink>> file_sink(const std::string& path) {
  std::string temporary = temporary_name(path);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return from_errno(errno, "create").in_file(path);
  return std::unique_ptr<Sink>(new FileSink(fd, path, std::move(temporary)));
}

std::unique_ptr<Sink> memory_sink(std::vector<std::byte>& out) {
  return std::make_unique<MemorySink>(out);
}

bool is_temporary_name(std::string_view base_name) {
  return base_name.starts_with('.') && base_name.ends_with(kTemporary);
}

Status write_file(const std::string& path, Bytes data) {
  HEADRACE_ASSIGN(const std::unique_ptr<Sink> sink, file_sink(path));
  HEADRACE_TRY(sink->append(data));
  return sink->close();
}

Status append_to_file(const std::string& path, Bytes data) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return from_errno(errno, "open").in_file(path);
  const bool failed = ::write(fd, data.data(), data.size()) != static_cast<ssize_t>(data.size()) ||
                      ::fsync(fd) != 0;
  const int error = errno;
  ::close(fd);
  return failed ? from_errno(error, "write").in_file(path) : Status();
}

}  // namespace headrace
