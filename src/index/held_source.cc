// SPDX-License-Identifier: Apache-2.0
#include "index/held_source.h"

namespace headrace {
namespace {

// The same data set, read through another store.
class ReadThrough final : public Source {
 public:
  ReadThrough(std::shared_ptr<const Source> source, std::shared_ptr<const Store> store)
      : source_(std::move(source)), store_(std::move(store)) {}

  const Schema& schema() const override { return source_->schema(); }
  uint64_t size() const override { return source_->size(); }
  const Blocks& blocks() const override { return source_->blocks(); }
  Hash128 fingerprint() const override { return source_->fingerprint(); }
  Status needs(const SampleAsk& ask, Request& out) const override {
    return source_->needs(ask, out);
  }
  bool run_of(uint64_t sample, Unit& run) const override { return source_->run_of(sample, run); }
  uint64_t row_bytes(uint32_t field) const override { return source_->row_bytes(field); }
  Status row_places(uint32_t field, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    return source_->row_places(field, samples, out);
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    return source_->decode_unit(unit, stored, decoded);
  }
  bool assembles(uint32_t field) const override { return source_->assembles(field); }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    return source_->assemble(ask, outputs);
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override { return source_->file_path(file); }
  std::string key(uint64_t sample) const override { return source_->key(sample); }

 private:
  const std::shared_ptr<const Source> source_;
  const std::shared_ptr<const Store> store_;
};

}  // namespace

std::shared_ptr<const Source> read_through(std::shared_ptr<const Source> source,
                                           std::shared_ptr<const Store> store) {
  return std::make_shared<const ReadThrough>(std::move(source), std::move(store));
}

Result<HeldSource> hold_source(std::shared_ptr<const IndexedSource> source,
                               const HoldOptions& options) {
  const ShardTable& shards = source->shards();
  std::vector<std::string> files;
  for (uint64_t f = 0; f < shards.first_file(shards.size()); ++f)
    files.push_back(source->file_path(static_cast<uint32_t>(f)));
  return hold_source(source, std::move(files), options);
}

Result<HeldSource> hold_source(std::shared_ptr<const Source> source, std::vector<std::string> files,
                               const HoldOptions& options) {
  // The inner store lives as long as the source does.
  const std::shared_ptr<const Store> inner(source, &source->store());
  HeldSource out;
  HEADRACE_ASSIGN(out.held, hold_files(inner, std::move(files), options));
  out.source = read_through(std::move(source), out.held.store);
  return out;
}

}  // namespace headrace
