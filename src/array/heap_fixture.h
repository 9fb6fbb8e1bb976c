// SPDX-License-Identifier: Apache-2.0
//
// For tests: global heaps as HDF5 writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "array/array_fixture.h"
#include "array/global_heap.h"
#include "array/heap_values.h"

namespace headrace {

// One thread at a time.
class HeapWriter {
 public:
  explicit HeapWriter(HeapForm form = {}) : form_(form), file_(form.base + 8) {}

  // A collection of these objects, numbered from 1 on; `free_bytes` at its end.  Its address, as
  // references name it.
  uint64_t add(const std::vector<std::string>& objects, uint64_t free_bytes = 0) {
    while (file_.size() % 8 != 0) file_.push_back({});
    const uint64_t begin = file_.size();
    put_all(file_, as_bytes("GCOL"));
    put_le(file_, 1, 4);
    const size_t size_at = file_.size();
    put_number(0, form_.size_bytes);
    pad();
    for (size_t i = 0; i < objects.size(); ++i) add_object(i + 1, objects[i]);
    if (free_bytes > 0) {
      const size_t at = file_.size();
      add_head(0, free_bytes);
      file_.resize(at + free_bytes);
    }
    patch(size_at, file_.size() - begin, form_.size_bytes);
    return begin - form_.base;
  }

  void refer(uint64_t elements, uint64_t address, uint64_t object) {
    put_le(references_, elements, 4);
    put_le(references_, address, form_.address_bytes);
    put_le(references_, object, 4);
    ++count_;
  }

  void patch(size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) file_[at + i] = static_cast<std::byte>(value >> (8 * i));
  }

  // The file with the references at its end, and what says where they are.
  HeapValues finish(ByteList& file) {
    file = file_;
    HeapValues out;
    Array& array = out.references;
    array.name = "v";
    array.dtype = DType::kU8;
    array.shape = {static_cast<int64_t>(count_), static_cast<int64_t>(reference_bytes(form_))};
    array.chunk = {std::max<int64_t>(1, array.shape[0]), array.shape[1]};
    if (count_ > 0) array.places = {{0, 0, file.size(), references_.size()}};
    put_all(file, references_);
    out.form = form_;
    out.form.file_bytes = file.size();
    return out;
  }

 private:
  void put_number(uint64_t value, size_t bytes) { put_le(file_, value, bytes); }
  void pad() {
    while ((file_.size() - form_.base) % 8 != 0) file_.push_back({});
  }
  void add_head(uint64_t number, uint64_t bytes) {
    put_le(file_, number, 2);
    put_le(file_, 1, 2);
    put_le(file_, 0, 4);
    put_number(bytes, form_.size_bytes);
    pad();
  }
  void add_object(uint64_t number, std::string_view data) {
    add_head(number, data.size());
    put_all(file_, as_bytes(data));
    pad();
  }

  const HeapForm form_;
  ByteList file_;
  ByteList references_;
  uint64_t count_ = 0;
};

inline Status run_in_turn(size_t count, const std::function<Status(size_t)>& job) {
  for (size_t i = 0; i < count; ++i) HEADRACE_TRY(job(i));
  return {};
}

}  // namespace headrace
