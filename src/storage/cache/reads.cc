// SPDX-License-Identifier: Apache-2.0
#include "storage/cache/reads.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/guard.h"
#include "base/shown_url.h"
#include "storage/cache/assembly.h"
#include "storage/paths.h"
#include "storage/routed.h"

namespace headrace {
namespace {

constexpr size_t kSegments = 1 << 18;  // that a process knows something of

// A part of what the process may open: the rest is the user's.
size_t most_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 128;
  return std::clamp<size_t>(limit.rlim_cur / 4, 16, 2048);
}

Status past_the_end(const ReadRequest& request, uint64_t size) {
  const uint64_t there = request.offset < size ? size - request.offset : 0;
  return corrupt(fmt::format("the file ends here, {} bytes too early", request.length - there))
      .at(std::max(size, request.offset));
}

// Its memory, which it is given here.  Throws std::bad_alloc.
std::vector<CacheTarget> targets_of(ReadRequest& request, uint64_t bytes) {
  std::vector<CacheTarget> out;
  for (ReadPiece& piece : request.pieces) {
    piece.into.resize(piece.length);
    out.push_back({request.offset + piece.begin, piece.into.span()});
  }
  request.in_pieces = !request.pieces.empty();
  if (request.in_pieces) return out;
  request.into.resize(bytes);
  out.push_back({request.offset, request.into.span()});
  return out;
}

}  // namespace

CacheEntry::CacheEntry(const FileInfo& info, const CacheFolder& folder)
    : path(info.path),
      version(info.version),
      bytes(info.bytes),
      object(Hasher()
                 .add(without_signature(plain_path(info.path)))
                 .add(std::string_view(folder.scope()))
                 .add(std::string_view(info.version))
                 .add(info.bytes)
                 .add(uint64_t{folder.shape().block_bytes})
                 .add(uint64_t{folder.shape().segment_blocks})
                 .finish()) {
  CacheUsers::add(object);
}

CacheEntry::~CacheEntry() {
  CacheUsers::remove(object);
}

CacheReads::CacheReads(std::shared_ptr<const Store> inner,
                       std::shared_ptr<const CacheFolder> folder)
    : inner_(std::move(inner)),
      folder_(std::move(folder)),
      files_(most_open_files()),
      segments_(kSegments),
      notices_(folder_->notices()) {}

CacheReads::~CacheReads() {
  std::vector<AssemblyPointer> left;
  std::vector<FetchPointer> unwanted;
  group_->cancel();
  {
    MutexLock lock(mu_);
    closing_ = true;
    for (const auto& [address, assembly] : assemblies_) left.push_back(assembly);
    for (auto& [order, fetch] : queue_) {
      fetches_.erase(id_of(*fetch));
      unwanted.push_back(std::move(fetch));
    }
    queue_.clear();
  }
  for (const FetchPointer& fetch : unwanted) folder_->give_back(fetch->reserved);
  for (const AssemblyPointer& assembly : left) assembly->fail(cancelled("the read was given up"));
  inner_->cancel(*group_);
  std::vector<std::thread> writers;
  {
    MutexLock lock(mu_);
    while (outstanding_ > 0) changed_.wait(mu_);
    writers.swap(writers_);
    changed_.notify_all();
  }
  for (std::thread& writer : writers) writer.join();
}

CacheReads::BlockId CacheReads::id_of(const BlockFetch& fetch) {
  return {fetch.entry->object.high, fetch.entry->object.low, fetch.block};
}

CacheEntryPointer CacheReads::known(std::string_view path) {
  MutexLock lock(mu_);
  const auto it = entries_.find(path);
  return it == entries_.end() ? nullptr : it->second;
}

CacheEntryPointer CacheReads::keep(const FileInfo& info) {
  if (CacheEntryPointer same = known(info.path);
      same != nullptr && same->version == info.version && same->bytes == info.bytes)
    return same;
  auto made = std::make_shared<const CacheEntry>(info, *folder_);
  CacheEntryPointer old;  // destroyed after the lock
  MutexLock lock(mu_);
  old = std::exchange(entries_[info.path], made);
  return made;
}

void CacheReads::remember(const FileInfo& info) {
  if (!info.is_folder && !info.version.empty()) keep(info);
}

void CacheReads::forget(const CacheEntry& entry) {
  CacheEntryPointer old;
  MutexLock lock(mu_);
  const auto it = entries_.find(entry.path);
  if (it == entries_.end() || it->second->version != entry.version) return;
  old = std::move(it->second);
  entries_.erase(it);
}

// Null: the file is there and has no version.
std::vector<Result<CacheEntryPointer>> CacheReads::look_up(std::span<ReadRequest* const> requests) {
  std::vector<Result<CacheEntryPointer>> out;
  std::vector<std::string> unknown;
  std::vector<size_t> places;
  for (const ReadRequest* request : requests) {
    CacheEntryPointer entry = known(request->path);
    const bool other = entry && !request->version.empty() && request->version != entry->version;
    if (entry == nullptr || other) {
      places.push_back(out.size());
      unknown.push_back(request->path);
    }
    out.emplace_back(std::move(entry));
  }
  if (unknown.empty()) return out;
  const std::vector<Result<FileInfo>> infos = inner_->stat_all(unknown);
  for (size_t i = 0; i < places.size(); ++i) {
    Result<CacheEntryPointer>& place = out[places[i]];
    if (!infos[i].ok())
      place = infos[i].status();
    else if (infos[i].value().is_folder || infos[i].value().version.empty())
      place = CacheEntryPointer();
    else
      place = keep(infos[i].value());
  }
  return out;
}

CacheReads::SegmentPointer CacheReads::segment(const CacheEntry& entry, uint64_t number) {
  const SegmentKey key{entry.object, number};
  SegmentPointer old;  // destroyed after the lock
  MutexLock lock(mu_);
  if (const SegmentPointer* found = segments_.find(key)) {
    if (!(*found)->is_stale()) return *found;
    old = segments_.remove(key);
  }
  auto made = std::make_shared<const Segment>(
      folder_->segment_path(entry.object, number),
      SegmentName{entry.object, number, entry.bytes, folder_->shape(),
                  shown_urls(std::string(plain_path(entry.path))) + '\n' + entry.version});
  SegmentPointer evicted = segments_.insert(key, made);
  if (old == nullptr) old = std::move(evicted);
  return made;
}

// All of it, or false.
bool CacheReads::read_range(const CacheEntry& entry, uint64_t offset, MutableBytes out,
                            bool at_once) {
  const uint64_t size = folder_->shape().segment_bytes();
  while (!out.empty()) {
    const uint64_t begin = offset % size;
    const size_t length = std::min<uint64_t>(out.size(), size - begin);
    const Segment::Found found =
        segment(entry, offset / size)->read(files_, begin, out.first(length), at_once);
    if (found == Segment::Found::kDamaged) {
      damaged_.fetch_add(1);
      note(
          fmt::format("cache={}: a block of {} was damaged on the disk; it is read again from "
                      "the source",
                      folder_->path(), entry.path));
    }
    if (found != Segment::Found::kRead) return false;
    out = out.subspan(length);
    offset += length;
  }
  return true;
}

// Whether read() returns when the bytes are there.
bool CacheReads::in_caller(const std::string& path) {
  if (waits_.load()) return true;
  const std::string_view scheme = scheme_of(path);
  {
    MutexLock lock(costs_mu_);
    if (const auto known = in_caller_.find(scheme); known != in_caller_.end()) return known->second;
  }
  const bool answer = inner_->cost(path).in_caller;
  MutexLock lock(costs_mu_);
  return in_caller_.emplace(scheme, answer).first->second;
}

void CacheReads::read(std::span<ReadRequest> requests) {
  std::vector<ReadRequest*> live;
  for (ReadRequest& request : requests) {
    if (request.is_cancelled()) {
      complete_cancelled(std::move(request));
      continue;
    }
    mark_sent(request);
    live.push_back(&request);
  }
  if (live.empty()) return;
  std::vector<Result<CacheEntryPointer>> entries = look_up(live);
  std::vector<AssemblyPointer> waiting;
  for (size_t i = 0; i < live.size(); ++i) {
    const bool waits = in_caller(live[i]->path);
    if (!entries[i].ok()) {
      complete(std::move(*live[i]), entries[i].status());
    } else if (AssemblyPointer left = serve(*live[i], std::move(entries[i]).value())) {
      if (waits) waiting.push_back(std::move(left));
    }
  }
  for (const AssemblyPointer& assembly : waiting) assembly->wait();
}

// Null where the request is complete, or the store has it.
CacheReads::AssemblyPointer CacheReads::serve(ReadRequest& request, CacheEntryPointer entry) {
  if (entry == nullptr) {
    note(fmt::format("cache={}: {} has no version (no ETag, no time), so it cannot be cached",
                     folder_->path(), request.path));
    inner_->read({&request, 1});
    return nullptr;
  }
  std::vector<CacheTarget> targets;
  Status status = guard([&]() -> Status {
    if (!request.version.empty() && request.version != entry->version)
      return changed_file(request.version, entry->version);
    if (request.length != kWholeFile &&
        (request.offset > entry->bytes || request.length > entry->bytes - request.offset))
      return past_the_end(request, entry->bytes);
    if (request.length == kWholeFile) request.offset = 0;
    HEADRACE_TRY(check_pieces(request));
    targets = targets_of(request, request.length == kWholeFile ? entry->bytes : request.length);
    return {};
  });
  if (!status.ok()) {
    complete(std::move(request), std::move(status));
    return nullptr;
  }
  request.version = entry->version;
  if (std::all_of(targets.begin(), targets.end(), [&](const CacheTarget& target) {
        return read_range(*entry, target.offset, target.out, false);
      })) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    for (const CacheTarget& target : targets)
      hit_bytes_.fetch_add(target.out.size(), std::memory_order_relaxed);
    complete(std::move(request), {});
    return nullptr;
  }
  misses_.fetch_add(1);
  const auto ended = [this](const Assembly& done) {
    AssemblyPointer last;  // destroyed after the lock
    MutexLock lock(mu_);
    const auto it = assemblies_.find(&done);
    if (it == assemblies_.end()) return;
    last = std::move(it->second);
    assemblies_.erase(it);
  };
  auto assembly = std::make_shared<Assembly>(std::move(request), std::move(targets), ended);
  bool given_up = false;
  {
    MutexLock lock(mu_);
    assemblies_.emplace(assembly.get(), assembly);
    // Asked under the lock: what comes after cancel() has looked sees it.
    given_up = closing_ || assembly->is_cancelled();
  }
  if (given_up) {
    assembly->fail(cancelled("the read was given up"));
    return nullptr;
  }
  assemble(assembly, entry);
  return assembly;
}

bool CacheReads::read_if_resident(ReadRequest& request) {
  const CacheEntryPointer entry = known(request.path);
  if (entry == nullptr || (!request.version.empty() && request.version != entry->version))
    return false;
  const bool whole = request.length == kWholeFile;
  const uint64_t offset = whole ? 0 : request.offset;
  const uint64_t length = whole ? entry->bytes : request.length;
  if (offset > entry->bytes || length > entry->bytes - offset) return false;
  request.into.resize(length);
  if (!read_range(*entry, offset, request.into.span(), true)) return false;
  hits_.fetch_add(1, std::memory_order_relaxed);
  hit_bytes_.fetch_add(length, std::memory_order_relaxed);
  request.version = entry->version;
  return true;
}

void CacheReads::cancel(const ReadGroup& group) {
  std::vector<AssemblyPointer> given_up;
  std::vector<FetchPointer> unwanted;  // destroyed after the lock
  {
    MutexLock lock(mu_);
    for (const auto& [address, assembly] : assemblies_)
      if (assembly->is_of(group)) given_up.push_back(assembly);
    for (auto it = queue_.begin(); it != queue_.end();) {
      FetchPointer& fetch = it->second;
      std::erase_if(fetch->waiters,
                    [&](const BlockFetch::Waiter& w) { return w.assembly->is_of(group); });
      if (!fetch->waiters.empty()) {
        ++it;
        continue;
      }
      fetches_.erase(id_of(*fetch));
      unwanted.push_back(std::move(fetch));
      it = queue_.erase(it);
    }
  }
  for (const AssemblyPointer& assembly : given_up)
    assembly->fail(cancelled("the read was given up"));
  for (const FetchPointer& fetch : unwanted)
    if (fetch->reserved > 0) folder_->give_back(std::exchange(fetch->reserved, 0));
}

bool CacheReads::is_complete(std::span<const std::string> files) {
  if (files.empty()) return false;
  std::vector<std::string> unknown;
  for (const std::string& file : files)
    if (known(file) == nullptr) unknown.push_back(file);
  for (const Result<FileInfo>& info : inner_->stat_all(unknown))
    if (info.ok()) remember(info.value());
  for (const std::string& file : files) {
    const CacheEntryPointer entry = known(file);
    if (entry == nullptr) return false;
    const uint64_t size = folder_->shape().segment_bytes();
    for (uint64_t n = 0; n * size < entry->bytes; ++n) {
      const SegmentPointer part = segment(*entry, n);
      for (uint32_t b = 0; b < part->blocks(); ++b)
        if (!part->has(files_, b)) return false;
    }
  }
  return true;
}

CacheCounts CacheReads::counts() const {
  return {.hits = hits_.load(),
          .misses = misses_.load(),
          .hit_bytes = hit_bytes_.load(),
          .fetched_bytes = fetched_.load(),
          .filled_bytes = filled_.load(),
          .evicted_bytes = folder_->evicted_bytes(),
          .damaged = damaged_.load(),
          .not_kept = not_kept_.load()};
}

void CacheReads::note(std::string text) {
  MutexLock lock(mu_);
  // Of each kind one: which file it is does not matter so much.
  if (said_.insert(text.substr(0, folder_->path().size() + 30)).second)
    notices_.push_back(std::move(text));
}

std::vector<std::string> CacheReads::take_notices() {
  MutexLock lock(mu_);
  return std::exchange(notices_, {});
}

void CacheReads::wait_until_written() {
  MutexLock lock(mu_);
  while (outstanding_ > 0) changed_.wait(mu_);
}

}  // namespace headrace
