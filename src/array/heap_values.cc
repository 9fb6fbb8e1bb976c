// SPDX-License-Identifier: Apache-2.0
#include "array/heap_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "array/array_boxes.h"
#include "base/mutex.h"

namespace headrace {
namespace {

constexpr size_t kJobValues = 16 << 10;
constexpr size_t kMostDamaged = 1000;
// Deflate makes at most 1032 bytes of one, a reference has at least 8.
constexpr uint64_t kMostForByte = 129;
constexpr uint64_t kMostForNothing = 1 << 20;

using References = std::vector<HeapReference>;

uint64_t stored_bytes(const Array& array) {
  uint64_t sum = array.literal.size();
  for (const ChunkPlace& place : array.places)
    if (place.stored <= ~uint64_t{0} - sum) sum += place.stored;
  return sum;
}

// How many values there are; refused where the file could not hold them.
Result<uint64_t> count_values(const HeapValues& values) {
  const Array& array = values.references;
  HEADRACE_TRY(check_heap_form(values.form));
  HEADRACE_TRY(check_array(array));
  if (array.dtype != DType::kU8 || array.shape.empty() ||
      array.shape.back() != static_cast<int64_t>(reference_bytes(values.form)) ||
      array.chunk.back() != array.shape.back())
    return internal("references are bytes, and the last axis is one of them");
  const auto count =
      static_cast<uint64_t>(elements_in(std::span(array.shape).first(array.shape.size() - 1)));
  const uint64_t stored = std::min(stored_bytes(array), values.form.file_bytes);
  if (count > kMostForNothing && (count - kMostForNothing) / kMostForByte > stored)
    return corrupt(fmt::format(
        "'{}' says {} values of variable length, and {} bytes are stored of their references: the "
        "file is damaged, or most of them were never written",
        array.name, count, stored));
  if (count > ~uint32_t{0})
    return unsupported(fmt::format("'{}' has {} values of variable length; at most 2^32 are read",
                                   array.name, count));
  return count;
}

// Reads the references of rows of the first axis; jobs write to different parts.  Thread-safe.
class ReferenceReader {
 public:
  ReferenceReader(const HeapValues& values, const std::vector<std::string>& files,
                  const Store& store, References& out)
      : values_(values), array_(values.references), files_(files), store_(store), out_(out) {
    const int64_t rows = array_.shape.size() > 1 ? array_.shape[0] : 1;
    row_values_ = rows == 0 ? 0 : out.size() / static_cast<size_t>(rows);
    // Whole chunks, so that each is read once; of a plain one as much as is worth a job.
    rows_in_job_ = array_.shape.size() > 1 ? array_.chunk[0] : 1;
    if (array_.filters.empty())
      rows_in_job_ = std::min(rows_in_job_,
                              static_cast<int64_t>(kJobValues / std::max<size_t>(1, row_values_)));
    rows_in_job_ = std::max<int64_t>(1, rows_in_job_);
    jobs_ = static_cast<size_t>((rows + rows_in_job_ - 1) / rows_in_job_);
  }

  size_t jobs() const { return out_.empty() ? 0 : jobs_; }

  Status run(size_t job) const {
    Region region{Extents(array_.shape.size(), 0), array_.shape};
    size_t first = 0;
    if (array_.shape.size() > 1) {
      region.begin[0] = static_cast<int64_t>(job) * rows_in_job_;
      region.size[0] = std::min(rows_in_job_, array_.shape[0] - region.begin[0]);
      first = static_cast<size_t>(region.begin[0]) * row_values_;
    }
    std::vector<std::byte> dense(static_cast<size_t>(elements_in(region.size)));
    const Extents strides = dense_strides(region.size, 1);
    Status status;
    visit_region(array_, region, [&](const ArrayBox& box) {
      if (!status.ok()) return;
      if (box.is_missing && array_.literal.empty()) return;  // zeros are null references
      Strided to{dense.data(), strides};
      for (size_t a = 0; a < strides.size(); ++a) to.at += box.to[a] * strides[a];
      status = copy(box, to);
    });
    HEADRACE_TRY(status);
    const size_t item = reference_bytes(values_.form);
    for (size_t i = 0; i * item < dense.size(); ++i)
      out_[first + i] = parse_reference(Bytes(dense).subspan(i * item, item), values_.form);
    return {};
  }

 private:
  Status copy(const ArrayBox& box, const Strided& to) const {
    Buffer stored;
    Buffer decoded;
    Bytes from = array_.literal;
    if (array_.literal.empty()) {
      const std::string& path = files_[box.place->file];
      // Chunk sizes come from the file: nothing is allocated for one that cannot be there.
      if (box.offset > values_.form.file_bytes || box.stored > values_.form.file_bytes - box.offset)
        return corrupt(fmt::format("'{}': a chunk of {} bytes is said to lie here, past the end of "
                                   "the file",
                                   array_.name, box.stored))
            .at(box.offset)
            .in_file(path);
      HEADRACE_TRY(store_.read_at(path, box.offset, box.stored, stored));
      from = stored.bytes();
      if (!array_.filters.empty()) {
        const Status opened = undo_filters(array_.filters, box.place->skipped, stored.bytes(),
                                           chunk_bytes(array_), decoded);
        if (!opened.ok()) return opened.with(array_.name).at(box.offset).in_file(path);
        from = decoded.bytes();
      }
    }
    if (from.size() < box.first_byte || from.size() - box.first_byte < box.span_bytes)
      return corrupt("a chunk is shorter than its shape says").at(box.offset);
    copy_box({from.data() + box.first_byte, box.strides}, to, box.size, 1);
    return {};
  }

  const HeapValues& values_;
  const Array& array_;
  const std::vector<std::string>& files_;
  const Store& store_;
  References& out_;
  size_t row_values_ = 0;
  int64_t rows_in_job_ = 1;
  size_t jobs_ = 1;
};

// Finds the objects of references in the order of their addresses.  Thread-safe: jobs look at
// different collections, and write the extents of different values.
class ObjectFinder {
 public:
  ObjectFinder(const HeapValues& values, const References& references, const std::string& path,
               const Store& store, ValueTable& out)
      : values_(values), references_(references), path_(path), store_(store), out_(out) {
    for (uint32_t i = 0; i < references.size(); ++i)
      if (!references[i].is_null()) order_.push_back(i);
    const auto before = [&references](uint32_t a, uint32_t b) {
      const HeapReference& x = references[a];
      const HeapReference& y = references[b];
      return x.address != y.address ? x.address < y.address : x.object < y.object;
    };
    if (!std::is_sorted(order_.begin(), order_.end(), before))
      std::sort(order_.begin(), order_.end(), before);
  }

  size_t jobs() const { return (order_.size() + kJobValues - 1) / kJobValues; }

  // The collections whose first value stands in the job's part of the order.
  Status run(size_t job) {
    HeapReader reader(values_.form, [this](uint64_t offset, uint64_t length, Buffer& into) {
      return store_.read_at(path_, offset, length, into);
    });
    const size_t end = std::min(order_.size(), (job + 1) * kJobValues);
    size_t at = job * kJobValues;
    while (at > 0 && at < end && address(at) == address(at - 1)) ++at;
    while (at < end) {
      size_t next = at + 1;
      while (next < order_.size() && address(next) == address(at)) ++next;
      const uint64_t limit = next < order_.size() ? address(next) : values_.form.file_bytes;
      HEADRACE_TRY(find(reader, std::span(order_).subspan(at, next - at), limit));
      at = next;
    }
    return {};
  }

 private:
  uint64_t address(size_t at) const { return references_[order_[at]].address; }

  // `wanted` lie in one collection, in the order of their objects.
  Status find(HeapReader& reader, std::span<const uint32_t> wanted, uint64_t limit) {
    const auto object_of = [this](uint32_t value) { return references_[value].object; };
    const uint64_t at = references_[wanted[0]].address;
    size_t left = wanted.size();
    Status short_one;
    const Status status =
        reader.visit_objects(at, limit, [&](uint32_t object, uint64_t offset, uint64_t bytes) {
          for (size_t i = static_cast<size_t>(
                   std::ranges::lower_bound(wanted, object, {}, object_of) - wanted.begin());
               i < wanted.size() && object_of(wanted[i]) == object; ++i) {
            ValueExtent& extent = out_.extents[wanted[i]];
            // An object's number that comes twice: all that want it have the first one.
            if (extent.offset != 0) break;
            const uint64_t value = uint64_t{references_[wanted[i]].elements} * values_.item_bytes;
            extent = value <= bytes ? ValueExtent{offset, value} : ValueExtent{offset, kShort};
            --left;
          }
          return left > 0;
        });
    if (!status.ok() && status.code() != Code::kCorrupt) return status;
    for (const uint32_t value : wanted) HEADRACE_TRY(mark_damaged(value, status));
    return {};
  }

  // Notes what is wrong with a value that was not found.
  Status mark_damaged(uint32_t value, const Status& why) {
    ValueExtent& extent = out_.extents[value];
    const HeapReference& reference = references_[value];
    if (extent.offset != 0 && extent.bytes != kShort) return {};
    Status status = why;
    if (extent.bytes == kShort)
      status = corrupt(fmt::format("global heap: object {} is shorter than its value of {} "
                                   "elements: the file is damaged",
                                   reference.object, reference.elements))
                   .at(extent.offset);
    else if (why.ok())
      status = corrupt(fmt::format("global heap: the collection here has no object {}: the file is "
                                   "damaged, or was written to while it was read",
                                   reference.object))
                   .at(reference.address);
    extent = {};
    status =
        status.with(fmt::format("'{}', value {}", values_.references.name, value)).in_file(path_);
    MutexLock lock(mu_);
    if (out_.damaged.size() >= kMostDamaged)
      return status.with(fmt::format("more than {} values cannot be found", kMostDamaged));
    out_.damaged.emplace(value, std::move(status));
    return {};
  }

  static constexpr uint64_t kShort = ~uint64_t{0};

  const HeapValues& values_;
  const References& references_;
  const std::string& path_;
  const Store& store_;
  ValueTable& out_;
  std::vector<uint32_t> order_;  // values that are not null, by collection and object
  Mutex mu_;                     // of out_.damaged
};

}  // namespace

Result<std::shared_ptr<const ValueTable>> read_heap_values(const HeapValues& values,
                                                           const std::vector<std::string>& files,
                                                           const Store& store, const RunJobs& run) {
  if (values.file >= files.size()) return internal("a heap in a file that is not listed");
  const std::string& path = files[values.file];
  const auto counted = count_values(values);
  if (!counted.ok()) return counted.status().in_file(path);
  References references(counted.value());
  ReferenceReader reader(values, files, store, references);
  HEADRACE_TRY(run(reader.jobs(), [&reader](size_t job) { return reader.run(job); }));
  auto out = std::make_shared<ValueTable>();
  out->file = values.file;
  out->extents.resize(references.size());
  ObjectFinder finder(values, references, path, store, *out);
  HEADRACE_TRY(run(finder.jobs(), [&finder](size_t job) { return finder.run(job); }));
  for (const ValueExtent& extent : out->extents) out->total_bytes += extent.bytes;
  return std::shared_ptr<const ValueTable>(std::move(out));
}

}  // namespace headrace
