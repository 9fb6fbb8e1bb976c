// SPDX-License-Identifier: Apache-2.0
#include "pack/sample_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/machine.h"
#include "base/parallel.h"
#include "pack/sample_reader.h"

namespace headrace {
namespace {

constexpr uint64_t kTogether = 64;                    // samples that a thread reads at a time
constexpr uint64_t kLooked = 16;                      // for the mean
constexpr uint64_t kKeepBytes = uint64_t{256} << 20;  // of opened units

Status check_record(const HeldRecord& record, const Schema& schema) {
  std::vector<uint32_t> counts(schema.size(), 0);
  for (const HeldRecord::Value& value : record.values) ++counts[value.field];
  for (size_t f = 0; f < counts.size(); ++f)
    if (counts[f] != 1)
      return invalid(fmt::format(
          "the sample has {} of field '{}': an array holds one for each sample; pack with --drop "
          "{}",
          counts[f] == 0 ? "no value" : "several values", schema[f].name, schema[f].name));
  return {};
}

// Moves the values of all records into one run of bytes.
void join(const std::vector<HeldRecord>& records, size_t field, ValueColumn& out) {
  out.lengths.clear();
  uint64_t total = 0;
  for (const HeldRecord& record : records) {
    out.lengths.push_back(static_cast<int64_t>(record.values[field].length));
    total += record.values[field].length;
  }
  out.bytes.resize(total);
  std::byte* to = out.bytes.data();
  for (const HeldRecord& record : records) {
    const HeldRecord::Value& value = record.values[field];
    to = std::copy_n(record.bytes.data() + value.begin, value.length, to);
  }
}

void join_keys(const std::vector<HeldRecord>& records, ValueColumn& out) {
  out.lengths.clear();
  std::string all;
  for (const HeldRecord& record : records) {
    out.lengths.push_back(static_cast<int64_t>(record.key.size()));
    all += record.key;
  }
  out.bytes.resize(all.size());
  std::copy_n(as_bytes(all).begin(), all.size(), out.bytes.data());
}

}  // namespace

SampleColumns::SampleColumns(std::shared_ptr<const Source> source, Selection selection,
                             const PackOptions& options)
    : source_(std::move(source)),
      selection_(std::move(selection)),
      options_(options),
      threads_(options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus())) {
  if (!options_.keep_order && source_->size() > 0)
    order_.reset(Key(options_.seed).with("pack"), source_->size());
}

Result<std::unique_ptr<SampleColumns>> SampleColumns::make(std::shared_ptr<const Source> source,
                                                           const PackOptions& options) {
  HEADRACE_TRY(validate(options.recode));
  HEADRACE_ASSIGN(Selection selection, select_fields(source->schema(), options));
  for (const PackedField& p : selection)
    if (p.field.many)
      return unsupported(
          fmt::format("field '{}' has several values in some samples, which arrays do not hold; "
                      "pack with --drop {}",
                      p.field.name, p.field.name));
  return std::unique_ptr<SampleColumns>(
      new SampleColumns(std::move(source), std::move(selection), options));
}

Result<uint64_t> SampleColumns::mean_bytes() {
  const uint64_t looked = std::min(kLooked, size());
  SampleReader reader(*source_, selection_, options_.recode, units_, kKeepBytes);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < looked; ++i) {
    const uint64_t sample = looked == 1 ? 0 : i * (size() - 1) / (looked - 1);
    HEADRACE_TRY(reader.read(std::span(&sample, 1), [&](size_t, const HeldRecord& record) {
      bytes += record.bytes.size() + record.key.size();
    }));
  }
  return std::max<uint64_t>(1, bytes / std::max<uint64_t>(1, looked));
}

Status SampleColumns::read(uint64_t begin, uint64_t end, ColumnWave& out) {
  if (begin > end || end > size()) return internal("samples that are not there");
  const uint64_t count = end - begin;
  std::vector<uint64_t> samples(count);
  for (uint64_t i = 0; i < count; ++i)
    samples[i] = options_.keep_order ? begin + i : order_.at(begin + i);
  // In the order of the source, so that neighbours are read together.
  std::vector<uint64_t> places(count);
  std::iota(places.begin(), places.end(), uint64_t{0});
  std::sort(places.begin(), places.end(),
            [&](uint64_t a, uint64_t b) { return samples[a] < samples[b]; });
  std::vector<HeldRecord> records(count);
  const Schema fields = schema();
  const auto read_some = [&](size_t job) -> Status {
    const std::span<const uint64_t> mine = std::span(places).subspan(
        job * kTogether, std::min<uint64_t>(kTogether, count - job * kTogether));
    std::vector<uint64_t> wanted;
    for (const uint64_t place : mine) wanted.push_back(samples[place]);
    SampleReader reader(*source_, selection_, options_.recode, units_, kKeepBytes);
    Status wrong;
    HEADRACE_TRY(reader.read(wanted, [&](size_t i, HeldRecord record) {
      if (Status s = check_record(record, fields); !s.ok() && wrong.ok())
        wrong = s.of_sample(wanted[i], record.key);
      records[mine[i]] = std::move(record);
    }));
    return wrong;
  };
  HEADRACE_TRY(parallel_for((count + kTogether - 1) / kTogether, threads_, read_some));
  out.fields.resize(selection_.size());
  join_keys(records, out.keys);
  return parallel_for(selection_.size(), threads_, [&](size_t f) -> Status {
    join(records, f, out.fields[f]);
    return {};
  });
}

}  // namespace headrace
