// SPDX-License-Identifier: Apache-2.0
#include "storage/held.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "storage/lru.h"
#include "storage/shared_file.h"

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
  for (std::string& file : files) {
    HEADRACE_ASSIGN(FileInfo info, inner.stat(file));
    if (info.is_folder) return unsupported("a folder cannot be held in memory").in_file(file);
    hasher.add(std::string_view(file)).add(info.bytes).add(static_cast<uint64_t>(info.modified_ns));
    const uint64_t bytes = rounded(info.bytes);
    out.extents.emplace(file, Extent{std::move(info), out.bytes});
    out.bytes += bytes;
    out.order.push_back(std::move(file));
  }
  out.name = hasher.finish();
  return out;
}

Status fill(const Store& inner, const Layout& layout, const std::atomic<bool>* cancel,
            MutableBytes content) {
  Buffer piece;
  for (const std::string& file : layout.order) {
    const Extent& extent = layout.extents.at(file);
    for (uint64_t at = 0; at < extent.info.bytes; at += kReadBytes) {
      if (cancel != nullptr && cancel->load()) return cancelled("reading into memory was ended");
      const uint64_t length = std::min(kReadBytes, extent.info.bytes - at);
      HEADRACE_TRY(inner.read_at(file, at, length, piece));
      std::memcpy(content.data() + extent.begin + at, piece.data(), length);
    }
  }
  return {};
}

class HeldStore final : public Store {
 public:
  HeldStore(std::shared_ptr<const Store> inner, Extents extents, std::unique_ptr<SharedFile> shared,
            Buffer own)
      : inner_(std::move(inner)),
        extents_(std::move(extents)),
        shared_(std::move(shared)),
        own_(std::move(own)),
        content_(shared_ ? shared_->content() : own_.bytes()) {}

  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) {
      const auto found = extents_.find(request.path);
      if (found == extents_.end()) {
        inner_->read(std::span(&request, 1));
        continue;
      }
      const Status status = read_one(request, found->second);
      request.done(status.ok() ? status : status.in_file(request.path));
    }
  }

  std::optional<Bytes> look(std::string_view path, uint64_t offset,
                            uint64_t length) const override {
    const auto found = extents_.find(path);
    if (found == extents_.end()) return inner_->look(path, offset, length);
    const Result<Bytes> bytes = bytes_of(found->second, offset, length);
    return bytes.ok() ? std::optional(bytes.value()) : std::nullopt;
  }

  Result<FileInfo> stat(const std::string& path) const override {
    const auto found = extents_.find(path);
    if (found != extents_.end()) return found->second.info;
    return inner_->stat(path);
  }
  Result<std::vector<FileInfo>> list(const std::string& folder) const override {
    return inner_->list(folder);
  }

 private:
  Result<Bytes> bytes_of(const Extent& extent, uint64_t offset, uint64_t length) const {
    const uint64_t size = extent.info.bytes;
    if (length == kWholeFile) return content_.subspan(extent.begin, size);
    if (offset > size || length > size - offset)
      return corrupt(fmt::format("the file ends here, {} bytes too early",
                                 offset > size ? length : length - (size - offset)))
          .at(size);
    return content_.subspan(extent.begin + offset, length);
  }

  Status read_one(const ReadRequest& request, const Extent& extent) const {
    HEADRACE_ASSIGN(const Bytes bytes, bytes_of(extent, request.offset, request.length));
    request.into->resize(bytes.size());
    std::copy(bytes.begin(), bytes.end(), request.into->data());
    return {};
  }

  const std::shared_ptr<const Store> inner_;
  const Extents extents_;
  const std::unique_ptr<SharedFile> shared_;
  const Buffer own_;
  const Bytes content_;
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
                                            std::move(shared).value(), Buffer());
    return out;
  }
  if (shared.status().code() != Code::kExhausted) return shared.status();
  out.notice = fmt::format("in_memory: each process keeps {} MiB of its own, not one for all: {}",
                           (layout.bytes >> 20) + 1, shared.status().text());
  Buffer own(layout.bytes);
  HEADRACE_TRY(fill_it(own.span()));
  out.store = std::make_shared<HeldStore>(std::move(inner), std::move(layout.extents), nullptr,
                                          std::move(own));
  return out;
}

}  // namespace headrace
