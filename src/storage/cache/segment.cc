// SPDX-License-Identifier: Apache-2.0
#include "storage/cache/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/entropy.h"
#include "storage/cache/checksum.h"
#include "trace/clock.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRCACHE1";
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHeadBytes = 64;
constexpr uint64_t kRecordBytes = 72;
constexpr uint32_t kThere = 0x01005248;              // "HR", 0, 1
constexpr off_t kClaims = off_t{1} << 50;            // beyond any byte: where claims are locked
constexpr uint64_t kTouchEvery_ns = 60'000'000'000;  // recency is coarse, and costs little

bool read_all_at(int fd, uint64_t offset, MutableBytes out, bool at_once) {
  while (!out.empty()) {
    const iovec into{out.data(), out.size()};
    const ssize_t n = ::preadv2(fd, &into, 1, static_cast<off_t>(offset), at_once ? RWF_NOWAIT : 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

Status write_all_at(int fd, uint64_t offset, Bytes data) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return from_errno(errno == EFBIG ? ENOSPC : errno, "write");
    data = data.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

bool lock_claim(int fd, uint32_t block, short how) {
  struct flock range{};
  range.l_type = how;
  range.l_whence = SEEK_SET;
  range.l_start = kClaims + block;
  range.l_len = 1;
  // A file system without locks: two may write the same bytes.
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

std::array<std::byte, kPage> make_head(const SegmentName& name) {
  std::array<std::byte, kPage> page{};
  const MutableBytes head(page);
  std::memcpy(head.data(), kMagic.data(), 8);
  store_le(head.subspan(8), entropy_word());
  store_le(head.subspan(16), name.object.high);
  store_le(head.subspan(24), name.object.low);
  store_le(head.subspan(32), name.number);
  store_le(head.subspan(40), name.object_bytes);
  store_le(head.subspan(48), uint64_t{name.shape.block_bytes});
  store_le(head.subspan(56), name.shape.segment_blocks);
  const size_t text = std::min(name.text.size(), kPage - kHeadBytes - 1);
  std::memcpy(head.data() + kHeadBytes, name.text.data(), text);
  store_le(head.subspan(60), crc32c(head.subspan(kHeadBytes), crc32c(head.first(60))));
  return page;
}

struct Head {
  SegmentName name;
  uint64_t nonce = 0;
};

Result<Head> parse_head(Bytes head) {
  if (as_text(head.first(8)) != kMagic) return corrupt("no file of a headrace cache");
  if (load_le<uint32_t>(head.subspan(60)) !=
      crc32c(head.subspan(kHeadBytes), crc32c(head.first(60))))
    return corrupt("the checksum of its head is wrong");
  Head out;
  out.nonce = load_le<uint64_t>(head.subspan(8));
  out.name.object = {load_le<uint64_t>(head.subspan(16)), load_le<uint64_t>(head.subspan(24))};
  out.name.number = load_le<uint64_t>(head.subspan(32));
  out.name.object_bytes = load_le<uint64_t>(head.subspan(40));
  out.name.shape = {static_cast<uint32_t>(load_le<uint64_t>(head.subspan(48))),
                    load_le<uint32_t>(head.subspan(56))};
  const std::string_view text = as_text(head.subspan(kHeadBytes));
  out.name.text = text.substr(0, text.find('\0'));
  return out;
}

Result<Head> read_head(int fd) {
  std::array<std::byte, kPage> page{};
  if (!read_all_at(fd, 0, page, false)) return corrupt("the head of the file is cut");
  return parse_head(page);
}

bool is_same(const SegmentName& a, const SegmentName& b) {
  return a.object == b.object && a.number == b.number && a.object_bytes == b.object_bytes &&
         a.shape == b.shape && std::string_view(a.text).substr(0, kPage - kHeadBytes - 1) == b.text;
}

uint32_t blocks_of(const SegmentName& name) {
  const uint64_t begin = name.number * name.shape.segment_bytes();
  const uint64_t bytes = std::min(name.object_bytes - begin, name.shape.segment_bytes());
  return static_cast<uint32_t>((bytes + name.shape.block_bytes - 1) / name.shape.block_bytes);
}

// The name is free, or another process took it: its file is as good.
Status publish(const std::string& temporary, const std::string& path) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  if (errno == EEXIST || (errno == EINVAL && ::rename(temporary.c_str(), path.c_str()) == 0)) {
    ::unlink(temporary.c_str());
    return {};
  }
  const Status status = from_errno(errno, "rename");
  ::unlink(temporary.c_str());
  return status;
}

}  // namespace

Result<SegmentName> read_segment_name(int fd) {
  HEADRACE_ASSIGN(Head head, read_head(fd));
  return std::move(head.name);
}

Segment::Segment(std::string path, SegmentName name)
    : path_(std::move(path)), name_(std::move(name)), records_(blocks_of(name_)) {}

uint64_t Segment::head_bytes(uint32_t blocks) {
  return kPage + (blocks * kRecordBytes + kPage - 1) / kPage * kPage;
}

uint64_t Segment::place(uint32_t block) const {
  return head_bytes(blocks()) + uint64_t{block} * name_.shape.block_bytes;
}

uint64_t Segment::block_bytes(uint32_t block) const {
  const uint64_t begin =
      name_.number * name_.shape.segment_bytes() + uint64_t{block} * name_.shape.block_bytes;
  return std::min<uint64_t>(name_.object_bytes - begin, name_.shape.block_bytes);
}

// Null where it is not there or not this; then the segment is stale, if it was there before.
OpenFile Segment::open(const Descriptors& files) const {
  Result<OpenFile> opened = files.open(path_);
  if (!opened.ok()) {
    MutexLock lock(mu_);
    if (nonce_) stale_.store(true);
    return nullptr;
  }
  OpenFile file = std::move(opened).value();
  MutexLock lock(mu_);
  if (known_.lock() == file) return file;
  const Result<Head> head = read_head(file->fd());
  if (!head.ok() || !is_same(name_, head.value().name)) {
    files.forget(path_);
    ::unlink(path_.c_str());  // ours by its name and folder, and of no use to anybody
    return nullptr;
  }
  if (nonce_ && *nonce_ != head.value().nonce) {
    stale_.store(true);
    return nullptr;
  }
  nonce_ = head.value().nonce;
  known_ = file;
  return file;
}

void Segment::touch(int fd) const {
  const uint64_t now = steady_ns();
  uint64_t last = touched_ns_.load(std::memory_order_relaxed);
  if (last != 0 && now - last < kTouchEvery_ns) return;
  if (touched_ns_.compare_exchange_strong(last, now)) (void)::futimens(fd, nullptr);
}

bool Segment::load_record(int fd, uint32_t block) const {
  std::array<std::byte, kRecordBytes> bytes{};
  const Bytes record(bytes);
  if (!read_all_at(fd, kPage + block * kRecordBytes, bytes, false)) return false;
  constexpr size_t kSums = 4 * kCachePieces;
  if (load_le<uint32_t>(record.subspan(kSums)) != kThere ||
      load_le<uint32_t>(record.subspan(kSums + 4)) != crc32c(record.first(kSums + 4)))
    return false;
  MutexLock lock(mu_);
  if (records_[block].is_there.load()) return true;
  for (size_t i = 0; i < kCachePieces; ++i)
    records_[block].sums[i].store(load_le<uint32_t>(record.subspan(4 * i)));
  records_[block].is_there.store(true);
  return true;
}

bool Segment::has(const Descriptors& files, uint32_t block) const {
  const OpenFile file = open(files);
  return file != nullptr && (records_[block].is_there.load() || load_record(file->fd(), block));
}

bool Segment::is_checked(uint32_t block, uint64_t begin, uint64_t end) const {
  const auto first = static_cast<uint32_t>(begin / piece_bytes());
  const auto last = static_cast<uint32_t>((end - 1) / piece_bytes());
  const uint32_t wanted = ((2u << last) - 1) & ~((1u << first) - 1);
  return (records_[block].checked.load() & wanted) == wanted;
}

// [begin, + out.size()) of a block by whole pieces, each against its checksum.
Segment::Found Segment::read_checking(int fd, uint32_t block, uint64_t begin, MutableBytes out,
                                      bool at_once) const {
  thread_local Buffer scratch;
  Record& record = records_[block];
  const uint64_t size = block_bytes(block);
  const uint64_t from = begin / piece_bytes() * piece_bytes();
  const uint64_t to =
      std::min(size, (begin + out.size() + piece_bytes() - 1) / piece_bytes() * piece_bytes());
  scratch.resize(to - from);
  if (!read_all_at(fd, place(block) + from, scratch.span(), at_once))
    return at_once ? Found::kAbsent : Found::kDamaged;
  for (uint64_t at = from; at < to; at += piece_bytes()) {
    const auto piece = static_cast<uint32_t>(at / piece_bytes());
    const Bytes bytes = scratch.bytes().subspan(at - from, std::min(piece_bytes(), to - at));
    if (piece_checksum(bytes) != record.sums[piece].load()) return Found::kDamaged;
    record.checked.fetch_or(1u << piece);
  }
  std::memcpy(out.data(), scratch.data() + (begin - from), out.size());
  return Found::kRead;
}

// So that it is fetched again.
void Segment::drop(uint32_t block) const {
  MutexLock lock(mu_);
  records_[block].is_there.store(false);
  records_[block].checked.store(0);
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  const std::array<std::byte, kRecordBytes> none{};
  (void)write_all_at(fd, kPage + block * kRecordBytes, none);
  ::close(fd);
}

Segment::Found Segment::read(const Descriptors& files, uint64_t offset, MutableBytes out,
                             bool at_once) const {
  const OpenFile file = open(files);
  if (file == nullptr) return Found::kAbsent;
  const uint64_t size = name_.shape.block_bytes;
  const uint64_t end = offset + out.size();
  bool all_checked = true;
  for (uint64_t at = offset; at < end; at = (at / size + 1) * size) {
    const auto block = static_cast<uint32_t>(at / size);
    if (!records_[block].is_there.load() && !load_record(file->fd(), block)) return Found::kAbsent;
    const uint64_t begin = block * size;
    all_checked = all_checked && is_checked(block, at - begin, std::min(end - begin, size));
  }
  touch(file->fd());
  if (all_checked) {
    if (read_all_at(file->fd(), head_bytes(blocks()) + offset, out, at_once)) return Found::kRead;
    if (!at_once) drop(static_cast<uint32_t>(offset / size));
    return at_once ? Found::kAbsent : Found::kDamaged;
  }
  for (uint64_t at = offset; at < end;) {
    const auto block = static_cast<uint32_t>(at / size);
    const uint64_t stop = std::min(end, (block + 1) * size);
    const Found found = read_checking(file->fd(), block, at - block * size,
                                      out.subspan(at - offset, stop - at), at_once);
    if (found == Found::kDamaged) drop(block);
    if (found != Found::kRead) return found;
    at = stop;
  }
  return Found::kRead;
}

Result<OpenFile> Segment::open_to_write(const std::string& temporary) const {
  MutexLock lock(mu_);
  if (OpenFile file = writing_.lock()) return file;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
      OpenFile file = std::make_shared<const Descriptor>(fd);
      HEADRACE_ASSIGN(const Head head, read_head(fd));
      if (!is_same(name_, head.name) || (nonce_ && *nonce_ != head.nonce)) {
        stale_.store(true);
        return corrupt("the file was replaced").in_file(path_);
      }
      nonce_ = head.nonce;
      writing_ = file;
      return file;
    }
    if (errno != ENOENT) return from_errno(errno, "open").in_file(path_);
    if (nonce_) {
      stale_.store(true);
      return not_found("the file was removed").in_file(path_);
    }
    const int made =
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made < 0) return from_errno(errno, "open").in_file(temporary);
    const Descriptor close(made);
    Status status = write_all_at(made, 0, make_head(name_));
    // So that every record and every block can be read: what is not there reads as zeros.
    if (status.ok() &&
        ::ftruncate(made, static_cast<off_t>(place(blocks() - 1) + block_bytes(blocks() - 1))) != 0)
      status = from_errno(errno == EFBIG ? ENOSPC : errno, "truncate");
    if (status.ok()) status = publish(temporary, path_);
    if (!status.ok()) {
      ::unlink(temporary.c_str());
      return status.in_file(path_);
    }
  }
  return unavailable("the file comes and goes").in_file(path_);
}

Result<std::unique_ptr<Segment::Claim>> Segment::claim(uint32_t block,
                                                       const std::string& temporary) const {
  HEADRACE_ASSIGN(OpenFile file, open_to_write(temporary));
  if (!lock_claim(file->fd(), block, F_WRLCK)) return std::unique_ptr<Claim>();
  return std::make_unique<Claim>(std::move(file), block);
}

Segment::Claim::~Claim() {
  (void)lock_claim(file_->fd(), block_, F_UNLCK);
}

Status Segment::write(const Claim& claim, Bytes data) const {
  const int fd = claim.file_->fd();
  const uint32_t block = claim.block_;
  if (data.size() != block_bytes(block)) return internal("a block of another length");
  // Room first: a disk that is full then says so before anything is written.
  const int error =
      ::posix_fallocate(fd, static_cast<off_t>(place(block)), static_cast<off_t>(data.size()));
  if (error != 0 && error != EOPNOTSUPP && error != EINVAL)
    return from_errno(error == EFBIG ? ENOSPC : error, "write").in_file(path_);
  if (Status s = write_all_at(fd, place(block), data); !s.ok()) return s.in_file(path_);
  std::array<std::byte, kRecordBytes> bytes{};
  const MutableBytes record(bytes);
  for (uint64_t at = 0, i = 0; at < data.size(); at += piece_bytes(), ++i)
    store_le(record.subspan(4 * i),
             piece_checksum(data.subspan(at, std::min(piece_bytes(), data.size() - at))));
  constexpr size_t kSums = 4 * kCachePieces;
  store_le(record.subspan(kSums), kThere);
  store_le(record.subspan(kSums + 4), crc32c(Bytes(record).first(kSums + 4)));
  if (Status s = write_all_at(fd, kPage + block * kRecordBytes, record); !s.ok())
    return s.in_file(path_);
  MutexLock lock(mu_);
  for (size_t i = 0; i < kCachePieces; ++i)
    records_[block].sums[i].store(load_le<uint32_t>(Bytes(record).subspan(4 * i)));
  records_[block].is_there.store(true);
  // What was just written is what it should be.
  records_[block].checked.store((1u << kCachePieces) - 1);
  return {};
}

}  // namespace headrace
