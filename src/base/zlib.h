// SPDX-License-Identifier: Apache-2.0
//
// The one place that inflates: zlib's streams and gzip's.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Unpacks one zlib or gzip stream and says how many bytes of `out` it filled; its checksum is
// verified.  Bad bytes, and more than fits, are kCorrupt; a build without the library says so.
Result<size_t> unpack_zlib(Bytes packed, MutableBytes out);

// Inflates piece by piece what is one zlib stream or gzip members one after the other.
// One thread at a time.
class Inflater {
 public:
  static Result<std::unique_ptr<Inflater>> create();
  virtual ~Inflater() = default;

  // Takes from the front of `packed` and fills from the front of `out`, until one of them is
  // used up; both become what is left.  A wrong checksum is kCorrupt.
  virtual Status step(Bytes& packed, MutableBytes& out) = 0;
  // All that began has ended: where the data end they may end here.
  virtual bool at_end() const = 0;
};

}  // namespace headrace
