// SPDX-License-Identifier: Apache-2.0
//
// A column is one output field of a batch.  While the batch is filled each sample
// owns one slot of it; when the last slot is full the column is packed:
//
//   dense    one buffer [n, shape…]; slots are places in it, nothing is moved
//   padded   [n, largest shape…], the padding's value beyond each sample, and their true extents
//   ragged   all values one after the other and where each begins
//   list     one buffer per sample
//
// A column of several values a sample (`many`) is a list of them all, in the order of the
// samples, or, where all are of one shape, one buffer [values, shape…] (ragged); `first` says
// which are whose.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/buffer_pool.h"
#include "batch/device.h"
#include "batch/pad_value.h"
#include "codec/decoder.h"

namespace headrace {

enum class Packing : uint8_t { kDense, kPadded, kRagged, kList };

struct ColumnSpec {
  std::string name;
  TensorSpec value;  // of one sample
  Packing packing = Packing::kDense;
  bool many = false;         // any number of values a sample; packing is list or ragged
  PadValue pad = {};         // padded: what stands beyond a sample's value; zeros by default
  int64_t pad_multiple = 1;  // padded: the last axis becomes a multiple of it
  bool pad_left = false;     // padded: the padding of the last axis comes first
};

// How the pictures of a batch are to be mixed by a stage that makes them later: each with the one
// before it.
struct LateMix {
  bool cuts = false;  // a box comes from the other; else both are blended
  float share = 1;    // of the picture itself, where they are blended
  int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
};

// A column as it is delivered.
struct Column {
  Packing packing = Packing::kDense;
  DType dtype = DType::kU8;
  size_t axes = 0;                           // of one sample (padded, ragged)
  SharedBuffer values;                       // all but list
  std::vector<int64_t> shape;                // of values: [n, …], ragged: [total elements]
  std::vector<int64_t> offsets;              // ragged: n + 1, in elements
  std::vector<std::vector<int64_t>> shapes;  // padded, ragged, list: of each sample
  std::vector<SharedBuffer> items;           // list
  bool many = false;
  Device device = {};                            // where the values lie
  std::shared_ptr<const ReadyEvent> ready = {};  // null: they may be read now
  std::optional<LateMix> late_mix = {};          // of pictures that are yet to be made
  std::vector<int64_t> first;  // many: sample i has the values first[i] … first[i + 1] - 1
};

// Slots are independent: each may be filled by another thread, once at a time.
// finish() is called by one thread, after the last slot.
class ColumnBuilder {
 public:
  // Dense columns take their memory here.
  ColumnBuilder(const ColumnSpec& spec, size_t samples, BufferPool& pool);

  // Where sample i goes.  Asking again (a replaced sample) discards what was there.
  Result<MutableBytes> room(size_t i, std::span<const int64_t> shape);

  // Of a dense column: all slots, one after the other.
  MutableBytes dense() { return dense_->span(); }

  // Of a list of bytes: sample i is all of this buffer, which nobody else writes.
  void adopt(size_t i, SharedBuffer buffer);

  // Of a column of several values a sample: where the `n` values of sample i go, each a slot
  // of the builder returned.  Asking again discards what was there.
  ColumnBuilder& values(size_t i, size_t n);

  // All memory of its buffers now (Buffer::held_bytes), those of every value of every sample.
  // From any thread, while slots are filled and while finish() packs.  0 after finish(): the memory
  // is then the column's.
  uint64_t bytes() const { return held_->load(std::memory_order_relaxed); }

  // Packs what the slots hold.
  Column finish();
  const ColumnSpec& spec() const { return spec_; }

 private:
  // Of the values of one sample: they count with those of all.
  ColumnBuilder(const ColumnSpec& spec, size_t samples, BufferPool& pool,
                std::atomic<uint64_t>* held);
  // Buffers that come and go, counted.
  SharedBuffer take(size_t bytes);
  void count(const SharedBuffer& buffer);
  void let_go(SharedBuffer& buffer);
  void let_go_of_all();
  Column pack();
  Column pack_padded();
  Column pack_ragged();
  Column pack_many();
  void join_values(Column& out, std::vector<Column>& parts);

  const ColumnSpec& spec_;
  const size_t samples_;
  BufferPool& pool_;
  std::unique_ptr<std::atomic<uint64_t>> own_held_;  // not of the values of one sample
  std::atomic<uint64_t>* held_;
  SharedBuffer dense_;
  uint64_t stride_ = 0;  // bytes of one dense slot
  std::vector<SharedBuffer> items_;
  std::vector<std::vector<int64_t>> shapes_;
  ColumnSpec each_;  // many: of the values of one sample
  std::vector<std::unique_ptr<ColumnBuilder>> many_;
};

// A decoder's view of one slot of one column.
class ColumnSlot final : public Slot {
 public:
  ColumnSlot(ColumnBuilder& column, size_t i) : column_(column), i_(i) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    return column_.room(i_, shape);
  }

 private:
  ColumnBuilder& column_;
  const size_t i_;
};

// Dense where the shape is fixed, list where it is not: what a field gets unless asked.
Packing default_packing(const TensorSpec& value);

// All memory of its buffers (Buffer::held_bytes); of a column on a device nothing.
uint64_t held_bytes(const Column& column);

}  // namespace headrace
