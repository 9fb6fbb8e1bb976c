// SPDX-License-Identifier: Apache-2.0
//
// CacheReads: what is not in the cache, from the store to all who wait for it, and to the disk.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/guard.h"
#include "storage/cache/assembly.h"
#include "storage/cache/reads.h"
#include "storage/paths.h"
#include "storage/routed.h"

namespace headrace {
namespace {

constexpr uint64_t kMostUnderWay = uint64_t{128} << 20;  // bytes of blocks, from request to disk
constexpr unsigned kWriters = 2;

}  // namespace

void CacheReads::assemble(const AssemblyPointer& assembly, const CacheEntryPointer& entry) {
  const uint64_t size = folder_->shape().block_bytes;
  for (const auto& [offset, memory] : assembly->targets()) {
    const uint64_t end = offset + memory.size();
    for (uint64_t at = offset; at < end;) {
      const uint64_t block = at / size;
      const uint64_t stop = std::min(end, (block + 1) * size);
      const MutableBytes out = memory.subspan(at - offset, stop - at);
      assembly->add_part();
      if (assembly->fill([&] { return read_range(*entry, at, out, false); }))
        assembly->part_done();
      else
        want(assembly, entry, block, at - block * size, out);
      at = stop;
    }
  }
  assembly->part_done();  // the one that it began with
}

void CacheReads::want(const AssemblyPointer& assembly, const CacheEntryPointer& entry,
                      uint64_t block, uint64_t begin, MutableBytes out) {
  FetchPointer fetch;
  bool is_new = false;
  bool arrived = false;
  {
    MutexLock lock(mu_);
    FetchPointer& registered = fetches_[{entry->object.high, entry->object.low, block}];
    if (registered == nullptr) {
      is_new = true;
      registered = std::make_shared<BlockFetch>();
      registered->entry = entry;
      registered->block = block;
      registered->priority = assembly->priority();
    }
    fetch = registered;
    arrived = fetch->arrived;
    if (!arrived) fetch->waiters.push_back({assembly, begin, out});
  }
  if (is_new) {
    start(fetch);
  } else if (arrived) {
    fetch->deliver({assembly, begin, out});
  }
}

// Whether the whole block is to be read and kept: there is room, and no other process is at it.
bool CacheReads::prepare(BlockFetch& fetch) {
  const CacheShape& shape = folder_->shape();
  fetch.segment = segment(*fetch.entry, fetch.block / shape.segment_blocks);
  const auto in_segment = static_cast<uint32_t>(fetch.block % shape.segment_blocks);
  const uint64_t bytes = fetch.segment->block_bytes(in_segment);
  if (!folder_->reserve(bytes)) {
    if (!folder_->is_read_only())
      note(fmt::format("cache={}: full; what is not in it is read from the source",
                       folder_->path()));
    return false;
  }
  fetch.reserved = bytes;
  const std::string parent = std::filesystem::path(fetch.segment->path()).parent_path().string();
  if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) return false;
  auto claimed = fetch.segment->claim(in_segment, folder_->temporary_path());
  if (!claimed.ok())
    note(fmt::format("cache={}: cannot write, reading from the source: {}", folder_->path(),
                     claimed.status().text()));
  if (claimed.ok()) fetch.claim = std::move(claimed).value();
  return fetch.claim != nullptr;
}

void CacheReads::start(const FetchPointer& fetch) {
  const bool keeps =
      guard([&]() -> Status { return prepare(*fetch) ? Status() : exhausted("no room"); }).ok();
  const uint64_t size = folder_->shape().block_bytes;
  const uint64_t begin = fetch->block * size;
  if (!keeps) {
    not_kept_.fetch_add(1);
    if (fetch->reserved > 0) folder_->give_back(std::exchange(fetch->reserved, 0));
    MutexLock lock(mu_);
    // Nobody joins it from here on, so what those who have want is all.
    fetches_.erase(id_of(*fetch));
    uint64_t first = size;
    uint64_t last = 0;
    for (const BlockFetch::Waiter& w : fetch->waiters) {
      first = std::min(first, w.begin);
      last = std::max(last, w.begin + w.out.size());
    }
    fetch->offset = begin + first;
    fetch->length = last - first;
    fetch->skip = first;
    ++outstanding_;
  } else {
    MutexLock lock(mu_);
    fetch->offset = begin;
    fetch->length = std::min<uint64_t>(size, fetch->entry->bytes - begin);
    if (under_way_ > 0 && under_way_ + fetch->length > kMostUnderWay &&
        !in_caller(fetch->entry->path)) {
      queue_.emplace(std::pair(fetch->priority, numbers_++), fetch);
      return;
    }
    under_way_ += fetch->length;
    ++outstanding_;
  }
  send(fetch);
}

void CacheReads::send(const FetchPointer& fetch) {
  // Another process may have written it since it was asked for.
  if (fetch->claim != nullptr) {
    ReadRequest found{.path = fetch->entry->path, .offset = fetch->offset, .length = fetch->length};
    found.into.resize(fetch->length);
    if (read_range(*fetch->entry, fetch->offset, found.into.span(), false)) {
      fetch->was_there = true;
      arrived(fetch, std::move(found));
      return;
    }
  }
  fetched_.fetch_add(fetch->length, std::memory_order_relaxed);
  ReadRequest request{.path = fetch->entry->path,
                      .offset = fetch->offset,
                      .length = fetch->length,
                      .priority = fetch->priority,
                      .version = fetch->entry->version,
                      .group = group_,
                      .done = [this, fetch](ReadRequest&& r) { arrived(fetch, std::move(r)); }};
  inner_->read({&request, 1});
}

// Of a file of this machine that was touched meanwhile: as without a cache, what is there is read.
void CacheReads::send_uncached(const FetchPointer& fetch) {
  ReadRequest request{.path = fetch->entry->path,
                      .offset = fetch->offset,
                      .length = fetch->length,
                      .priority = fetch->priority,
                      .group = group_,
                      .done = [this, fetch](ReadRequest&& r) { arrived(fetch, std::move(r)); }};
  inner_->read({&request, 1});
}

void CacheReads::arrived(const FetchPointer& fetch, ReadRequest&& request) {
  const std::string_view scheme = scheme_of(plain_path(fetch->entry->path));
  const bool is_of_this_machine = scheme.empty() || scheme == "file";
  if (request.status.code() == Code::kCorrupt && !fetch->is_uncached && is_of_this_machine) {
    forget(*fetch->entry);
    fetch->is_uncached = true;
    send_uncached(fetch);
    return;
  }
  Status status = request.status;
  if (status.ok() && !request.version.empty() && !fetch->is_uncached &&
      request.version != fetch->entry->version)
    status = changed_file(fetch->entry->version, request.version).in_file(request.path);
  if (status.code() == Code::kCorrupt) forget(*fetch->entry);
  const bool writes =
      status.ok() && fetch->claim != nullptr && !fetch->was_there && !fetch->is_uncached;
  std::vector<BlockFetch::Waiter> waiters;
  {
    MutexLock lock(mu_);
    fetch->data = std::move(request.into);
    fetch->status = status;
    fetch->arrived = true;
    waiters.swap(fetch->waiters);
    if (!writes && fetch->claim != nullptr) fetches_.erase(id_of(*fetch));
  }
  for (const BlockFetch::Waiter& waiter : waiters) fetch->deliver(waiter);
  waiters.clear();
  if (!writes) {
    end(fetch);
  } else if (in_caller(fetch->entry->path)) {
    write(fetch);
    end(fetch);
  } else {
    MutexLock lock(mu_);
    to_write_.push_back(fetch);
    if (writers_.size() < kWriters) writers_.emplace_back([this] { run_writer(); });
    changed_.notify_all();
  }
}

void CacheReads::write(const FetchPointer& fetch) {
  const Status status =
      guard([&] { return fetch->segment->write(*fetch->claim, fetch->data.bytes()); });
  if (status.ok()) {
    filled_.fetch_add(fetch->length, std::memory_order_relaxed);
    folder_->written(std::exchange(fetch->reserved, 0));
  } else {
    not_kept_.fetch_add(1);
    note(fmt::format("cache={}: cannot write, reading from the source: {}", folder_->path(),
                     status.text()));
  }
  MutexLock lock(mu_);
  fetches_.erase(id_of(*fetch));
}

// Gives back what the fetch held, and lets the next ones go.
void CacheReads::end(const FetchPointer& fetch) {
  const bool counted = fetch->claim != nullptr;
  if (fetch->reserved > 0) folder_->give_back(std::exchange(fetch->reserved, 0));
  fetch->claim = nullptr;
  std::vector<FetchPointer> next;
  {
    MutexLock lock(mu_);
    if (counted) under_way_ -= fetch->length;
    while (!queue_.empty() && !closing_ &&
           (under_way_ == 0 || under_way_ + queue_.begin()->second->length <= kMostUnderWay)) {
      next.push_back(std::move(queue_.begin()->second));
      queue_.erase(queue_.begin());
      under_way_ += next.back()->length;
      ++outstanding_;
    }
  }
  for (const FetchPointer& each : next) send(each);
  MutexLock lock(mu_);
  --outstanding_;
  changed_.notify_all();
}

void CacheReads::run_writer() {
  while (true) {
    FetchPointer fetch;
    {
      MutexLock lock(mu_);
      while (to_write_.empty() && !(closing_ && outstanding_ == 0)) changed_.wait(mu_);
      if (to_write_.empty()) return;
      fetch = std::move(to_write_.front());
      to_write_.pop_front();
    }
    write(fetch);
    end(fetch);
  }
}

}  // namespace headrace
