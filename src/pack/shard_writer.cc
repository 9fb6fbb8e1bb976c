// SPDX-License-Identifier: Apache-2.0
#include "pack/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/crc32c.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Passes bytes on, and keeps their count and checksum.  One thread at a time.
class CheckedSink final : public Sink {
 public:
  CheckedSink(std::unique_ptr<Sink> inner, PackedFile& file, bool& rewritten)
      : inner_(std::move(inner)), file_(file), rewritten_(rewritten) {}
  Status append(Bytes data) override {
    file_.crc32c = crc32c(data, file_.crc32c);
    file_.bytes += data.size();
    return inner_->append(data);
  }
  Status rewrite(uint64_t offset, Bytes data) override {
    rewritten_ = true;
    return inner_->rewrite(offset, data);
  }
  Status close() override { return inner_->close(); }

 private:
  std::unique_ptr<Sink> inner_;
  PackedFile& file_;
  bool& rewritten_;
};

// Bytes that may be written over on their way to where they cannot be: a file of this machine, sent
// when it is complete.
class SpooledSink final : public Sink {
 public:
  SpooledSink(int fd, std::unique_ptr<Sink> to) : fd_(fd), to_(std::move(to)) {}
  ~SpooledSink() override { ::close(fd_); }

  Status append(Bytes data) override {
    HEADRACE_TRY(rewrite(bytes_, data));
    bytes_ += data.size();
    return {};
  }
  Status rewrite(uint64_t offset, Bytes data) override {
    while (!data.empty()) {
      const ssize_t n = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
      if (n < 0 && errno != EINTR) return from_errno(errno, "write a temporary file");
      if (n <= 0) continue;
      data = data.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }
  Status close() override {
    std::vector<std::byte> some(std::min<uint64_t>(bytes_, uint64_t{1} << 20));
    for (uint64_t at = 0; at < bytes_;) {
      const ssize_t n = ::pread(fd_, some.data(), some.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return from_errno(n == 0 ? EIO : errno, "read a temporary file");
      HEADRACE_TRY(to_->append(Bytes(some).first(static_cast<size_t>(n))));
      at += static_cast<uint64_t>(n);
    }
    return to_->close();
  }

 private:
  const int fd_;  // of a file without a name: it goes with the process
  const std::unique_ptr<Sink> to_;
  uint64_t bytes_ = 0;
};

// Where a file of a shard goes.
Result<std::unique_ptr<Sink>> sink_for(const Format& format, const std::string& path) {
  HEADRACE_ASSIGN(std::unique_ptr<Sink> sink, open_sink(path));
  if (!format.rewrites || scheme_of(path).empty()) return sink;
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return from_errno(errno, "make a temporary file").in_file(folder);
  return std::unique_ptr<Sink>(new SpooledSink(fd, std::move(sink)));
}

}  // namespace

Result<uint32_t> checksum_of(const Store& store, const std::string& path) {
  constexpr uint64_t kStretch = uint64_t{4} << 20;
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  Buffer bytes;
  uint32_t crc = 0;
  for (uint64_t at = 0; at < info.bytes; at += kStretch) {
    HEADRACE_TRY(store.read_at(path, at, std::min(kStretch, info.bytes - at), bytes));
    crc = crc32c(bytes.bytes(), crc);
  }
  return crc;
}

Result<std::unique_ptr<ShardWriter>> ShardWriter::open(const Format& format,
                                                       const std::string& folder,
                                                       const std::string& name, uint64_t samples,
                                                       const Schema& schema) {
  std::unique_ptr<ShardWriter> self(new ShardWriter(folder, schema));
  self->shard_.file.name = name;
  self->shard_.samples = samples;
  ShardOutput out{.schema = schema, .samples = samples};
  HEADRACE_ASSIGN(std::unique_ptr<Sink> sink, sink_for(format, join_path(folder, name)));
  out.file = std::make_unique<CheckedSink>(std::move(sink), self->shard_.file, self->rewritten_);
  if (!format.companion.empty()) {
    PackedFile& companion = self->shard_.companion.emplace();
    companion.name = companion_path(format, name);
    HEADRACE_ASSIGN(std::unique_ptr<Sink> second,
                    sink_for(format, join_path(folder, companion.name)));
    out.companion =
        std::make_unique<CheckedSink>(std::move(second), companion, self->companion_rewritten_);
  }
  HEADRACE_ASSIGN(self->writer_, format.create(std::move(out)));
  return self;
}

Status ShardWriter::append(const HeldRecord& record) {
  values_.clear();
  for (const HeldRecord::Value& v : record.values) {
    const Field& field = schema_[v.field];
    values_.push_back(
        {field.name, field.kind, field.storage, Bytes(record.bytes).subspan(v.begin, v.length)});
  }
  return writer_->append({record.key, values_});
}

Result<PackedShard> ShardWriter::finish() {
  HEADRACE_TRY(writer_->finish());
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, store_of_all({&folder_, 1}));
  if (rewritten_) {
    HEADRACE_ASSIGN(shard_.file.crc32c, checksum_of(*store, join_path(folder_, shard_.file.name)));
  }
  if (companion_rewritten_) {
    HEADRACE_ASSIGN(shard_.companion->crc32c,
                    checksum_of(*store, join_path(folder_, shard_.companion->name)));
  }
  return shard_;
}

}  // namespace headrace
