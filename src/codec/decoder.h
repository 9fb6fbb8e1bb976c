// SPDX-License-Identifier: Apache-2.0
//
// Decoder: turns the bytes of one value into its slot in the batch, whatever lies
// between (decode, crop, resize, normalise): there is no copy between stages.
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"
#include "codec/sample_context.h"
#include "codec/tensor.h"

namespace headrace {

// Where a decoder writes.  One thread at a time; called once per value.
class Slot {
 public:
  virtual ~Slot() = default;
  // Memory for a value of this shape: 64-byte aligned when the slot is fresh memory, any
  // alignment inside a dense batch.  A shape that the slot cannot hold is an error.
  virtual Result<MutableBytes> room(std::span<const int64_t> shape) = 0;
};

// From the type of the stored elements to that of the output.
struct Conversion {
  DType from = DType::kU8;
  DType to = DType::kU8;
};

struct DeferredSpec;  // codec/deferred.h

// Immutable, hence thread-safe; scratch memory is the thread's own (thread_local).  What one field
// of a sample leaves for another goes through the context, never through the thread.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual const TensorSpec& output() const = 0;
  // inputs[0] is the value, the others are its side data: inputs() of them.  context.draws() names
  // the randomness; the decoder adds the names of its steps.  Damaged bytes are kCorrupt with the
  // offset within the value.
  virtual Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const = 0;
  virtual size_t inputs() const { return 1; }
  // True where run() only copies the value: then whoever holds its bytes alone may hand them over
  // instead, once check() is OK.
  virtual bool copies() const { return false; }
  virtual Status check(Bytes value) const {
    (void)value;
    return {};
  }
  // True where run() gives the value's bytes as they are, in the shape of output(), which is fixed:
  // then they may be put into the slot right away.
  virtual bool keeps_elements() const { return false; }
  // Set where run() is convert_elements() (codec/elements.h) of a value whose length is fixed, and
  // nothing else: then many values may be converted at once.
  virtual std::optional<Conversion> converts() const { return std::nullopt; }
  // True where run() costs about as much as reading the value did: then reading and it are better
  // done by two threads.
  virtual bool is_light() const { return copies() || keeps_elements(); }
  // Not null where run() does not finish the value: the output is the stored bytes and what was
  // drawn for them, for a later stage.
  virtual const DeferredSpec* deferred() const { return nullptr; }
  // Values so far that were damaged and taken all the same, because the user said so.
  virtual uint64_t damaged() const { return 0; }
};

}  // namespace headrace
