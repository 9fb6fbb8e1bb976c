// SPDX-License-Identifier: Apache-2.0
#include "array/pieces.h"

#include <algorithm>

#include "array/unpack.h"

namespace headrace {
namespace {

// Plain chunks may be as large as the file: they are taken in pieces of about so much.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

}  // namespace

ArrayPieces::ArrayPieces(const Array& array, const std::vector<std::string>& files,
                         const Store& store)
    : array_(array), files_(files), store_(store), item_(size_of(array.dtype)) {
  piece_ = array.chunk;
  if (array.filters.empty()) cut_plain();
  for (size_t a = 0; a < piece_.size(); ++a)
    in_chunk_.push_back((array.chunk[a] + piece_[a] - 1) / piece_[a]);
  in_one_ = static_cast<uint64_t>(elements_in(in_chunk_));
}

// Slow axes first, down to a piece of the size wanted.
void ArrayPieces::cut_plain() {
  const size_t axes = piece_.size();
  for (size_t depth = 0; depth < axes; ++depth) {
    const size_t axis = array_.fortran ? axes - 1 - depth : depth;
    const uint64_t bytes = static_cast<uint64_t>(elements_in(piece_)) * item_;
    if (bytes <= kPieceBytes) return;
    const uint64_t one = bytes / static_cast<uint64_t>(piece_[axis]);
    piece_[axis] = static_cast<int64_t>(std::max<uint64_t>(1, kPieceBytes / one));
  }
}

Region ArrayPieces::region_of(uint64_t chunk, uint64_t piece) const {
  Region out{chunk_begin(chunk, array_.shape, array_.chunk), Extents(piece_.size(), 0)};
  for (size_t a = piece_.size(); a-- > 0;) {
    const auto n = static_cast<uint64_t>(in_chunk_[a]);
    const int64_t chunk_end = std::min(out.begin[a] + array_.chunk[a], array_.shape[a]);
    out.begin[a] += static_cast<int64_t>(piece % n) * piece_[a];
    out.size[a] = std::clamp<int64_t>(chunk_end - out.begin[a], 0, piece_[a]);
    piece /= n;
  }
  return out;
}

Status ArrayPieces::read(uint64_t number, Region& region, std::vector<std::byte>& dense) const {
  region = region_of(number / in_one_, number % in_one_);
  dense.resize(static_cast<size_t>(elements_in(region.size)) * item_);
  if (dense.empty()) return {};
  if (const Status s = read_region(region, dense); !s.ok()) return s.with("'" + array_.name + "'");
  if (array_.big_endian) swap_bytes(dense, item_);
  return {};
}

Status ArrayPieces::read_region(const Region& region, std::vector<std::byte>& dense) const {
  const Extents strides = dense_strides(region.size, item_);
  Status status;
  visit_region(array_, region, [&](const ArrayBox& box) {
    if (!status.ok()) return;
    Strided to{dense.data(), strides};
    for (size_t a = 0; a < strides.size(); ++a) to.at += box.to[a] * strides[a];
    status = read_box(box, to);
    if (!status.ok() && box.place->file < files_.size())
      status = status.in_file(files_[box.place->file]).at(box.place->offset);
  });
  return status;
}

Status ArrayPieces::read_box(const ArrayBox& box, const Strided& to) const {
  thread_local Buffer stored;
  thread_local Buffer opened;
  Bytes piece = array_.literal;
  if (box.is_missing && piece.empty()) {
    fill_box(fill_of(array_), to, box.size);
    return {};
  }
  if (!box.is_missing) {
    HEADRACE_TRY(store_.read_at(files_[box.place->file], box.offset, box.stored, stored));
    piece = stored.bytes();
    if (!array_.filters.empty()) {
      HEADRACE_TRY(
          undo_filters(array_.filters, box.place->skipped, piece, chunk_bytes(array_), opened));
      piece = opened.bytes();
    }
  }
  if (piece.size() < box.first_byte + box.span_bytes)
    return corrupt("a chunk is shorter than its shape says");
  copy_box({piece.data() + box.first_byte, box.strides}, to, box.size, item_);
  return {};
}

}  // namespace headrace
