// SPDX-License-Identifier: Apache-2.0
//
// Inflater: unpacks a stream piece by piece, whatever packed it (zlib.h, zstd.h).
#pragma once

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// One thread at a time.
class Inflater {
 public:
  virtual ~Inflater() = default;

  // Takes from the front of `packed` and fills from the front of `out`, until one of them is
  // used up; both become what is left.  A wrong checksum is kCorrupt.
  virtual Status step(Bytes& packed, MutableBytes& out) = 0;
  // All that began has ended: where the data end they may end here.
  virtual bool at_end() const = 0;
};

}  // namespace headrace
