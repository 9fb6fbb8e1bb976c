// SPDX-License-Identifier: Apache-2.0
#include "batch/pack_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace headrace {
namespace {

bool can_be_packed(const ColumnSpec& spec) {
  return !spec.many && spec.packing == Packing::kList && spec.value.shape.size() == 1;
}

enum Added : uint8_t { kPositions, kLossMask, kBorders };
constexpr std::string_view kNames[] = {"positions", "loss_mask", "cu_seqlens"};

// Where each sample of a row begins, and where the last one ends.
struct RowLayout {
  std::vector<std::vector<int64_t>> ends;  // of each row: 0, then the end of each sample
  int64_t end(size_t row) const { return ends[row].back(); }
};

// Immutable, hence thread-safe.
class PackRows final : public BatchStage {
 public:
  struct Packed {
    size_t column = 0;
    std::string name;
    PadValue pad;
  };

  PackRows(uint64_t length, bool keep_end, std::vector<Packed> packed, std::vector<Added> added)
      : length_(static_cast<int64_t>(length)),
        keep_end_(keep_end),
        packed_(std::move(packed)),
        added_(std::move(added)) {}

  bool takes_empty() const override { return true; }
  Status apply(Batch& batch, Key draws, BufferPool& pool) const override {
    (void)draws;
    if (batch.groups.empty()) batch.groups.push_back(0);  // an empty step
    HEADRACE_ASSIGN(const RowLayout layout, lay_out(batch));
    for (const Packed& packed : packed_) HEADRACE_TRY(pack(batch, packed, layout, pool));
    for (const Added added : added_) batch.columns.push_back(make(added, layout, pool));
    return {};
  }

 private:
  // By the first packed column, whose lengths count.
  Result<RowLayout> lay_out(const Batch& batch) const {
    const Column& lead = batch.columns[packed_[0].column];
    RowLayout out;
    for (size_t row = 0; row + 1 < batch.groups.size(); ++row) {
      std::vector<int64_t>& ends = out.ends.emplace_back(1, 0);
      for (int64_t i = batch.groups[row]; i < batch.groups[row + 1]; ++i) {
        const int64_t length = length_of(lead, static_cast<size_t>(i));
        if (length > length_ - ends.back())
          return corrupt(fmt::format("field '{}': the samples of a row have more tokens than the "
                                     "{} of the row: their lengths were counted when the data were "
                                     "others; count them again",
                                     packed_[0].name, length_))
              .of_sample(static_cast<uint64_t>(batch.indices[static_cast<size_t>(i)]), "");
        ends.push_back(ends.back() + length);
      }
    }
    return out;
  }

  int64_t length_of(const Column& column, size_t i) const {
    return column.items[i] ? std::min(column.shapes[i][0], length_) : 0;
  }

  Status pack(Batch& batch, const Packed& packed, const RowLayout& layout, BufferPool& pool) const {
    Column& column = batch.columns[packed.column];
    const size_t item = size_of(column.dtype);
    const auto rows = layout.ends.size();
    const size_t stride = static_cast<size_t>(length_) * item;
    Column out{.packing = Packing::kDense, .dtype = column.dtype};
    out.values = pool.take(stride * rows);
    out.shape = {static_cast<int64_t>(rows), length_};
    for (size_t row = 0; row < rows; ++row) {
      std::byte* to = out.values->data() + row * stride;
      const std::vector<int64_t>& ends = layout.ends[row];
      for (size_t k = 0; k + 1 < ends.size(); ++k) {
        const size_t i = static_cast<size_t>(batch.groups[row]) + k;
        const int64_t tokens = ends[k + 1] - ends[k];
        if (length_of(column, i) != tokens)
          return corrupt(fmt::format("field '{}' has {} elements where '{}' has {} tokens: fields "
                                     "that are packed together have one length",
                                     packed.name, length_of(column, i), packed_[0].name, tokens))
              .of_sample(static_cast<uint64_t>(batch.indices[i]), "");
        const Bytes value = column.items[i] ? column.items[i]->bytes() : Bytes();
        const size_t bytes = static_cast<size_t>(tokens) * item;
        const Bytes kept = keep_end_ ? value.last(bytes) : value.first(bytes);
        if (bytes > 0) std::memcpy(to + static_cast<size_t>(ends[k]) * item, kept.data(), bytes);
      }
      const size_t filled = static_cast<size_t>(layout.end(row)) * item;
      packed.pad.fill({to + filled, stride - filled}, item);
    }
    column = std::move(out);
    return {};
  }

  Column make(Added added, const RowLayout& layout, BufferPool& pool) const {
    if (added == kBorders) return make_borders(layout, pool);
    const DType dtype = added == kPositions ? DType::kI32 : DType::kU8;
    const auto rows = layout.ends.size();
    const auto length = static_cast<size_t>(length_);
    Column out{.packing = Packing::kDense, .dtype = dtype};
    out.values = pool.take(rows * length * size_of(dtype));
    out.shape = {static_cast<int64_t>(rows), length_};
    for (size_t row = 0; row < rows; ++row) {
      std::byte* to = out.values->data() + row * length * size_of(dtype);
      if (added == kPositions)
        write_positions(layout.ends[row], {reinterpret_cast<int32_t*>(to), length});
      else
        write_mask(layout.ends[row], {to, length});
    }
    return out;
  }

  // The padding counts on from 0, as one more sample.
  static void write_positions(const std::vector<int64_t>& ends, std::span<int32_t> out) {
    size_t at = 0;
    for (size_t k = 1; k <= ends.size(); ++k) {
      const size_t end = k < ends.size() ? static_cast<size_t>(ends[k]) : out.size();
      for (int32_t position = 0; at < end; ++at) out[at] = position++;
    }
  }

  static void write_mask(const std::vector<int64_t>& ends, MutableBytes out) {
    const auto filled = static_cast<size_t>(ends.back());
    std::fill(out.begin(), out.begin() + ends.back(), std::byte{1});
    std::fill(out.begin() + ends.back(), out.end(), std::byte{0});
    for (size_t k = 0; k + 1 < ends.size(); ++k)
      if (static_cast<size_t>(ends[k]) < filled) out[static_cast<size_t>(ends[k])] = std::byte{0};
  }

  Column make_borders(const RowLayout& layout, BufferPool& pool) const {
    Column out{.packing = Packing::kList, .dtype = DType::kI32};
    for (const std::vector<int64_t>& ends : layout.ends) {
      std::vector<int64_t> borders = ends;
      if (borders.back() < length_) borders.push_back(length_);
      const SharedBuffer& item = out.items.emplace_back(pool.take(4 * borders.size()));
      for (size_t k = 0; k < borders.size(); ++k)
        store_le(item->span().subspan(4 * k), static_cast<int32_t>(borders[k]));
      out.shapes.push_back({static_cast<int64_t>(borders.size())});
    }
    return out;
  }

  const int64_t length_;
  const bool keep_end_;
  const std::vector<Packed> packed_;  // the one whose lengths count comes first
  const std::vector<Added> added_;
};

std::vector<Added> added_by_name(std::span<const ColumnSpec> columns) {
  std::vector<Added> out;
  for (const Added added : {kPositions, kLossMask, kBorders})
    if (std::none_of(columns.begin(), columns.end(),
                     [&](const ColumnSpec& c) { return c.name == kNames[added]; }))
      out.push_back(added);
  return out;
}

}  // namespace

std::vector<ColumnSpec> added_columns(const RowPacking& packing,
                                      std::span<const ColumnSpec> columns) {
  const auto length = static_cast<int64_t>(packing.length);
  std::vector<ColumnSpec> out;
  for (const Added added : added_by_name(columns)) {
    ColumnSpec& spec = out.emplace_back();
    spec.name = kNames[added];
    spec.value = {added == kLossMask ? DType::kU8 : DType::kI32,
                  {added == kBorders ? kVaries : length}};
    spec.packing = added == kBorders ? Packing::kList : Packing::kDense;
  }
  return out;
}

Result<std::unique_ptr<BatchStage>> make_row_packing(const RowPacking& packing,
                                                     std::span<const ColumnSpec> columns) {
  std::vector<PackRows::Packed> packed;
  for (const auto& [name, number] : packing.columns) {
    const auto spec = std::find_if(columns.begin(), columns.end(),
                                   [&n = name](const ColumnSpec& c) { return c.name == n; });
    if (spec != columns.end() && !can_be_packed(*spec) && name != packing.column) continue;
    if (spec == columns.end() || !can_be_packed(*spec))
      return invalid(
          fmt::format("field '{}' cannot be packed into rows: numbers with one axis, of any "
                      "length, as a list are wanted",
                      name));
    PackRows::Packed one{.column = static_cast<size_t>(spec - columns.begin()), .name = name};
    HEADRACE_ASSIGN(one.pad, pad_value(number, spec->value.dtype));
    packed.insert(name == packing.column ? packed.begin() : packed.end(), std::move(one));
  }
  if (packed.empty() || packed.front().name != packing.column)
    return internal("the column whose lengths count is not packed");
  return std::unique_ptr<BatchStage>(
      new PackRows(packing.length, packing.keep_end, std::move(packed), added_by_name(columns)));
}

}  // namespace headrace
