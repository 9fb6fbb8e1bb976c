// SPDX-License-Identifier: Apache-2.0
#include "index/view.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/row_maker.h"
#include "index/view_blocks.h"

namespace headrace {
namespace {

Hash128 fingerprint_of(const Source& base, const std::vector<uint64_t>& samples) {
  const Hash128 below = base.fingerprint();
  return Hasher()
      .add("view")
      .add(below.high)
      .add(below.low)
      .add(std::as_bytes(std::span(samples)))
      .finish();
}

// Immutable, hence thread-safe.
class View final : public Source, public RowMaker {
 public:
  View(std::shared_ptr<const Source> base, std::vector<uint64_t> samples)
      : base_(std::move(base)),
        maker_(dynamic_cast<const RowMaker*>(base_.get())),
        samples_(std::move(samples)),
        cut_(cut_view(base_->blocks(), base_->size(), samples_)),
        fingerprint_(fingerprint_of(*base_, samples_)) {}

  const Schema& schema() const override { return base_->schema(); }
  uint64_t size() const override { return samples_.size(); }
  const Blocks& blocks() const override { return cut_.blocks; }
  Hash128 fingerprint() const override { return fingerprint_; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    if (ask.sample >= size()) return invalid(fmt::format("sample {} of {}", ask.sample, size()));
    return base_->needs(below(ask), out);
  }
  // The run of the base's block, where the view has a good part of it.
  bool run_of(uint64_t sample, Unit& run) const override {
    if (sample >= size() || cut_.base_begin.empty()) return false;
    const uint64_t below = samples_[sample];
    const auto after = std::upper_bound(cut_.base_begin.begin(), cut_.base_begin.end(), below);
    const auto block = static_cast<size_t>(after - cut_.base_begin.begin()) - 1;
    return cut_.is_dense[block] && base_->run_of(below, run);
  }
  uint64_t row_bytes(uint32_t field) const override { return base_->row_bytes(field); }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] >= size()) return internal("no such sample of a view");
      const uint64_t below = samples_[samples[i]];
      HEADRACE_TRY(base_->row_places(field, {&below, 1}, out.subspan(i, 1)));
    }
    return {};
  }
  bool makes_rows(uint32_t field) const override {
    return maker_ != nullptr && maker_->makes_rows(field);
  }
  size_t rows_together(size_t samples) const override { return maker_->rows_together(samples); }
  void make_rows(RowsToMake&& rows) const override {
    for (uint64_t& sample : rows.samples) sample = samples_[sample];
    maker_->make_rows(std::move(rows));
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    return base_->decode_unit(unit, stored, decoded);
  }
  bool assembles(uint32_t field) const override { return base_->assembles(field); }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    return base_->assemble(below(ask), outputs);
  }
  const Store& store() const override { return base_->store(); }
  std::string file_path(uint32_t file) const override { return base_->file_path(file); }
  std::string key(uint64_t sample) const override {
    return sample < size() ? base_->key(samples_[sample]) : std::string();
  }
  // By stretches that are consecutive in the base, too.
  Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const override {
    if (begin > end || end > size()) return internal("no such samples");
    for (uint64_t at = begin; at < end;) {
      uint64_t n = 1;
      while (at + n < end && samples_[at + n] == samples_[at] + n) ++n;
      HEADRACE_TRY(base_->keys(samples_[at], samples_[at] + n, out));
      at += n;
    }
    return {};
  }

  const std::shared_ptr<const Source>& base() const { return base_; }
  uint64_t base_sample(uint64_t sample) const { return samples_[sample]; }

 private:
  SampleAsk below(SampleAsk ask) const {
    ask.sample = samples_[ask.sample];
    return ask;
  }

  const std::shared_ptr<const Source> base_;
  const RowMaker* const maker_;  // the base; null where it is none
  const std::vector<uint64_t> samples_;
  const ViewBlocks cut_;
  const Hash128 fingerprint_;
};

}  // namespace

Result<std::shared_ptr<const Source>> make_view(std::shared_ptr<const Source> base,
                                                std::vector<uint64_t> samples) {
  for (const uint64_t sample : samples)
    if (sample >= base->size())
      return invalid(fmt::format("sample {} of a data set of {}", sample, base->size()));
  if (const auto view = std::dynamic_pointer_cast<const View>(base)) {
    for (uint64_t& sample : samples) sample = view->base_sample(sample);
    base = view->base();
  }
  return std::shared_ptr<const Source>(
      std::make_shared<const View>(std::move(base), std::move(samples)));
}

Result<std::shared_ptr<const Source>> make_slice(std::shared_ptr<const Source> base, int64_t begin,
                                                 int64_t end, int64_t step) {
  if (step == 0) return invalid("a slice's step must not be 0");
  std::vector<uint64_t> samples;
  for (int64_t at = begin; step > 0 ? at < end : at > end; at += step) {
    samples.push_back(static_cast<uint64_t>(at));
    // Compared without adding: a step may be as large as a number can be.
    if (step > 0 ? step >= end - at : step <= end - at) break;
  }
  return make_view(std::move(base), std::move(samples));
}

}  // namespace headrace
