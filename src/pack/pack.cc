// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/crc32c.h"
#include "base/machine.h"
#include "format/expand.h"
#include "format/index_places.h"
#include "format/parallel.h"
#include "format/registry.h"
#include "index/sidecar.h"
#include "pack/journal.h"
#include "pack/layout.h"
#include "pack/sample_reader.h"
#include "plan/permutation.h"

namespace headrace {
namespace {

// Part of the plan: raised when the same call would give other bytes.
constexpr uint64_t kPackVersion = 1;
constexpr uint64_t kProgressEvery = 64;  // samples

// Passes bytes on, and keeps their count and checksum.  One thread at a time.
class CheckedSink final : public Sink {
 public:
  // `rewritten` becomes true where the checksum is not that of the file any more.
  CheckedSink(std::unique_ptr<Sink> inner, PackedShard& shard, bool& rewritten)
      : inner_(std::move(inner)), shard_(shard), rewritten_(rewritten) {}
  Status append(Bytes data) override {
    shard_.crc32c = crc32c(data, shard_.crc32c);
    shard_.bytes += data.size();
    return inner_->append(data);
  }
  Status rewrite(uint64_t offset, Bytes data) override {
    rewritten_ = true;
    return inner_->rewrite(offset, data);
  }
  Status close() override { return inner_->close(); }

 private:
  std::unique_ptr<Sink> inner_;
  PackedShard& shard_;
  bool& rewritten_;
};

Schema schema_of(const Source& source, const std::vector<uint32_t>& fields) {
  Schema schema;
  for (const uint32_t f : fields) schema.push_back(source.schema()[f]);
  return schema;
}

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

// Thread-safe: shards are written in parallel.
class Packer {
 public:
  Packer(const Source& source, std::vector<uint32_t> fields, const Format& format,
         const Layout& layout, std::string folder, const PackOptions& options)
      : source_(source),
        fields_(std::move(fields)),
        format_(format),
        layout_(layout),
        folder_(std::move(folder)),
        options_(options),
        store_(local_store()),
        shards_(layout.shards) {
    progress_.samples = layout.samples;
    progress_.shards = layout.shards;
  }

  // All that fixes the bytes.
  Hash128 plan() const {
    Hasher hasher;
    const Hash128 data = source_.fingerprint();
    hasher.add("pack")
        .add(kPackVersion)
        .add(data.high)
        .add(data.low)
        .add(format_.name)
        .add(layout_.shards);
    hasher.add(uint64_t{layout_.keep_order}).add(layout_.keep_order ? 0 : options_.seed);
    for (const uint32_t f : fields_) hasher.add(source_.schema()[f].name);
    return hasher.finish();
  }

  Result<PackResult> run() {
    HEADRACE_ASSIGN(Journal journal, Journal::open(folder_, plan(), head()));
    PackResult result{.samples = layout_.samples, .shards = layout_.shards};
    for (const PackedShard& done : journal.done()) take_over(done, result);
    if (journal.finished() && result.shards_kept < layout_.shards)
      return corrupt(fmt::format("the pack was finished, but {} of its {} shards are gone or have "
                                 "other sizes: remove {} "
                                 "to write them again",
                                 layout_.shards - result.shards_kept, layout_.shards,
                                 kPackManifest))
          .in_file(folder_);
    result.was_complete = journal.finished();
    const unsigned threads =
        options_.threads != 0 ? options_.threads : static_cast<unsigned>(usable_cpus());
    HEADRACE_TRY(
        parallel_for(layout_.shards, threads, [&](size_t s) { return finish_shard(s, journal); }));
    if (!journal.finished()) {
      HEADRACE_TRY(describe_folder());
      HEADRACE_TRY(journal.finish(shards_));
    }
    for (uint64_t s = 0; s < layout_.shards; ++s) {
      result.bytes += shards_[s].bytes;
      if (format_.companion.empty()) continue;
      HEADRACE_ASSIGN(const FileInfo second, store_->stat(companion_path(format_, shard_path(s))));
      result.bytes += second.bytes;
    }
    return result;
  }

 private:
  std::string shard_name(uint64_t shard) const {
    return fmt::format("shard-{:06}{}", shard, format_.suffixes[0]);
  }
  std::string shard_path(uint64_t shard) const { return folder_ + '/' + shard_name(shard); }

  std::string head() const {
    return fmt::format(
        R"({{"headrace": 1, "pack": "{}", "format": "{}", "samples": {}, "shards": [)",
        plan().hex(), format_.name, layout_.samples);
  }

  void take_over(const PackedShard& done, PackResult& result) {
    for (uint64_t s = 0; s < layout_.shards; ++s) {
      if (done.name != shard_name(s) || shards_[s].bytes != 0) continue;
      shards_[s] = done;
      ++result.shards_kept;
      report(done.samples, 0, 1);
      return;
    }
  }

  Status finish_shard(uint64_t s, Journal& journal) {
    if (shards_[s].bytes != 0) return index(s);
    if (Status status = write(s); !status.ok()) return status.with(shard_name(s));
    HEADRACE_TRY(journal.add(shards_[s]));
    HEADRACE_TRY(index(s));
    report(0, 0, 1);
    return {};
  }

  Status write(uint64_t s) {
    PackedShard& shard = shards_[s];
    shard = {.name = shard_name(s), .samples = layout_.begin(s + 1) - layout_.begin(s)};
    HEADRACE_ASSIGN(std::unique_ptr<Sink> sink, file_sink(shard_path(s)));
    PackedShard counted = shard;  // shards_ shows a size only when the file is there
    bool rewritten = false;
    ShardOutput out{
        .file = std::make_unique<CheckedSink>(std::move(sink), counted, rewritten),
        .schema = schema_of(source_, fields_),
        .samples = shard.samples,
    };
    if (!format_.companion.empty()) {
      HEADRACE_ASSIGN(out.companion, file_sink(companion_path(format_, shard_path(s))));
    }
    HEADRACE_ASSIGN(const std::unique_ptr<Writer> writer, format_.create(std::move(out)));
    const std::vector<uint64_t> order = samples_of(s);
    SampleReader reader(source_, fields_);
    uint64_t reported_bytes = 0;
    uint64_t waiting = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (options_.cancel != nullptr && options_.cancel->load())
        return cancelled("packing was cancelled");
      HEADRACE_ASSIGN(const Record record, reader.read(order[i]));
      HEADRACE_TRY(writer->append(record));
      if (++waiting < kProgressEvery && i + 1 < order.size()) continue;
      report(waiting, reader.bytes_read() - reported_bytes, 0);
      reported_bytes = reader.bytes_read();
      waiting = 0;
    }
    HEADRACE_TRY(writer->finish());
    if (rewritten) {
      HEADRACE_ASSIGN(counted.crc32c, checksum_of(*store_, shard_path(s)));
    }
    shard = counted;
    return {};
  }

  // In the order in which the writer gets them.
  std::vector<uint64_t> samples_of(uint64_t s) const {
    Permutation order;
    if (!layout_.keep_order) order.reset(layout_.key, layout_.samples);
    std::vector<uint64_t> samples;
    for (uint64_t p = layout_.begin(s); p < layout_.begin(s + 1); ++p)
      samples.push_back(layout_.keep_order ? p : order.at(p));
    if (!format_.sorts_keys) return samples;
    std::vector<std::pair<std::string, uint64_t>> keyed;
    // With the dot that follows a key in the name of an entry: "a-b.jpg" lies before "a.jpg".
    for (const uint64_t sample : samples) keyed.emplace_back(source_.key(sample) + '.', sample);
    std::sort(keyed.begin(), keyed.end());
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = keyed[i].second;
    return samples;
  }

  Status describe_folder() const {
    if (format_.finish_folder == nullptr) return {};
    std::vector<WrittenShard> written;
    for (const PackedShard& shard : shards_)
      written.push_back({shard.name, shard.samples, shard.bytes});
    return format_.finish_folder(folder_, written);
  }

  // Reads back what was written, as far as an index does, and keeps it beside.
  Status index(uint64_t s) const {
    HEADRACE_ASSIGN(const FileInfo info, store_->stat(shard_path(s)));
    if (read_sidecar(store_, sidecar_path(info.path), info, ~uint64_t{0}).ok()) return {};
    HEADRACE_ASSIGN(const PartPointer part, format_.index({*store_, info, 1, options_.cancel}));
    if (part->head().samples != shards_[s].samples)
      return corrupt(fmt::format("{} samples were written, {} are read back", shards_[s].samples,
                                 part->head().samples))
          .in_file(info.path);
    return write_sidecar(sidecar_path(info.path), *part);
  }

  void report(uint64_t samples, uint64_t bytes, uint64_t shards) {
    MutexLock lock(mu_);
    progress_.samples_done += samples;
    progress_.bytes += bytes;
    progress_.shards_done += shards;
    if (options_.progress) options_.progress(progress_);
  }

  const Source& source_;
  const std::vector<uint32_t> fields_;
  const Format& format_;
  const Layout layout_;
  const std::string folder_;
  const PackOptions& options_;
  const std::shared_ptr<const Store> store_;
  std::vector<PackedShard> shards_;  // one job each
  Mutex mu_;
  PackProgress progress_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Result<PackResult> pack(const Source& source, const std::string& folder,
                        const PackOptions& options) {
  HEADRACE_TRY(validate(options));
  HEADRACE_ASSIGN(const Format* format, find_format(options.format));
  HEADRACE_ASSIGN(const uint64_t shards, count_shards(source, options));
  HEADRACE_ASSIGN(std::vector<uint32_t> fields, wanted_fields(source.schema(), options.fields));
  if (format->can_hold != nullptr) HEADRACE_TRY(format->can_hold(schema_of(source, fields)));
  const std::string place = clean_path(folder);
  std::error_code error;
  std::filesystem::create_directories(place, error);
  if (error) return from_errno(error.value(), "make folder").in_file(place);
  HEADRACE_ASSIGN(const std::unique_ptr<BuildLock> lock, BuildLock::acquire(place, options.cancel));
  const Layout layout{source.size(), shards, options.keep_order, Key(options.seed).with("pack")};
  return Packer(source, std::move(fields), *format, layout, place, options).run();
}

}  // namespace headrace
