// SPDX-License-Identifier: Apache-2.0
//
// FileArray: one array of one file or folder as its metadata describe it, before anybody says
// which samples are made of it.  Openers make them (open_file.h), the index keeps them
// (array_index.h), headrace/arrays/model.py has the same by the same names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "array/tree.h"
#include "array/zarr_listing.h"
#include "index/schema.h"

namespace headrace {

struct FileArray {
  std::shared_ptr<Array> array = std::make_shared<Array>();
  std::vector<std::string> dims;  // one for each axis
  Kind kind = Kind::kArray;       // kText, kBytes
  size_t inner = 0;               // the last axes that are no axes of the data set
  std::vector<std::string> files;
  std::vector<uint64_t> file_bytes;  // of each of `files`, where whoever found them knows it
  Tree attributes = Tree::map();
  std::string why;        // it cannot be read, and that is the reason
  Tree values;            // of variable length: how they are found; null: elements are of one size
  std::string by_python;  // "texts", or why only a library of Python's reads it
  bool is_found = true;   // false: where its chunks lie was not looked for
  std::vector<std::byte> kept;  // all elements as stored, one after the other: of coordinates

  const std::string& name() const { return array->name; }
  const Extents& shape() const { return array->shape; }
};

// Keys and values as headrace/arrays/model.py has them.  What does not fit is kCorrupt.
Result<std::shared_ptr<Array>> array_of(const Tree& d);
Result<FileArray> file_array_of(const Tree& d);
Tree tree_of(const FileArray& stored);

// scale_factor, add_offset, _FillValue, missing_value and _Unsigned of the attributes: how NetCDF
// and those who follow it pack numbers.
void unpack_by(const Tree& attributes, FileArray& out);

// What says how numbers are packed, or how the file is built, is no part of what users see.
bool is_plain_attribute(std::string_view name);

// Finds the values of variable length of an array that lies in `files`, from `first_file` on.
Result<std::shared_ptr<const ValueTable>> find_values(const Tree& values, uint32_t first_file,
                                                      const std::vector<std::string>& files,
                                                      const Store& store, const RunJobs& run);

}  // namespace headrace
