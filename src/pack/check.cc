// SPDX-License-Identifier: Apache-2.0
#include "pack/check.h"

#include <fmt/format.h>

#include <charconv>

#include "base/machine.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "open/expand.h"
#include "pack/journal.h"
#include "pack/shard_writer.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// The number after `name` in the manifest's first line.
bool read_count(std::string_view head, std::string_view name, uint64_t& out) {
  const size_t at = head.find(name);
  if (at == head.npos) return false;
  const std::string_view digits = head.substr(at + name.size());
  return std::from_chars(digits.data(), digits.data() + digits.size(), out).ec == std::errc();
}

// "" where the file is as it was written.
std::string problem_of(const Store& store, const std::string& folder, const PackedFile& file) {
  const std::string path = join_path(folder, file.name);
  const Result<FileInfo> info = store.stat(path);
  if (!info.ok()) return info.status().text();
  if (info.value().bytes != file.bytes)
    return fmt::format("{}: {} bytes, the manifest says {}", path, info.value().bytes, file.bytes);
  const Result<uint32_t> crc = checksum_of(store, path);
  if (!crc.ok()) return crc.status().text();
  if (crc.value() != file.crc32c)
    return fmt::format("{}: the bytes were changed: crc32c {:08x}, the manifest says {:08x}", path,
                       crc.value(), file.crc32c);
  return {};
}

}  // namespace

Result<std::optional<PackCheck>> check_pack(const std::string& folder,
                                            const PackCheckOptions& options) {
  HEADRACE_ASSIGN(const OpenedUrl at, open_store(clean_path(folder)));
  const std::shared_ptr<const Store>& store = at.store;
  std::string place = at.path;
  std::string manifest = join_path(place, kPackManifest);
  // That of a single file lies beside it.
  if (const Result<FileInfo> info = store->stat(place); info.ok() && !info.value().is_folder) {
    manifest = place + '.' + std::string(kPackManifest);
    place = parent_folder(place);
  }
  if (!store->stat(manifest).ok()) return std::optional<PackCheck>();
  HEADRACE_ASSIGN(const Buffer bytes, store->read_all(manifest));
  const std::string_view text = as_text(bytes.bytes());
  const std::string_view head = text.substr(0, text.find('\n'));
  PackCheck out;
  if (!head.starts_with(R"({"headrace": )") || !read_count(head, R"("samples": )", out.samples) ||
      !text.ends_with("]}\n"))
    return corrupt("the manifest does not parse").in_file(manifest);
  std::vector<PackedFile> files;
  uint64_t counted = 0;
  for (const PackedShard& shard : parse_shard_lines(text)) {
    ++out.shards;
    counted += shard.samples;
    files.push_back(shard.file);
    if (shard.companion) files.push_back(*shard.companion);
  }
  if (counted != out.samples)
    return corrupt(fmt::format("the manifest's shards have {} samples, its head says {}", counted,
                               out.samples))
        .in_file(manifest);
  out.files = files.size();
  for (const PackedFile& file : files) out.bytes += file.bytes;
  std::vector<std::string> problems(files.size());
  Mutex mu;
  uint64_t done = 0;
  const unsigned threads =
      options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus());
  HEADRACE_TRY(parallel_for(files.size(), threads, [&](size_t f) -> Status {
    if (options.cancel != nullptr && options.cancel->load()) return cancelled("was cancelled");
    problems[f] = problem_of(*store, place, files[f]);
    MutexLock lock(mu);
    done += files[f].bytes;
    if (options.progress) options.progress(done, out.bytes);
    return {};
  }));
  for (std::string& problem : problems)
    if (!problem.empty()) out.problems.push_back(std::move(problem));
  return std::optional<PackCheck>(std::move(out));
}

}  // namespace headrace
