// SPDX-License-Identifier: Apache-2.0
#include "storage/held.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "base/parallel.h"
#include "storage/lru.h"
#include "storage/shared_file.h"
#include "storage/spare_buffers.h"

namespace headrace {
namespace {

constexpr uint64_t kReadBytes = 8 << 20;  // of one read while memory is filled

uint64_t rounded(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Extent {
  FileInfo info;
  uint64_t begin = 0;
};
using Extents = std::unordered_map<std::string, Extent, TextHash, std::equal_to<>>;

// Where each file will lie, and a name for all of them together.
struct Layout {
  Extents extents;
  std::vector<std::string> order;
  uint64_t bytes = 0;
  Hash128 name;
};

Result<Layout> lay_out(const Store& inner, std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  Layout out;
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(::geteuid()));
  std::vector<Result<FileInfo>> infos = inner.stat_all(files);
  for (size_t i = 0; i < files.size(); ++i) {
    std::string& file = files[i];
    HEADRACE_ASSIGN(FileInfo info, std::move(infos[i]));
    if (info.is_folder) return unsupported("a folder cannot be held in memory").in_file(file);
    hasher.add(std::string_view(file))
        .add(info.bytes)
        .add(static_cast<uint64_t>(info.modified_ns))
        .add(std::string_view(info.version));
    const uint64_t bytes = rounded(info.bytes);
    out.extents.emplace(file, Extent{std::move(info), out.bytes});
    out.bytes += bytes;
    out.order.push_back(std::move(file));
  }
  out.name = hasher.finish();
  return out;
}

// Of a store that is far away many reads at a time.
unsigned streams_of(const Store& inner, const Layout& layout) {
  if (layout.order.empty()) return 1;
  const StoreCost cost = inner.cost(layout.order.front());
  return cost.is_near() ? 1 : std::clamp<unsigned>(cost.parallel_reads, 1, 16);
}

Status fill(const Store& inner, const Layout& layout, const std::atomic<bool>* cancel,
            MutableBytes content) {
  struct Part {
    const std::string* file;
    uint64_t offset;
    uint64_t length;
    uint64_t place;
  };
  std::vector<Part> parts;
  for (const std::string& file : layout.order) {
    const Extent& extent = layout.extents.at(file);
    for (uint64_t at = 0; at < extent.info.bytes; at += kReadBytes)
      parts.push_back({&file, at, std::min(kReadBytes, extent.info.bytes - at), extent.begin + at});
  }
  SpareBuffers spare;
  return parallel_for(parts.size(), streams_of(inner, layout), [&](size_t n) -> Status {
    if (cancel != nullptr && cancel->load()) return cancelled("reading into memory was ended");
    const Part& part = parts[n];
    Buffer piece = spare.take();
    HEADRACE_TRY(inner.read_at(*part.file, part.offset, part.length, piece));
    std::memcpy(content.data() + part.place, piece.data(), part.length);
    spare.give_back(std::move(piece));
    return {};
  });
}

// The memory that files are held in.  Immutable.
struct HeldMemory {
  std::unique_ptr<SharedFile> shared;
  Buffer own;
  Bytes content() const { return shared ? shared->content() : own.bytes(); }
};

// `files` of the inner store come from memory; all else is the inner store's.
class HeldStore final : public StoreWrapper {
 public:
  HeldStore(std::shared_ptr<const Store> inner, Extents extents, HeldMemory memory)
      : StoreWrapper(std::move(inner)),
        extents_(std::move(extents)),
        memory_(std::make_shared<const HeldMemory>(std::move(memory))) {}

  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) {
      const auto found = extents_.find(request.path);
      if (found == extents_.end()) {
        inner().read(std::span(&request, 1));
      } else if (request.is_cancelled()) {
        complete_cancelled(std::move(request));
      } else {
        mark_sent(request);
        Status status = read_one(request, found->second);
        complete(std::move(request), std::move(status));
      }
    }
  }

  bool read_if_resident(ReadRequest& request) const override {
    const auto found = extents_.find(request.path);
    if (found == extents_.end()) return inner().read_if_resident(request);
    return read_one(request, found->second).ok();
  }

  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override {
    const auto found = extents_.find(path);
    if (found == extents_.end()) return inner().pin(path, offset, length);
    const Result<Bytes> bytes = bytes_of(found->second, offset, length);
    return bytes.ok() ? std::optional(Pin(bytes.value(), memory_)) : std::nullopt;
  }

  StoreCost cost(const std::string& path) const override {
    return extents_.contains(path) ? StoreCost{} : inner().cost(path);
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out;
    out.reserve(paths.size());
    std::vector<std::string> others;
    std::vector<size_t> places;
    for (const std::string& path : paths) {
      const auto found = extents_.find(path);
      if (found == extents_.end()) {
        places.push_back(out.size());
        others.push_back(path);
      }
      out.emplace_back(found == extents_.end() ? FileInfo{} : found->second.info);
    }
    if (others.empty()) return out;
    std::vector<Result<FileInfo>> looked_up = inner().stat_all(others);
    for (size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(looked_up[i]);
    return out;
  }

 private:
  Result<Bytes> bytes_of(const Extent& extent, uint64_t offset, uint64_t length) const {
    const Bytes content = memory_->content();
    const uint64_t size = extent.info.bytes;
    if (length == kWholeFile) return content.subspan(extent.begin, size);
    if (offset > size || length > size - offset)
      return corrupt(fmt::format("the file ends here, {} bytes too early",
                                 offset > size ? length : length - (size - offset)))
          .at(size);
    return content.subspan(extent.begin + offset, length);
  }

  Status read_one(ReadRequest& request, const Extent& extent) const {
    const std::string& version = extent.info.version;
    if (!request.version.empty() && request.version != version)
      return changed_file(request.version, version);
    HEADRACE_ASSIGN(const Bytes bytes, bytes_of(extent, request.offset, request.length));
    request.version = version;
    return fill_request(request, bytes);
  }

  const Extents extents_;
  const std::shared_ptr<const HeldMemory> memory_;
};

}  // namespace

Result<HeldFiles> hold_files(std::shared_ptr<const Store> inner, std::vector<std::string> files,
                             const HoldOptions& options) {
  HEADRACE_ASSIGN(Layout layout, lay_out(*inner, std::move(files)));
  if (layout.bytes > options.most_bytes)
    return exhausted(fmt::format(
        "the data take {} MiB, and half of the memory that may be used is {} MiB: leave "
        "in_memory out, or take fewer files",
        layout.bytes >> 20, options.most_bytes >> 20));
  HeldFiles out{.bytes = layout.bytes};
  const auto fill_it = [&](MutableBytes content) {
    return fill(*inner, layout, options.cancel, content);
  };
  auto shared =
      SharedFile::open({options.folder, layout.name, layout.bytes, fill_it, options.cancel});
  if (shared.ok()) {
    out.is_shared = true;
    out.was_there = shared.value()->was_there();
    out.store = std::make_shared<HeldStore>(std::move(inner), std::move(layout.extents),
                                            HeldMemory{std::move(shared).value(), Buffer()});
    return out;
  }
  if (shared.status().code() != Code::kExhausted) return shared.status();
  out.notice = fmt::format("in_memory: each process keeps {} MiB of its own, not one for all: {}",
                           (layout.bytes >> 20) + 1, shared.status().text());
  Buffer own(layout.bytes);
  HEADRACE_TRY(fill_it(own.span()));
  out.store = std::make_shared<HeldStore>(std::move(inner), std::move(layout.extents),
                                          HeldMemory{nullptr, std::move(own)});
  return out;
}

}  // namespace headrace
