// SPDX-License-Identifier: Apache-2.0
//
// HDF5's global heap: where values of variable length lie.  An element of such a data set is a
// reference; the value is an object of a collection ("HDF5 File Format Specification", III.E).
//
//   reference   u32 elements | address of the collection | u32 number of the object
//
//   collection  "GCOL" | u8 version 1 | 3 bytes 0 | size of it all | objects …
//   object      u16 number | u16 count of references | u32 0 | size | data, filled up to 8 bytes
//
// Addresses and sizes take as many bytes as the superblock says.  Object 0 is free space, its size
// counts its header too; less than a header at the end is free as well.
#pragma once

#include <cstdint>
#include <functional>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

struct HeapForm {
  uint32_t address_bytes = 8;  // 2, 4 or 8
  uint32_t size_bytes = 8;     // likewise
  uint64_t base = 0;           // addresses count from here: the bytes before are the user's
  uint64_t file_bytes = 0;
};
Status check_heap_form(const HeapForm& form);

// 16 bytes, as there is one for every value while a data set is opened.
struct HeapReference {
  uint64_t address = 0;  // in the file, the base added
  uint32_t elements = 0;
  uint32_t object = 0;

  bool is_null() const { return elements == 0 || address == 0; }
};

inline size_t reference_bytes(const HeapForm& form) {
  return 4 + form.address_bytes + 4;
}
// `stored` holds reference_bytes().  An address that is 0, undefined or overflows gives a null one
// where nothing is meant, and one past every file where something is.
HeapReference parse_reference(Bytes stored, const HeapForm& form);

// Reads `length` bytes at `offset`, which lie within the file.
using HeapRead = std::function<Status(uint64_t offset, uint64_t length, Buffer& into)>;

// Reads collections, in rising order of their addresses best: neighbours come with one read.
// One thread at a time.
class HeapReader {
 public:
  HeapReader(const HeapForm& form, HeapRead read) : form_(form), read_(std::move(read)) {}

  // Calls `visit(object, offset, bytes)` for the objects of the collection at `address` until it
  // returns false.  The collection ends at `limit` at the latest, where the next one begins: so all
  // collections of a file together are walked in steps that its size bounds.
  // kCorrupt, with the offset, for a collection that is none.
  using Visit = std::function<bool(uint32_t object, uint64_t offset, uint64_t bytes)>;
  Status visit_objects(uint64_t address, uint64_t limit, const Visit& visit);

 private:
  Result<Bytes> bytes_at(uint64_t offset, uint64_t length);

  const HeapForm form_;
  const HeapRead read_;
  Buffer window_;
  uint64_t window_begin_ = 0;
};

}  // namespace headrace
