// SPDX-License-Identifier: Apache-2.0
#include "pack/packer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/machine.h"
#include "base/parallel.h"
#include "format/members.h"
#include "format/packed_fields.h"
#include "index/sidecar.h"
#include "open/index_places.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Part of the plan: raised when the same call would give other bytes.
constexpr uint64_t kPackVersion = 1;
constexpr uint64_t kKeysTogether = 65536;
constexpr uint64_t kProgressEvery = 64;                // samples
constexpr uint64_t kReadTogether = uint64_t{4} << 20;  // bytes that one job reads, about

uint64_t memory_for(const PackOptions& options) {
  if (options.memory_bytes != 0) return options.memory_bytes;
  return std::clamp(usable_memory_bytes() / 8, uint64_t{64} << 20, uint64_t{8} << 30);
}

// Whether samples share units that open only as a whole, by the first, a middle and the last one.
bool has_whole_units(const Source& source, const Selection& selection) {
  std::vector<uint32_t> fields;
  for (const PackedField& p : selection) fields.push_back(p.source);
  Request request;
  for (const uint64_t sample : {uint64_t{0}, source.size() / 2, source.size() - 1})
    if (source.needs({.sample = sample, .fields = fields}, request).ok())
      for (const Unit& unit : request.units)
        if (unit.encoding != 0) return true;
  return false;
}

}  // namespace

Packer::Packer(const Source& source, Selection selection, const Format& format,
               const PackLayout& layout, std::string folder, const PackOptions& options,
               const PackEstimate& estimate, std::shared_ptr<const Store> store)
    : source_(source),
      selection_(std::move(selection)),
      format_(format),
      layout_(layout),
      folder_(std::move(folder)),
      options_(options),
      estimate_(estimate),
      threads_(options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus())),
      memory_(memory_for(options)),
      store_(std::move(store)),
      has_whole_units_(has_whole_units(source, selection_)),
      shards_(layout.shards),
      mean_bytes_(estimate.sample_bytes + sizeof(HeldRecord)) {
  progress_.samples = layout.samples;
  progress_.shards = layout.shards;
  if (!layout_.keep_order) order_.reset(layout_.key, layout_.samples);
}

Hash128 Packer::plan() const {
  Hasher hasher;
  const Hash128 data = source_.fingerprint();
  hasher.add("pack")
      .add(kPackVersion)
      .add(data.high)
      .add(data.low)
      .add(format_.name)
      .add(layout_.shards);
  hasher.add(uint64_t{layout_.keep_order}).add(layout_.keep_order ? 0 : options_.seed);
  for (const PackedField& p : selection_) {
    hasher.add(source_.schema()[p.source].name).add(p.field.name).add(uint64_t{p.recode});
  }
  if (options_.recode.any())
    hasher.add(static_cast<uint64_t>(options_.recode.max_side))
        .add(static_cast<uint64_t>(options_.recode.quality))
        .add(uint64_t{options_.recode.raw});
  return hasher.finish();
}

std::string Packer::head() const {
  return fmt::format(
      R"({{"headrace": 1, "pack": "{}", "format": "{}", "samples": {}, "fields": {}, "shards": [)",
      plan().hex(), format_.name, layout_.samples, packed_fields_text(schema_of(selection_)));
}

std::string Packer::shard_name(uint64_t shard) const {
  return fmt::format("shard-{:06}{}", shard, format_.suffixes[0]);
}

Status Packer::check_keys() {
  if (!format_.unique_keys) return {};
  std::vector<std::pair<uint64_t, uint64_t>> seen;  // hash of the key, sample
  std::vector<std::string> keys;
  for (uint64_t begin = 0; begin < source_.size(); begin += kKeysTogether) {
    HEADRACE_TRY(check_cancel());
    keys.clear();
    HEADRACE_TRY(source_.keys(begin, std::min(begin + kKeysTogether, source_.size()), keys));
    for (size_t i = 0; i < keys.size(); ++i)
      seen.emplace_back(Hasher().add(keys[i]).finish().high, begin + i);
  }
  std::sort(seen.begin(), seen.end());
  std::unordered_map<uint64_t, uint64_t> twice;  // samples whose key is another one's, and its hash
  for (size_t i = 1; i < seen.size(); ++i) {
    if (seen[i].first != seen[i - 1].first) continue;
    twice[seen[i].second] = seen[i].first;
    twice[seen[i - 1].second] = seen[i - 1].first;
  }
  if (twice.empty()) return {};
  for (uint64_t shard = 0; shard < layout_.shards; ++shard) {
    std::unordered_map<uint64_t, uint64_t> here;  // hash, sample
    for (uint64_t p = layout_.begin(shard); p < layout_.begin(shard + 1); ++p) {
      const auto found = twice.find(sample_at(p));
      if (found == twice.end()) continue;
      const auto [other, is_new] = here.try_emplace(found->second, found->first);
      if (!is_new && source_.key(other->second) == source_.key(found->first))
        return unsupported(fmt::format(
            "samples {} and {} have the key '{}', and a shard of format {} holds a key once; pack "
            "to arrow or parquet, or more shards",
            std::min(other->second, found->first), std::max(other->second, found->first),
            source_.key(found->first), format_.name));
    }
  }
  return {};
}

Result<PackResult> Packer::run() {
  const ScopedStoreOptions storage(options_.storage);
  HEADRACE_TRY(check_keys());
  HEADRACE_ASSIGN(Journal journal, Journal::open(folder_, plan(), head()));
  PackResult result{.samples = layout_.samples, .shards = layout_.shards};
  HEADRACE_TRY(take_over(journal, result));
  list_jobs();
  if (!jobs_.empty()) {
    HEADRACE_TRY(check_room());
    HEADRACE_TRY(write_all(journal));
  }
  if (!journal.finished()) {
    HEADRACE_TRY(describe_folder());
    HEADRACE_TRY(journal.finish(shards_));
  }
  for (const PackedShard& shard : shards_)
    result.bytes += shard.file.bytes + (shard.companion ? shard.companion->bytes : 0);
  return result;
}

// Shards of an earlier run; their indexes may be missing still.
Status Packer::take_over(const Journal& journal, PackResult& result) {
  std::unordered_map<std::string, uint64_t> numbers;
  for (uint64_t s = 0; s < layout_.shards; ++s) numbers[shard_name(s)] = s;
  std::vector<uint64_t> kept;
  for (const PackedShard& done : journal.done()) {
    const auto it = numbers.find(done.file.name);
    if (it == numbers.end() || shards_[it->second].file.bytes != 0) continue;
    shards_[it->second] = done;
    kept.push_back(it->second);
    result.samples_kept += done.samples;
    report(done.samples, 0, 1);
  }
  result.shards_kept = kept.size();
  if (journal.finished() && kept.size() < layout_.shards)
    return corrupt(fmt::format("the pack was finished, but {} of its {} shards are gone or have "
                               "other sizes: remove {} to write them again",
                               layout_.shards - kept.size(), layout_.shards, kPackManifest))
        .in_file(folder_);
  result.was_complete = journal.finished();
  return parallel_for(kept.size(), threads_, [&](size_t i) { return index(kept[i]); });
}

void Packer::list_jobs() {
  for (uint64_t s = 0; s < layout_.shards; ++s) {
    if (shards_[s].file.bytes != 0) continue;
    jobs_.push_back({.shard = s, .begin = to_write_});
    to_write_ += samples_of(s);
  }
}

// The estimate is from a few samples: only where it is clearly too much.
Status Packer::check_room() const {
  const double wanted =
      0.9 * static_cast<double>(to_write_) * static_cast<double>(estimate_.sample_bytes);
  if (wanted <= static_cast<double>(estimate_.free_bytes)) return {};
  return exhausted(fmt::format("about {} MB are to be written, and {} MB are free",
                               to_write_ * estimate_.sample_bytes / 1000000,
                               estimate_.free_bytes / 1000000))
      .in_file(folder_);
}

// While a wave is written the next is read, by the same threads.
Status Packer::write_all(Journal& journal) {
  std::unique_ptr<Wave> ready;
  for (uint64_t at = 0; at < to_write_ || ready != nullptr;) {
    std::unique_ptr<Wave> next = at < to_write_ ? next_wave(at) : nullptr;
    std::vector<Wish> wishes;
    if (next != nullptr) wishes = wishes_of(*next);
    const uint64_t together = std::clamp<uint64_t>(kReadTogether / mean_bytes_, 1, 256);
    const size_t reads = (wishes.size() + together - 1) / together;
    const size_t first = ready == nullptr ? 0 : job_of(ready->begin());
    const size_t writes = ready == nullptr ? 0 : job_of(ready->end() - 1) - first + 1;
    HEADRACE_TRY(parallel_for(writes + reads, threads_, [&](size_t i) -> Status {
      if (i < writes) return write_some(first + i, *ready, journal);
      const size_t begin = (i - writes) * together;
      return read_some(
          std::span(wishes).subspan(begin, std::min<size_t>(together, wishes.size() - begin)),
          *next);
    }));
    if (next != nullptr) {
      at = next->end();
      mean_bytes_ = std::max<uint64_t>(1, next->held_bytes() / (at - next->begin()));
    }
    // One wave goes and the other comes: two are held at most.
    ready = std::move(next);
  }
  return {};
}

// As many samples as memory holds, and whole shards where that is possible.  From a source of
// plain extents nothing is won by more than a shard for each thread.
std::unique_ptr<Wave> Packer::next_wave(uint64_t begin) const {
  uint64_t end = begin + std::clamp<uint64_t>(memory_ / mean_bytes_, 1, to_write_ - begin);
  const size_t first = job_of(begin);
  if (!has_whole_units_)
    end = std::min(end, job_end(std::min<size_t>(first + threads_, jobs_.size()) - 1));
  if (end < to_write_ && jobs_[job_of(end)].begin > begin) end = jobs_[job_of(end)].begin;
  return std::make_unique<Wave>(begin, end, memory_ + memory_ / 4);
}

// In the order of the source.
std::vector<Packer::Wish> Packer::wishes_of(const Wave& wave) {
  std::vector<Wish> wishes;
  wishes.reserve(wave.end() - wave.begin());
  for (size_t j = job_of(wave.begin()); j < jobs_.size() && jobs_[j].begin < wave.end(); ++j) {
    if (format_.sorts_keys && jobs_[j].sorted.empty()) sort_job(jobs_[j]);
    const uint64_t end = std::min(job_end(j), wave.end());
    for (uint64_t place = std::max(jobs_[j].begin, wave.begin()); place < end; ++place) {
      const uint64_t at = place - jobs_[j].begin;
      const uint64_t p = layout_.begin(jobs_[j].shard) + at;
      wishes.push_back({format_.sorts_keys ? jobs_[j].sorted[at] : sample_at(p), place});
    }
  }
  if (!layout_.keep_order || format_.sorts_keys)
    std::sort(wishes.begin(), wishes.end(),
              [](const Wish& a, const Wish& b) { return a.sample < b.sample; });
  return wishes;
}

void Packer::sort_job(Job& job) {
  // With the dot that follows a key in the name of an entry: "a-b.jpg" lies before "a.jpg".
  std::vector<std::pair<std::string, uint64_t>> keyed;
  for (uint64_t p = layout_.begin(job.shard); p < layout_.begin(job.shard + 1); ++p)
    keyed.emplace_back(member_key(source_.key(sample_at(p))) + '.', sample_at(p));
  std::sort(keyed.begin(), keyed.end());
  for (const auto& [key, sample] : keyed) job.sorted.push_back(sample);
}

size_t Packer::job_of(uint64_t place) const {
  const auto after = std::upper_bound(jobs_.begin(), jobs_.end(), place,
                                      [](uint64_t p, const Job& job) { return p < job.begin; });
  return static_cast<size_t>(after - jobs_.begin()) - 1;
}

Status Packer::read_some(std::span<const Wish> wishes, Wave& wave) {
  HEADRACE_TRY(check_cancel());
  std::vector<uint64_t> samples;
  std::vector<uint64_t> places;
  for (const Wish& wish : wishes) {
    if (!wave.wants(wish.place)) continue;
    samples.push_back(wish.sample);
    places.push_back(wish.place);
  }
  SampleReader reader(source_, selection_, options_.recode, units_, memory_ / 2);
  return reader.read(samples,
                     [&](size_t i, HeldRecord record) { wave.put(places[i], std::move(record)); });
}

Status Packer::write_some(size_t number, Wave& wave, Journal& journal) {
  const ScopedStoreOptions storage(options_.storage);  // of this thread
  Job& job = jobs_[number];
  const std::string name = shard_name(job.shard);
  const auto named = [&name](const Status& s) { return s.with(name); };
  if (job.writer == nullptr) {
    auto opened =
        ShardWriter::open(format_, folder_, name, samples_of(job.shard), schema_of(selection_));
    if (!opened.ok()) return named(opened.status());
    job.writer = std::move(opened).value();
  }
  const uint64_t end = std::min(job_end(number), wave.end());
  uint64_t waiting = 0;
  uint64_t bytes = 0;
  for (uint64_t place = std::max(job.begin, wave.begin()); place < end; ++place) {
    HEADRACE_TRY(check_cancel());
    const HeldRecord record = wave.take(place);
    if (const Status s = job.writer->append(record); !s.ok()) return named(s);
    bytes += record.bytes.size();
    if (++waiting < kProgressEvery && place + 1 < end) continue;
    report(waiting, bytes, 0);
    waiting = bytes = 0;
  }
  return end == job_end(number) ? finish_job(job, journal) : Status();
}

Status Packer::finish_job(Job& job, Journal& journal) {
  const std::unique_ptr<ShardWriter> writer = std::move(job.writer);
  auto packed = writer->finish();
  if (!packed.ok()) return packed.status().with(shard_name(job.shard));
  PackedShard& shard = shards_[job.shard];
  shard = std::move(packed).value();
  HEADRACE_TRY(journal.add(shard));
  HEADRACE_TRY(index(job.shard));
  report(0, 0, 1);
  return {};
}

Status Packer::describe_folder() const {
  if (format_.finish_folder == nullptr) return {};
  std::vector<WrittenShard> written;
  for (const PackedShard& shard : shards_)
    written.push_back({shard.file.name, shard.samples, shard.file.bytes});
  return format_.finish_folder(folder_, written);
}

// Reads back what was written, as far as an index does, and keeps it beside.
Status Packer::index(uint64_t s) const {
  const ScopedStoreOptions storage(options_.storage);
  HEADRACE_ASSIGN(FileInfo info, store_->stat(join_path(folder_, shard_name(s))));
  stamp_version(info);
  if (read_sidecar(store_, sidecar_path(info.path), info, *store_, ~uint64_t{0}).ok()) return {};
  HEADRACE_ASSIGN(const PartPointer part, format_.index({*store_, info, 1, options_.cancel}));
  if (part->head().samples != shards_[s].samples)
    return corrupt(fmt::format("{} samples were written, {} are read back", shards_[s].samples,
                               part->head().samples))
        .in_file(info.path);
  return write_sidecar(sidecar_path(info.path), *part);
}

Status Packer::check_cancel() const {
  if (options_.cancel != nullptr && options_.cancel->load())
    return cancelled("packing was cancelled");
  return {};
}

void Packer::report(uint64_t samples, uint64_t bytes, uint64_t shards) {
  MutexLock lock(mu_);
  progress_.samples_done += samples;
  progress_.bytes += bytes;
  progress_.shards_done += shards;
  if (options_.progress) options_.progress(progress_);
}

}  // namespace headrace
