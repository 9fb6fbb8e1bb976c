// SPDX-License-Identifier: Apache-2.0
#include "array/stats.h"

#include <algorithm>
#include <thread>

#include "array/array_boxes.h"
#include "array/unpack.h"

namespace headrace {
namespace {

// Plain chunks may be as large as the file: they are taken in pieces of about so much.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
// Between two calls of progress, and what waits to be put together at most.
constexpr uint64_t kWavePieces = 128;
constexpr uint64_t kWaveMoments = uint64_t{1} << 20;

// One segment, cut into pieces.  Immutable, hence thread-safe.
class Pieces {
 public:
  Pieces(const Array& array, const std::vector<std::string>& files, const Store& store,
         std::optional<size_t> per)
      : array_(array), files_(files), store_(store), per_(per), item_(size_of(array.dtype)) {
    piece_ = array.chunk;
    if (array.filters.empty()) cut_plain();
    for (size_t a = 0; a < piece_.size(); ++a)
      in_chunk_.push_back((array.chunk[a] + piece_[a] - 1) / piece_[a]);
    in_one_ = static_cast<uint64_t>(elements_in(in_chunk_));
  }

  uint64_t count() const { return array_.places.size() * in_one_; }
  uint64_t groups() const {
    return per_ ? static_cast<uint64_t>(std::max<int64_t>(1, piece_[*per_])) : 1;
  }

  // The moments of one piece, and the first index of `per` in it.
  Status run(uint64_t number, std::vector<Moments>& out, uint64_t& first) const {
    const uint64_t chunk = number / in_one_;
    const Region region = region_of(chunk, number % in_one_);
    out.clear();
    first = per_ ? static_cast<uint64_t>(region.begin[*per_]) : 0;
    if (elements_in(region.size) == 0) return {};
    thread_local std::vector<std::byte> dense;
    dense.resize(static_cast<size_t>(elements_in(region.size)) * item_);
    const ChunkPlace& place = array_.places[chunk];
    Status status = read(chunk, region, dense);
    if (!status.ok()) {
      if (place.stored != 0 && place.file < files_.size())
        status = status.in_file(files_[place.file]).at(place.offset);
      return status.with("'" + array_.name + "'");
    }
    if (array_.big_endian) swap_bytes(dense, item_);
    add_up(dense, region, out);
    return {};
  }

 private:
  // Slow axes first, down to a piece of the size wanted.
  void cut_plain() {
    const size_t axes = piece_.size();
    for (size_t depth = 0; depth < axes; ++depth) {
      const size_t axis = array_.fortran ? axes - 1 - depth : depth;
      const uint64_t bytes = static_cast<uint64_t>(elements_in(piece_)) * item_;
      if (bytes <= kPieceBytes) return;
      const uint64_t one = bytes / static_cast<uint64_t>(piece_[axis]);
      piece_[axis] = static_cast<int64_t>(std::max<uint64_t>(1, kPieceBytes / one));
    }
  }

  Region region_of(uint64_t chunk, uint64_t piece) const {
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

  Status read(uint64_t chunk, const Region& region, std::vector<std::byte>& dense) const {
    const ChunkPlace& place = array_.places[chunk];
    const Strided to{dense.data(), dense_strides(region.size, item_)};
    if (place.stored == 0) {
      fill_box(fill_of(array_), to, region.size);
      return {};
    }
    const Extents strides = dense_strides(array_.chunk, item_, array_.fortran);
    const Extents begin = chunk_begin(chunk, array_.shape, array_.chunk);
    uint64_t first = 0;
    auto span = static_cast<uint64_t>(item_);
    for (size_t a = 0; a < strides.size(); ++a) {
      first += static_cast<uint64_t>((region.begin[a] - begin[a]) * strides[a]);
      span += static_cast<uint64_t>((region.size[a] - 1) * strides[a]);
    }
    thread_local Buffer stored;
    thread_local Buffer opened;
    if (array_.filters.empty()) {
      HEADRACE_TRY(store_.read_at(files_[place.file], place.offset + first, span, stored));
      copy_box({stored.bytes().data(), strides}, to, region.size, item_);
      return {};
    }
    HEADRACE_TRY(store_.read_at(files_[place.file], place.offset, place.stored, stored));
    const uint64_t whole = static_cast<uint64_t>(elements_in(array_.chunk)) * item_;
    HEADRACE_TRY(undo_filters(array_.filters, place.skipped, stored.bytes(), whole, opened));
    if (opened.bytes().size() < first + span)
      return corrupt("a chunk is shorter than its shape says");
    copy_box({opened.bytes().data() + first, strides}, to, region.size, item_);
    return {};
  }

  void add_up(const std::vector<std::byte>& raw, const Region& region,
              std::vector<Moments>& out) const {
    Bytes values = raw;
    DType dtype = array_.dtype;
    thread_local std::vector<std::byte> unpacked;
    if (array_.packed) {
      dtype = unpacked_dtype(array_.dtype);
      unpacked.resize(raw.size() / item_ * size_of(dtype));
      unpack_numbers(array_, raw, unpacked);
      values = unpacked;
    }
    if (!per_) return out.emplace_back().add(values, dtype);
    const auto groups = static_cast<size_t>(region.size[*per_]);
    out.resize(groups);
    size_t run = size_of(dtype);
    for (size_t a = *per_ + 1; a < region.size.size(); ++a)
      run *= static_cast<size_t>(region.size[a]);
    for (size_t at = 0, g = 0; at < values.size(); at += run, g = (g + 1) % groups)
      out[g].add(values.subspan(at, run), dtype);
  }

  const Array& array_;
  const std::vector<std::string>& files_;
  const Store& store_;
  const std::optional<size_t> per_;
  const size_t item_;
  Extents piece_;
  Extents in_chunk_;  // pieces on each axis
  uint64_t in_one_ = 1;
};

struct Found {
  Status status;
  std::vector<Moments> moments;
  uint64_t first = 0;
};

// Runs pieces [begin, end) on several threads.
void run_wave(const Pieces& pieces, uint64_t begin, uint64_t end, const StatsOptions& options,
              std::vector<Found>& found) {
  found.assign(end - begin, {});
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < found.size(); i = next++) {
      if (options.cancel != nullptr && options.cancel->load())
        found[i].status = cancelled("statistics");
      else
        found[i].status = pieces.run(begin + i, found[i].moments, found[i].first);
    }
  };
  const size_t helpers = std::min<uint64_t>(options.threads, found.size());
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < helpers; ++t) threads.emplace_back(work);
  work();
}

}  // namespace

Result<std::vector<Moments>> array_stats(const ArrayDescription& description, uint32_t number,
                                         const Store& store, const StatsOptions& options) {
  if (number >= description.variables.size()) return internal("no such variable");
  const Variable& variable = description.variables[number];
  if (variable.segments.empty()) return internal("a variable without arrays");
  const size_t axes = variable.segments[0]->shape.size();
  if (options.per && *options.per >= axes) return invalid("there is no such axis to keep apart");
  HEADRACE_TRY(check_field(
      description,
      {.name = variable.name, .variables = {number}, .axes = std::vector<AxisChoice>(axes)}));
  std::vector<Pieces> segments;
  uint64_t total = 0;
  for (const auto& array : variable.segments) {
    segments.emplace_back(*array, description.files, store, options.per);
    total += segments.back().count();
  }
  std::vector<Moments> out(options.per ? 0 : 1);
  std::vector<Found> found;
  uint64_t done = 0;
  uint64_t base = 0;  // of the indexes of `per`
  for (size_t s = 0; s < segments.size(); ++s) {
    const Array& array = *variable.segments[s];
    const uint64_t wave = std::clamp<uint64_t>(kWaveMoments / segments[s].groups(), 1, kWavePieces);
    if (options.per) {
      const auto extent = static_cast<uint64_t>(array.shape[*options.per]);
      if (variable.along == options.per && s > 0) base = out.size();
      out.resize(std::max<size_t>(out.size(), base + extent));
    }
    for (uint64_t at = 0; at < segments[s].count(); at += wave) {
      const uint64_t end = std::min(at + wave, segments[s].count());
      run_wave(segments[s], at, end, options, found);
      for (const Found& f : found) {
        HEADRACE_TRY(f.status);
        for (size_t g = 0; g < f.moments.size(); ++g) out[base + f.first + g].merge(f.moments[g]);
      }
      done += end - at;
      if (options.progress) options.progress(done, total);
    }
  }
  return out;
}

}  // namespace headrace
