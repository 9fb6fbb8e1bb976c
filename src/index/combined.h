// SPDX-License-Identifier: Apache-2.0
//
// What data sets made of others share: their files as one space of numbers, their stores as one.
// File f of part p, of n parts, is file n·f + p: so that parts may be made of parts themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "index/source.h"

namespace headrace {

using SourcePointer = std::shared_ptr<const Source>;

// Immutable, hence thread-safe.
class CombinedFiles {
 public:
  // At least two.
  explicit CombinedFiles(std::span<const SourcePointer> parts);

  // A part's unit as one of the whole.
  Status outward(size_t part, Unit& unit) const;
  // And back.
  size_t part_of(const Unit& unit) const { return unit.file % parts_.size(); }
  Unit inward(Unit unit) const {
    unit.file /= static_cast<uint32_t>(parts_.size());
    return unit;
  }

  const Store& store() const { return *store_; }
  std::string path(uint32_t file) const;

 private:
  const std::vector<SourcePointer> parts_;
  std::shared_ptr<const Store> store_;
  bool is_routed_ = false;
};

// Values to assemble as one part knows them.  One thread at a time; lives until assemble() returns.
class PartOutputs {
 public:
  explicit PartOutputs(const CombinedFiles& files) : files_(files) {}

  void add(const AssembleOutput& output, uint32_t field);
  // After the last add().
  std::span<const AssembleOutput> outputs();
  bool empty() const { return outputs_.empty(); }

 private:
  const Unit* own(const Unit* unit);

  const CombinedFiles& files_;
  std::vector<AssembleOutput> outputs_;
  std::vector<PieceBytes> pieces_;
  // Pieces of one unit name it by one address, here too.  Nodes of the map do not move.
  std::unordered_map<const Unit*, Unit> units_;
};

// Memory that needs() fills anew at each call: kept by the thread, one for each source within a
// source, so that an inner one does not write into what an outer one is reading.
struct PartRequest {
  std::vector<uint32_t> fields;  // of the part
  Request request;
  size_t next = 0;  // of the fields: whose pieces come next
};
class ScratchRequests {
 public:
  explicit ScratchRequests(size_t parts);
  ~ScratchRequests();
  ScratchRequests(const ScratchRequests&) = delete;
  ScratchRequests& operator=(const ScratchRequests&) = delete;

  PartRequest& operator[](size_t part) { return (*parts_)[part]; }

 private:
  std::vector<PartRequest>* parts_;
};

}  // namespace headrace
