// SPDX-License-Identifier: Apache-2.0
//
// SourceWrapper: what a source around a source derives from.  It forwards every call, and the
// wrapper overrides what it changes.  One that numbers fields otherwise than its base overrides all
// that takes the number of a field: needs, row_bytes, row_places, assembles, assemble.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/source.h"

namespace headrace {

// Immutable, hence thread-safe.
class SourceWrapper : public Source {
 public:
  explicit SourceWrapper(std::shared_ptr<const Source> base) : base_(std::move(base)) {}

  const Schema& schema() const override { return base_->schema(); }
  uint64_t size() const override { return base_->size(); }
  const Blocks& blocks() const override { return base_->blocks(); }
  Hash128 fingerprint() const override { return base_->fingerprint(); }
  Status needs(const SampleAsk& ask, Request& out) const override { return base_->needs(ask, out); }
  bool run_of(uint64_t sample, Unit& run) const override { return base_->run_of(sample, run); }
  uint64_t row_bytes(uint32_t field) const override { return base_->row_bytes(field); }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    return base_->row_places(field, samples, out);
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    return base_->decode_unit(unit, stored, decoded);
  }
  bool assembles(uint32_t field) const override { return base_->assembles(field); }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    return base_->assemble(ask, outputs);
  }
  const Store& store() const override { return base_->store(); }
  std::string file_path(uint32_t file) const override { return base_->file_path(file); }
  std::string key(uint64_t sample) const override { return base_->key(sample); }
  Status keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const override {
    return base_->keys(begin, end, out);
  }

 protected:
  const Source& base() const { return *base_; }

 private:
  const std::shared_ptr<const Source> base_;
};

}  // namespace headrace
