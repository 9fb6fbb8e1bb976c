// SPDX-License-Identifier: Apache-2.0
#include "array/description.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr size_t kNoAxis = ~size_t{0};

const std::vector<Tree>& items_of(const Tree& d, std::string_view name) {
  static const std::vector<Tree> kNone;
  const Tree* found = d.find(name);
  return found == nullptr ? kNone : found->items();
}

// What is known of an array's files.
Status take_sizes(const Tree& array, ArrayDescription& out) {
  if (array.find("file_bytes") == nullptr) return {};
  const std::vector<uint64_t> sizes = array.counts_of("file_bytes");
  const auto first = static_cast<size_t>(array.integer_of("first_file"));
  out.file_bytes.resize(out.files.size(), kWholeFile);
  if (first > out.files.size() || sizes.size() > out.files.size() - first)
    return internal("sizes of files that are not listed");
  std::copy(sizes.begin(), sizes.end(),
            out.file_bytes.begin() + static_cast<std::ptrdiff_t>(first));
  return {};
}

Status take_variable(const Tree& d, const std::vector<std::shared_ptr<Array>>& arrays,
                     ArrayDescription& out) {
  Variable variable{.name = d.text_of("name")};
  variable.dims = d.texts_of("dims");
  for (const int64_t n : d.ints_of("segments")) {
    if (n < 0 || static_cast<size_t>(n) >= arrays.size())
      return internal("a variable of an array that is not listed");
    variable.segments.push_back(arrays[static_cast<size_t>(n)]);
  }
  const auto along = static_cast<size_t>(d.integer_of("along", -1));
  if (along != kNoAxis) variable.along = along;
  out.variables.push_back(std::move(variable));
  return {};
}

ArrayField field_of(const Tree& d) {
  ArrayField out{.name = d.text_of("name")};
  for (const int64_t v : d.ints_of("variables")) out.variables.push_back(static_cast<uint32_t>(v));
  out.from = d.integer_of("from");
  out.count = d.integer_of("count");
  out.step = d.integer_of("step", 1);
  const std::string kind = d.text_of("kind");
  out.kind = kind == "text" ? Kind::kText : kind == "bytes" ? Kind::kBytes : Kind::kArray;
  for (const Tree& axis : items_of(d, "axes")) {  // (indexes, patch, periodic)
    AxisChoice& choice = out.axes.emplace_back();
    if (axis.items().size() != 3) continue;
    for (const Tree& index : axis.items()[0].items()) choice.indexes.push_back(index.integer());
    choice.patch = axis.items()[1].integer();
    choice.periodic = axis.items()[2].is_true();
  }
  return out;
}

std::vector<int64_t> words_of(const Tree& numbers) {
  std::vector<int64_t> out(numbers.elements().size() / sizeof(int64_t));
  if (!out.empty())
    std::memcpy(out.data(), numbers.elements().data(), out.size() * sizeof(int64_t));
  return out;
}

void take_samples(const Tree& d, ArraySamples& out) {
  if (const Tree* starts = d.find("starts");
      starts != nullptr && starts->is_numbers() && starts->shape().size() == 2) {
    const std::vector<int64_t> rows = words_of(*starts);  // (position, corner of the patch)
    const auto columns = static_cast<size_t>(std::max<int64_t>(1, starts->shape()[1]));
    for (size_t i = 0; i < rows.size(); ++i)
      (i % columns == 0 ? out.starts : out.corners).push_back(rows[i]);
  }
  out.end = d.integer_of("end");
  out.stride = d.integer_of("stride", 1);
  out.tiled = d.true_of("tiled");
  if (d.find("names") != nullptr) {
    out.cases = true;
    out.names = d.texts_of("names");
  }
  if (d.find("labels") == nullptr) return;
  if (const Tree* share = d.find("share")) out.share = share->real();
  for (const Tree& classes : items_of(d, "labels")) {
    LabelPlaces& places = out.labels.emplace_back();
    for (const Tree& one : classes.items()) places.classes.push_back(words_of(one));
  }
}

}  // namespace

Result<ArrayDescription> description_of(const Tree& d, const Store& store, const RunJobs& run) {
  ArrayDescription out;
  out.files = d.texts_of("files");
  std::vector<std::shared_ptr<Array>> arrays;
  for (const Tree& a : items_of(d, "arrays")) {
    HEADRACE_ASSIGN(const std::shared_ptr<Array> array, array_of(a));
    HEADRACE_TRY(take_sizes(a, out));
    if (const Tree* values = a.find("values")) {
      HEADRACE_ASSIGN(array->values,
                      find_values(*values, static_cast<uint32_t>(values->integer_of("file")),
                                  out.files, store, run));
    }
    for (const ChunkPlace& place : array->places)
      if (place.stored != 0 && place.file >= out.files.size())
        return internal("a chunk in a file that is not listed");
    arrays.push_back(array);
  }
  for (const Tree& v : items_of(d, "variables")) HEADRACE_TRY(take_variable(v, arrays, out));
  for (const Tree& f : items_of(d, "fields")) out.fields.push_back(field_of(f));
  take_samples(d, out.samples);
  return out;
}

}  // namespace headrace
