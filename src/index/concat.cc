// SPDX-License-Identifier: Apache-2.0
#include "index/concat.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "index/combined.h"

namespace headrace {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

std::string_view lies(Storage storage) {
  return storage == Storage::kInline ? "in the index" : "in files";
}

// Immutable, hence thread-safe.
class Concatenated final : public Source {
 public:
  explicit Concatenated(std::vector<SourcePointer> parts)
      : parts_(std::move(parts)), files_(parts_) {
    Hasher hasher;
    hasher.add("concat");
    for (const SourcePointer& part : parts_) {
      first_.push_back(size_);
      size_ += part->size();
      const Blocks& own = part->blocks();
      blocks_.samples.insert(blocks_.samples.end(), own.samples.begin(), own.samples.end());
      blocks_.bytes += own.bytes;
      blocks_.shared |= own.shared;
      hasher.add(part->fingerprint().high).add(part->fingerprint().low);
    }
    fingerprint_ = hasher.finish();
  }

  Status prepare() {
    for (uint32_t p = 0; p < parts_.size(); ++p)
      for (uint32_t f = 0; f < parts_[p]->schema().size(); ++f) HEADRACE_TRY(add_field(p, f));
    for (uint32_t f = 0; f < schema_.size(); ++f) HEADRACE_TRY(check_assembled(f));
    return {};
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return size_; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return fingerprint_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    if (ask.sample >= size_) return invalid(fmt::format("sample {} of {}", ask.sample, size_));
    const size_t p = part_at(ask.sample);
    ScratchRequests found(1);
    std::vector<uint32_t>& fields = found[0].fields;
    for (const uint32_t f : ask.fields) {
      if (f >= schema_.size()) return internal("no such field");
      if (of_[f][p] != kNone) fields.push_back(of_[f][p]);
    }
    HEADRACE_TRY(parts_[p]->needs(below(ask, p, fields), out));
    for (Unit& unit : out.units) HEADRACE_TRY(files_.outward(p, unit));
    if (fields.size() == ask.fields.size()) return {};
    // What the part lacks has no pieces.
    std::vector<uint32_t> ends;
    std::swap(ends, out.first_piece);
    out.first_piece.assign(1, 0);
    size_t at = 0;
    for (const uint32_t f : ask.fields) {
      if (of_[f][p] != kNone) ++at;
      out.first_piece.push_back(ends[at]);
    }
    return {};
  }

  bool run_of(uint64_t sample, Unit& run) const override {
    if (sample >= size_) return false;
    const size_t p = part_at(sample);
    return parts_[p]->run_of(sample - first_[p], run) && files_.outward(p, run).ok();
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    const size_t part = files_.part_of(unit);
    return parts_[part]->decode_unit(files_.inward(unit), stored, decoded);
  }
  bool assembles(uint32_t field) const override { return is_assembled(field, 0); }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    const size_t p = part_at(ask.sample);
    PartOutputs own(files_);
    for (const AssembleOutput& output : outputs) own.add(output, of_[output.field][p]);
    std::vector<uint32_t> fields;
    for (const uint32_t f : ask.fields)
      if (of_[f][p] != kNone) fields.push_back(of_[f][p]);
    return parts_[p]->assemble(below(ask, p, fields), own.outputs());
  }

  const Store& store() const override { return files_.store(); }
  std::string file_path(uint32_t file) const override { return files_.path(file); }
  std::string key(uint64_t sample) const override {
    if (sample >= size_) return {};
    const size_t p = part_at(sample);
    return parts_[p]->key(sample - first_[p]);
  }
  Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const override {
    if (begin > end || end > size_) return internal("no such samples");
    for (size_t p = 0; p < parts_.size(); ++p) {
      const uint64_t from = std::max(begin, first_[p]);
      const uint64_t to = std::min(end, first_[p] + parts_[p]->size());
      if (from < to) HEADRACE_TRY(parts_[p]->keys(from - first_[p], to - first_[p], out));
    }
    return {};
  }

 private:
  size_t part_at(uint64_t sample) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), sample);
    return static_cast<size_t>(after - first_.begin()) - 1;
  }
  SampleAsk below(SampleAsk ask, size_t part, std::span<const uint32_t> fields) const {
    ask.sample -= first_[part];
    ask.fields = fields;
    return ask;
  }

  Status add_field(uint32_t part, uint32_t number) {
    const Field& field = parts_[part]->schema()[number];
    const auto found = std::find_if(schema_.begin(), schema_.end(),
                                    [&field](const Field& f) { return f.name == field.name; });
    const auto at = static_cast<size_t>(found - schema_.begin());
    if (found == schema_.end()) {
      schema_.push_back(field);
      of_.emplace_back(parts_.size(), kNone);
    } else {
      HEADRACE_TRY(merge(field, *found));
    }
    of_[at][part] = number;
    return {};
  }

  static Status merge(const Field& field, Field& into) {
    const bool numbers = field.kind == into.kind && field.storage == into.storage &&
                         (field.kind == Kind::kInt || field.kind == Kind::kFloat);
    const bool pictures = field.kind != into.kind && field.storage == Storage::kExtent;
    if (!numbers && !(same_values(field, into) && (pictures || field.kind == into.kind)))
      return invalid(fmt::format(
          "field '{}' is {} {} in one data set and {} {} in another: rename it in one of them, "
          "ds.rename({{'new': '{}'}})",
          field.name, field_text(into), lies(into.storage), field_text(field), lies(field.storage),
          field.name));
    if (into.kind != field.kind) into.kind = Kind::kBytes;  // decoders look at each
    if (numbers && into.dtype != field.dtype) into.dtype = std::nullopt;
    into.many |= field.many;
    return {};
  }

  bool is_assembled(uint32_t field, size_t part) const {
    return of_[field][part] != kNone && parts_[part]->assembles(of_[field][part]);
  }

  // The engine asks whether a field is assembled before it knows the sample.
  Status check_assembled(uint32_t field) const {
    size_t count = 0;
    for (size_t p = 0; p < parts_.size(); ++p) count += is_assembled(field, p) ? 1 : 0;
    if (count == 0 || count == parts_.size()) return {};
    return invalid(
        fmt::format("the array '{}' lies in only some of the data sets", schema_[field].name));
  }

  const std::vector<SourcePointer> parts_;
  const CombinedFiles files_;
  std::vector<uint64_t> first_;  // sample of each part
  uint64_t size_ = 0;
  Blocks blocks_;
  Hash128 fingerprint_;
  Schema schema_;
  std::vector<std::vector<uint32_t>> of_;  // of each field: its number in each part, or kNone
};

}  // namespace

Result<std::shared_ptr<const Source>> concat_sources(
    std::vector<std::shared_ptr<const Source>> parts) {
  if (parts.size() < 2) return invalid("at least two data sets are put one after the other");
  auto made = std::make_shared<Concatenated>(std::move(parts));
  HEADRACE_TRY(made->prepare());
  return std::shared_ptr<const Source>(std::move(made));
}

}  // namespace headrace
