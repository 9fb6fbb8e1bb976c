// SPDX-License-Identifier: Apache-2.0
//
// A data set whose samples an object in Python makes: sample i is what its __getitem__ gives for i,
// asked for by the object's thread (item_thread.h), or by other processes.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>

#include "handles.h"
#include "item_thread.h"

namespace headrace::py {

// Fields as headrace/sources describes them: name, kind, dtype, shape.
Schema schema_of(nanobind::handle fields);
Hash128 fingerprint_of(nanobind::handle words);
// NAME[i], which is what sample i is named, and the i of it.
std::string item_path(std::string_view name, uint64_t number);
uint64_t number_in(std::string_view path);

// As ObjectItems in headrace/sources/parts.py describes it.
std::shared_ptr<const Source> item_source(nanobind::handle description,
                                          std::shared_ptr<ItemThread> thread,
                                          std::shared_ptr<ItemCost> cost);

}  // namespace headrace::py
