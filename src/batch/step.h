// SPDX-License-Identifier: Apache-2.0
//
// BatchStep: changes a packed batch before it is handed over, on the thread that packed it.
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "batch/batch.h"

namespace headrace {

// Immutable, hence thread-safe.
class BatchStep {
 public:
  virtual ~BatchStep() = default;
  // `draws` names this batch's randomness.
  virtual Status apply(Batch& batch, Key draws, BufferPool& pool) const = 0;
};

}  // namespace headrace
