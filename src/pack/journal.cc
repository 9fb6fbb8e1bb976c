// SPDX-License-Identifier: Apache-2.0
#include "pack/journal.h"

#include <fmt/format.h>

#include <charconv>

#include "index/sidecar.h"
#include "open/expand.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/sink.h"

namespace headrace {
namespace {

// Takes `expected` off the front.
bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

template <typename T>
bool take_number(std::string_view& text, T& out, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc();
}

// "name": "…", with the comma that follows it.
bool take_name(std::string_view& line, PackedFile& file) {
  if (!take(line, R"("name": ")")) return false;
  file.name = line.substr(0, line.find('"'));
  line.remove_prefix(file.name.size());
  return take(line, "\", ");
}

bool take_sums(std::string_view& line, PackedFile& file) {
  return take(line, R"("bytes": )") && take_number(line, file.bytes, 10) &&
         take(line, R"(, "crc32c": ")") && take_number(line, file.crc32c, 16) && take(line, "\"");
}

// A file name of ours in a folder that we pack into.
bool is_packs(std::string_view name) {
  return name == kPackManifest || name == kUnfinishedName || is_temporary_name(name) ||
         name.starts_with("shard-") || name == "index.json";
}

Status foreign(const std::string& folder, std::string_view what) {
  return invalid(fmt::format("the folder is not empty: '{}' is there; give a new one", what))
      .in_file(folder);
}

}  // namespace

std::string shard_line(const PackedShard& shard) {
  std::string line =
      fmt::format(R"({{"name": "{}", "samples": {}, "bytes": {}, "crc32c": "{:08x}")",
                  shard.file.name, shard.samples, shard.file.bytes, shard.file.crc32c);
  if (shard.companion)
    line += fmt::format(R"(, "companion": {{"name": "{}", "bytes": {}, "crc32c": "{:08x}"}})",
                        shard.companion->name, shard.companion->bytes, shard.companion->crc32c);
  return line + '}';
}

std::optional<PackedShard> parse_shard_line(std::string_view line) {
  PackedShard shard;
  if (!take(line, "{") || !take_name(line, shard.file) || !take(line, R"("samples": )") ||
      !take_number(line, shard.samples, 10) || !take(line, ", ") || !take_sums(line, shard.file))
    return {};
  if (take(line, R"(, "companion": {)")) {
    PackedFile& companion = shard.companion.emplace();
    if (!take_name(line, companion) || !take_sums(line, companion) || !take(line, "}")) return {};
  }
  if (!take(line, "}")) return {};
  return shard;
}

std::vector<PackedShard> parse_shard_lines(std::string_view text) {
  std::vector<PackedShard> shards;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (std::optional<PackedShard> shard = parse_shard_line(line)) shards.push_back(*shard);
  }
  return shards;
}

// A last line that a kill cut short does not parse, and its shard is written again.
void Journal::read_lines(const Store& store, const std::string& text) {
  const auto is_there = [&](const PackedFile& file) {
    const Result<FileInfo> info = store.stat(join_path(folder_, file.name));
    return info.ok() && info.value().bytes == file.bytes;
  };
  for (PackedShard& shard : parse_shard_lines(text))
    if (is_there(shard.file) && (!shard.companion || is_there(*shard.companion)))
      done_.push_back(std::move(shard));
}

Result<Journal> Journal::open(const std::string& folder, Hash128 plan, std::string head) {
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, store_of_all({&folder, 1}));
  Result<std::vector<FileInfo>> listed = store->list(folder);
  // Of an object store nothing is a folder before there is something in it.
  const bool is_new = listed.status().code() == Code::kNotFound && !scheme_of(folder).empty();
  if (!listed.ok() && !is_new) return listed.status();
  const std::vector<FileInfo> entries =
      is_new ? std::vector<FileInfo>() : std::move(listed).value();
  Journal journal(folder, std::move(head));
  std::string record;
  for (const FileInfo& entry : entries) {
    const std::string_view name = base_name(entry.path);
    if (!is_packs(name) || entry.is_folder) return foreign(folder, name);
    if (name == kPackManifest || (name == kUnfinishedName && record.empty())) record = entry.path;
  }
  if (record.empty()) {
    for (const FileInfo& entry : entries)
      if (!is_temporary_name(base_name(entry.path))) return foreign(folder, base_name(entry.path));
    journal.text_ = journal.head_ + '\n';
    HEADRACE_TRY(write_url(join_path(folder, kUnfinishedName), as_bytes(journal.text_)));
    return journal;
  }
  HEADRACE_ASSIGN(const Buffer bytes, store->read_all(record));
  const std::string text(as_text(bytes.bytes()));
  // The plan tells, not all of the line: what it says besides may grow.
  const std::string says = fmt::format(R"("pack": "{}")", plan.hex());
  if (text.substr(0, text.find('\n')).find(says) == std::string::npos)
    return invalid(fmt::format("the folder holds another pack ({} does not say {}): other data or "
                               "other options; "
                               "give a new folder",
                               base_name(record), plan.hex()))
        .in_file(folder);
  journal.finished_ = base_name(record) == kPackManifest;
  // A run that was killed between its last two steps left both.
  if (journal.finished_) HEADRACE_TRY(remove_url(join_path(folder, kUnfinishedName)));
  for (const FileInfo& entry : entries)
    if (is_temporary_name(base_name(entry.path))) HEADRACE_TRY(remove_url(entry.path));
  journal.text_ = text;
  journal.read_lines(*store, text);
  return journal;
}

Status Journal::add(const PackedShard& shard) {
  MutexLock lock(*mu_);
  const std::string path = join_path(folder_, kUnfinishedName);
  const std::string line = '\n' + shard_line(shard) + '\n';
  if (scheme_of(path).empty()) return append_to_file(path, as_bytes(line));
  text_ += line;  // an object is written whole
  return write_url(path, as_bytes(text_));
}

Status Journal::finish(const std::vector<PackedShard>& shards) {
  std::string text = head_ + '\n';
  for (size_t i = 0; i < shards.size(); ++i)
    text += shard_line(shards[i]) + (i + 1 < shards.size() ? ",\n" : "\n");
  text += "]}\n";
  HEADRACE_TRY(write_url(join_path(folder_, kPackManifest), as_bytes(text)));
  return remove_url(join_path(folder_, kUnfinishedName));
}

}  // namespace headrace
