// SPDX-License-Identifier: Apache-2.0
#include "format/file_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/inflate.h"
#include "base/machine.h"
#include "base/xz.h"
#include "base/zlib.h"
#include "base/zstd.h"
#include "format/header_window.h"
#include "format/records.h"

namespace headrace {
namespace {

constexpr uint64_t kStep = uint64_t{256} << 10;
constexpr uint64_t kLargeUnit = uint64_t{1} << 30;

Result<std::unique_ptr<Inflater>> inflater_of(Compression compression) {
  if (compression == Compression::kZstd) return zstd_inflater();
  if (compression == Compression::kXz) return xz_inflater();
  return zlib_inflater();
}

class PlainBytes final : public FileBytes {
 public:
  explicit PlainBytes(const ShardInput& shard)
      : size_(shard.info.bytes), window_(shard, HeaderWindow::kInOrder) {}

  uint64_t size() const override { return size_; }
  uint64_t seen() const override { return size_; }
  Status bytes(uint64_t offset, uint64_t length, Bytes& out) override {
    return window_.bytes(offset, std::min(length, size_ - offset), out);
  }

 private:
  const uint64_t size_;
  HeaderWindow window_;
};

// Holds what is asked for and one step more.
class PackedBytes final : public FileBytes {
 public:
  PackedBytes(const ShardInput& shard, std::unique_ptr<Inflater> inflater)
      : shard_(shard), window_(shard, HeaderWindow::kInOrder), inflater_(std::move(inflater)) {}

  uint64_t size() const override { return kUnknownSize; }
  uint64_t seen() const override { return begin_ + held_.size(); }

  Status bytes(uint64_t offset, uint64_t length, Bytes& out) override {
    forget(offset);
    while (seen() < offset && !ended_) {  // what is passed over is not kept
      HEADRACE_TRY(inflate_more());
      forget(offset);
    }
    // Memory grows as data come, not as the length says: that may be anything.
    while (held_.size() - front_ < length && !ended_) HEADRACE_TRY(inflate_more());
    out = Bytes(held_).subspan(front_);
    out = out.first(std::min<uint64_t>(length, out.size()));
    return {};
  }

 private:
  void forget(uint64_t offset) {
    front_ = static_cast<size_t>(std::min<uint64_t>(offset - begin_, held_.size()));
    if (front_ < held_.size() / 2) return;  // not for every record
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(front_));
    begin_ += front_;
    front_ = 0;
  }

  Status inflate_more() {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    HEADRACE_TRY(read_more());
    const size_t before = held_.size();
    held_.resize(before + kStep);
    MutableBytes room = MutableBytes(held_).subspan(before);
    const uint64_t at = read_ - rest_.size();
    if (Status s = inflater_->step(rest_, room); !s.ok()) return s.at(at).in_file(shard_.info.path);
    const bool nothing = room.size() == kStep;
    held_.resize(held_.size() - room.size());
    if (!nothing || !rest_.empty() || read_ < shard_.info.bytes) return {};
    if (!inflater_->at_end())
      return corrupt("the compressed file is cut short: its stream has no end")
          .at(read_)
          .in_file(shard_.info.path);
    ended_ = true;
    return {};
  }

  Status read_more() {
    if (!rest_.empty() || read_ == shard_.info.bytes) return {};
    const uint64_t n = std::min(kStep, shard_.info.bytes - read_);
    HEADRACE_TRY(window_.bytes(read_, n, rest_));
    read_ += n;
    return {};
  }

  const ShardInput& shard_;
  HeaderWindow window_;
  const std::unique_ptr<Inflater> inflater_;
  Bytes rest_;         // of the window, still to be unpacked
  uint64_t read_ = 0;  // of the file
  std::vector<std::byte> held_;
  uint64_t begin_ = 0;  // of held_ in the unpacked data
  size_t front_ = 0;    // of what is still wanted, in held_
  bool ended_ = false;
};

std::string_view command_of(Compression compression) {
  if (compression == Compression::kZstd) return "zstd";
  return compression == Compression::kXz ? "xz" : "gzip";
}

double gibibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << 30);
}

}  // namespace

Compression compression_of(Bytes head) {
  using namespace std::string_view_literals;
  if (head.size() < 2) return Compression::kNone;
  if (is_gzip(head)) return Compression::kGzip;
  const std::string_view text = as_text(head);
  if (text.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::kZstd;
  if (text.starts_with("\xfd"
                       "7zXZ\0"sv))
    return Compression::kXz;
  const auto first = static_cast<unsigned>(head[0]);
  const auto second = static_cast<unsigned>(head[1]);
  const bool zlib = (first & 0x0fu) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
  return zlib ? Compression::kZlib : Compression::kNone;
}

Result<std::unique_ptr<FileBytes>> open_file_bytes(const ShardInput& shard,
                                                   Compression compression) {
  if (compression == Compression::kNone) return std::unique_ptr<FileBytes>(new PlainBytes(shard));
  HEADRACE_ASSIGN(std::unique_ptr<Inflater> inflater, inflater_of(compression));
  return std::unique_ptr<FileBytes>(new PackedBytes(shard, std::move(inflater)));
}

Bytes unpack_head(Bytes head, MutableBytes out) {
  const Result<std::unique_ptr<Inflater>> inflater = zlib_inflater();
  MutableBytes rest = out;
  if (!inflater.ok() || !inflater.value()->step(head, rest).ok()) return {};
  return Bytes(out).first(out.size() - rest.size());
}

uint64_t stated_size(Compression compression, Bytes first, Bytes last) {
  if (compression == Compression::kGzip && last.size() >= 4) return load_le<uint32_t>(last.last(4));
  if (compression == Compression::kZstd) return zstd_stated_bytes(first).value_or(0);
  return 0;
}

Status unpack_into(Bytes stored, MutableBytes& out) {
  HEADRACE_ASSIGN(const std::unique_ptr<Inflater> inflater, inflater_of(compression_of(stored)));
  HEADRACE_TRY(inflater->step(stored, out));
  // Full to the brim, the stream's checksum is not read yet: one byte more must not come.
  std::byte more{};
  MutableBytes none(&more, 1);
  if (!inflater->at_end() || !stored.empty()) HEADRACE_TRY(inflater->step(stored, none));
  if (!stored.empty() || none.empty() || !inflater->at_end())
    return not_as_indexed("compressed file");
  return {};
}

Status unpack_whole(Bytes stored, MutableBytes out) {
  if (compression_of(stored) == Compression::kGzip) return inflate_whole(stored, out);
  HEADRACE_TRY(unpack_into(stored, out));
  return out.empty() ? Status() : not_as_indexed("compressed file");
}

Status check_unit_fits(uint64_t bytes, Compression compression, std::string_view path) {
  const uint64_t most = usable_memory_bytes() / 2;
  if (bytes <= most) return {};
  return unsupported(
             fmt::format("unpacked it has {:.1f} GiB, which are in memory while a sample of it is "
                         "in use, and half of this machine's memory is {:.1f} GiB; unpack the "
                         "file: {} -dk '{}'",
                         gibibytes(bytes), gibibytes(most), command_of(compression), path))
      .in_file(path);
}

std::string large_unit_notice(uint64_t bytes, Compression compression) {
  if (bytes <= kLargeUnit) return {};
  return fmt::format(
      "unpacked it has {:.1f} GiB, which are all in memory while a sample of it is in use: unpack "
      "it ({} -d), or make more and smaller shards",
      gibibytes(bytes), command_of(compression));
}

}  // namespace headrace
