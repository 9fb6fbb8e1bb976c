// SPDX-License-Identifier: Apache-2.0
//
// What data sets made of others share: their files as one space of numbers, their stores as one.
// The uppermost bits of a file's number are the number of its part.
//
//   part 1, file 7 of two parts  ◄──►  file 2^31 + 7
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
  size_t part_of(const Unit& unit) const { return unit.file >> shift_; }
  Unit inward(Unit unit) const {
    unit.file &= mask_;
    return unit;
  }

  const Store& store() const { return *store_; }
  std::string path(uint32_t file) const;

 private:
  const std::vector<SourcePointer> parts_;
  const unsigned shift_;
  const uint32_t mask_;
  std::shared_ptr<const Store> store_;
  bool is_routed_ = false;
};

// Values to assemble as one part knows them.  One thread at a time; lives until assemble() returns.
class PartOutputs {
 public:
  PartOutputs(const CombinedFiles& files, size_t part) : files_(files), part_(part) {}

  void add(const AssembleOutput& output, uint32_t field);
  // After the last add().
  std::span<const AssembleOutput> outputs();
  bool empty() const { return outputs_.empty(); }

 private:
  const Unit* own(const Unit* unit);

  const CombinedFiles& files_;
  const size_t part_;
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
