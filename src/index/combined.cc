// SPDX-License-Identifier: Apache-2.0
#include "index/combined.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "storage/routed.h"

namespace headrace {
namespace {

struct Scratch {
  std::vector<std::unique_ptr<std::vector<PartRequest>>> levels;
  size_t depth = 0;
};

Scratch& scratch() {
  thread_local Scratch kept;
  return kept;
}

}  // namespace

CombinedFiles::CombinedFiles(std::span<const SourcePointer> parts)
    : parts_(parts.begin(), parts.end()) {
  for (const SourcePointer& part : parts_) is_routed_ |= &part->store() != &parts_[0]->store();
  if (!is_routed_) {
    store_ = std::shared_ptr<const Store>(parts_[0], &parts_[0]->store());
    return;
  }
  std::vector<RoutedStore::Route> routes;
  for (const SourcePointer& part : parts_)
    routes.push_back({std::shared_ptr<const Store>(part, &part->store()),
                      part->size() > 0 ? part->file_path(0) : std::string()});
  store_ = std::make_shared<const RoutedStore>(std::move(routes));
}

Status CombinedFiles::outward(size_t part, Unit& unit) const {
  const uint64_t number = uint64_t{unit.file} * parts_.size() + part;
  if (number > std::numeric_limits<uint32_t>::max())
    return unsupported(fmt::format("file {} of a part: {} parts may have {} files each", unit.file,
                                   parts_.size(), (uint64_t{1} << 32) / parts_.size()));
  unit.file = static_cast<uint32_t>(number);
  return {};
}

std::string CombinedFiles::path(uint32_t file) const {
  const auto count = static_cast<uint32_t>(parts_.size());
  const uint32_t part = file % count;
  std::string path = parts_[part]->file_path(file / count);
  return is_routed_ && !path.empty() ? route_path(part, path) : path;
}

void PartOutputs::add(const AssembleOutput& output, uint32_t field) {
  outputs_.push_back(output);
  outputs_.back().field = field;
}

std::span<const AssembleOutput> PartOutputs::outputs() {
  for (const AssembleOutput& output : outputs_)
    for (const PieceBytes& piece : output.pieces)
      pieces_.push_back({piece.bytes, own(piece.unopened)});
  // Only now: the pieces do not move any more.
  size_t first = 0;
  for (AssembleOutput& output : outputs_) {
    const size_t count = output.pieces.size();
    output.pieces = std::span<const PieceBytes>(pieces_).subspan(first, count);
    first += count;
  }
  return outputs_;
}

const Unit* PartOutputs::own(const Unit* unit) {
  if (unit == nullptr) return nullptr;
  return &units_.try_emplace(unit, files_.inward(*unit)).first->second;
}

ScratchRequests::ScratchRequests(size_t parts) {
  Scratch& kept = scratch();
  if (kept.depth == kept.levels.size())
    kept.levels.push_back(std::make_unique<std::vector<PartRequest>>());
  parts_ = kept.levels[kept.depth++].get();
  if (parts_->size() < parts) parts_->resize(parts);
  for (size_t p = 0; p < parts; ++p) {
    (*parts_)[p].fields.clear();
    (*parts_)[p].next = 0;
  }
}

ScratchRequests::~ScratchRequests() {
  --scratch().depth;
}

}  // namespace headrace
