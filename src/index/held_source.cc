// SPDX-License-Identifier: Apache-2.0
#include "index/held_source.h"

#include "index/source_wrapper.h"

namespace headrace {
namespace {

// The same data set, read through another store.
class ReadThrough final : public SourceWrapper {
 public:
  ReadThrough(std::shared_ptr<const Source> source, std::shared_ptr<const Store> store)
      : SourceWrapper(std::move(source)), store_(std::move(store)) {}

  const Store& store() const override { return *store_; }

 private:
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
