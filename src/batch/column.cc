// SPDX-License-Identifier: Apache-2.0
#include "batch/column.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace headrace {
namespace {

uint64_t elements_of(std::span<const int64_t> shape) {
  uint64_t n = 1;
  for (const int64_t extent : shape) n *= static_cast<uint64_t>(extent);
  return n;
}

// Copies a dense row-major block into the corner of a larger one, axis by axis.
void copy_into_corner(const std::byte* from, std::span<const int64_t> shape, std::byte* to,
                      std::span<const int64_t> room, size_t item) {
  if (shape.empty()) {
    std::memcpy(to, from, item);
    return;
  }
  const uint64_t step_from = elements_of(shape.subspan(1)) * item;
  const uint64_t step_to = elements_of(room.subspan(1)) * item;
  if (step_from == step_to) {  // the rest of the axes agree: one run
    std::memcpy(to, from, static_cast<size_t>(shape[0]) * step_from);
    return;
  }
  for (int64_t k = 0; k < shape[0]; ++k)
    copy_into_corner(from + static_cast<uint64_t>(k) * step_from, shape.subspan(1),
                     to + static_cast<uint64_t>(k) * step_to, room.subspan(1), item);
}

}  // namespace

Packing default_packing(const TensorSpec& value) {
  return value.is_fixed() ? Packing::kDense : Packing::kList;
}

uint64_t held_bytes(const Column& column) {
  if (column.device.kind == DeviceKind::kCuda) return 0;  // of the device, not of this budget
  uint64_t sum = column.values ? column.values->held_bytes() : 0;
  for (const SharedBuffer& item : column.items) sum += item ? item->held_bytes() : 0;
  return sum;
}

ColumnBuilder::ColumnBuilder(const ColumnSpec& spec, size_t samples, BufferPool& pool)
    : ColumnBuilder(spec, samples, pool, nullptr) {}

ColumnBuilder::ColumnBuilder(const ColumnSpec& spec, size_t samples, BufferPool& pool,
                             std::atomic<uint64_t>* held)
    : spec_(spec), samples_(samples), pool_(pool), held_(held) {
  if (held == nullptr) {
    own_held_ = std::make_unique<std::atomic<uint64_t>>(0);
    held_ = own_held_.get();
  }
  if (spec.many) {
    each_ = {spec.name, spec.value,
             spec.packing == Packing::kRagged ? Packing::kDense : Packing::kList};
    many_.resize(samples);
  } else if (spec.packing == Packing::kDense) {
    stride_ = spec.value.bytes();
    dense_ = take(stride_ * samples);
  } else {
    items_.resize(samples);
    shapes_.resize(samples);
  }
}

SharedBuffer ColumnBuilder::take(size_t bytes) {
  SharedBuffer buffer = pool_.take(bytes);
  count(buffer);
  return buffer;
}

void ColumnBuilder::count(const SharedBuffer& buffer) {
  held_->fetch_add(buffer->held_bytes(), std::memory_order_relaxed);
}

void ColumnBuilder::let_go(SharedBuffer& buffer) {
  if (!buffer) return;
  held_->fetch_sub(buffer->held_bytes(), std::memory_order_relaxed);
  buffer.reset();
}

void ColumnBuilder::let_go_of_all() {
  let_go(dense_);
  for (SharedBuffer& item : items_) let_go(item);
}

Result<MutableBytes> ColumnBuilder::room(size_t i, std::span<const int64_t> shape) {
  const bool fits =
      shape.size() == spec_.value.shape.size() &&
      std::equal(shape.begin(), shape.end(), spec_.value.shape.begin(),
                 [](int64_t have, int64_t want) { return want == kVaries || have == want; });
  if (!fits)
    return corrupt(fmt::format("field '{}' promised {} and got a value of shape [{}]", spec_.name,
                               spec_.value.text(), fmt::join(shape, ",")));
  if (spec_.packing == Packing::kDense) return dense_->span().subspan(i * stride_, stride_);
  shapes_[i].assign(shape.begin(), shape.end());
  let_go(items_[i]);
  items_[i] = take(elements_of(shape) * size_of(spec_.value.dtype));
  return items_[i]->span();
}

void ColumnBuilder::adopt(size_t i, SharedBuffer buffer) {
  let_go(items_[i]);
  shapes_[i].clear();
  if (!buffer) return;  // the sample has none
  shapes_[i] = {static_cast<int64_t>(buffer->size())};
  count(buffer);
  items_[i] = std::move(buffer);
}

ColumnBuilder& ColumnBuilder::values(size_t i, size_t n) {
  if (many_[i]) many_[i]->let_go_of_all();
  many_[i] = std::unique_ptr<ColumnBuilder>(new ColumnBuilder(each_, n, pool_, held_));
  return *many_[i];
}

Column ColumnBuilder::finish() {
  Column out = pack();
  if (own_held_) held_->store(0, std::memory_order_relaxed);
  return out;
}

Column ColumnBuilder::pack() {
  if (spec_.many) return pack_many();
  if (spec_.packing == Packing::kPadded) return pack_padded();
  if (spec_.packing == Packing::kRagged) return pack_ragged();
  Column out{.packing = spec_.packing, .dtype = spec_.value.dtype};
  if (spec_.packing == Packing::kList) {
    out.items = std::move(items_);
    out.shapes = std::move(shapes_);
    return out;
  }
  out.values = std::move(dense_);
  out.shape.push_back(static_cast<int64_t>(samples_));
  out.shape.insert(out.shape.end(), spec_.value.shape.begin(), spec_.value.shape.end());
  return out;
}

Column ColumnBuilder::pack_padded() {
  Column out{
      .packing = Packing::kPadded, .dtype = spec_.value.dtype, .axes = spec_.value.shape.size()};
  const size_t item = size_of(spec_.value.dtype);
  std::vector<int64_t> largest;
  for (const int64_t extent : spec_.value.shape) largest.push_back(extent == kVaries ? 0 : extent);
  for (const auto& shape : shapes_)
    for (size_t a = 0; a < shape.size(); ++a) largest[a] = std::max(largest[a], shape[a]);
  if (!largest.empty() && spec_.pad_multiple > 1)
    largest.back() =
        (largest.back() + spec_.pad_multiple - 1) / spec_.pad_multiple * spec_.pad_multiple;
  const uint64_t stride = elements_of(largest) * item;
  out.values = take(stride * samples_);
  spec_.pad.fill(out.values->span(), item);
  for (size_t i = 0; i < samples_; ++i) {
    if (!items_[i] || items_[i]->size() == 0) continue;
    std::byte* to = out.values->data() + i * stride;
    if (spec_.pad_left && !largest.empty())
      to += static_cast<size_t>(largest.back() - shapes_[i].back()) * item;
    copy_into_corner(items_[i]->data(), shapes_[i], to, largest, item);
  }
  out.shape.push_back(static_cast<int64_t>(samples_));
  out.shape.insert(out.shape.end(), largest.begin(), largest.end());
  out.shapes = std::move(shapes_);
  let_go_of_all();
  items_.clear();
  return out;
}

Column ColumnBuilder::pack_ragged() {
  Column out{
      .packing = Packing::kRagged, .dtype = spec_.value.dtype, .axes = spec_.value.shape.size()};
  const size_t item = size_of(spec_.value.dtype);
  out.offsets.push_back(0);
  for (const auto& buffer : items_) {
    const uint64_t bytes = buffer ? buffer->size() : 0;
    out.offsets.push_back(out.offsets.back() + static_cast<int64_t>(bytes / item));
  }
  out.values = take(static_cast<size_t>(out.offsets.back()) * item);
  out.shape = {out.offsets.back()};
  for (size_t i = 0; i < samples_; ++i) {
    if (items_[i] && items_[i]->size() > 0)
      std::memcpy(out.values->data() + static_cast<size_t>(out.offsets[i]) * item,
                  items_[i]->data(), items_[i]->size());
  }
  out.shapes = std::move(shapes_);
  let_go_of_all();
  items_.clear();
  return out;
}

Column ColumnBuilder::pack_many() {
  Column out{.packing = spec_.packing,
             .dtype = spec_.value.dtype,
             .axes = spec_.value.shape.size(),
             .many = true};
  std::vector<Column> parts;
  out.first.push_back(0);
  for (const auto& builder : many_) {
    const auto count = static_cast<int64_t>(builder ? builder->samples_ : 0);
    out.first.push_back(out.first.back() + count);
    if (builder) parts.push_back(builder->pack());
  }
  many_.clear();
  if (spec_.packing == Packing::kRagged) {
    join_values(out, parts);
    return out;
  }
  for (Column& part : parts) {
    std::move(part.items.begin(), part.items.end(), std::back_inserter(out.items));
    std::move(part.shapes.begin(), part.shapes.end(), std::back_inserter(out.shapes));
  }
  return out;
}

// One buffer for the values of all samples.
void ColumnBuilder::join_values(Column& out, std::vector<Column>& parts) {
  out.values = take(spec_.value.bytes() * static_cast<uint64_t>(out.first.back()));
  size_t at = 0;
  for (const Column& part : parts) {
    if (part.values->size() > 0)
      std::memcpy(out.values->data() + at, part.values->data(), part.values->size());
    at += part.values->size();
  }
  out.shape.push_back(out.first.back());
  out.shape.insert(out.shape.end(), spec_.value.shape.begin(), spec_.value.shape.end());
  out.offsets = out.first;
}

}  // namespace headrace
