// SPDX-License-Identifier: Apache-2.0
//
// BatchStage: what happens to a packed batch before it is delivered: mixing, a copy to a device,
// work in another process.  Stages form a chain; each may complete later and elsewhere.
#pragma once

#include <functional>
#include <memory>

#include "base/rng.h"
#include "base/status.h"
#include "batch/batch.h"

namespace headrace {

// Thread-safe: several batches may be in it at a time.
class BatchStage {
 public:
  virtual ~BatchStage() = default;

  // Called exactly once for each batch, from any thread; the batch comes back with it.
  using Done = std::function<void(Status, std::unique_ptr<Batch>)>;

  // Whether it is asked about batches without a sample too (a rank's share of the last step).
  virtual bool takes_empty() const { return false; }
  // For stages that complete in the thread that packed the batch.  `draws` names this batch's
  // randomness.
  virtual Status apply(Batch& batch, Key draws, BufferPool& pool) const {
    (void)batch, (void)draws, (void)pool;
    return {};
  }
  // For those that do not.  The pool outlives the call of done().
  virtual void start(std::unique_ptr<Batch> batch, Key draws, BufferPool& pool, Done done) const {
    Status status = apply(*batch, draws, pool);
    done(std::move(status), std::move(batch));
  }
};

}  // namespace headrace
