// SPDX-License-Identifier: Apache-2.0
//
// The sources of a blend give the same outputs, each from fields of its own.
#pragma once

#include <string>
#include <vector>

#include "loader/loader.h"

namespace headrace {

// What a source is asked for under this name; null: nothing.
const FieldRequest* request_of(const LoaderSource& source, const std::string& output);

// All sources give outputs of the same names; the order may differ.
Status check_names(const std::vector<LoaderSource>& sources);

// Of the sources `first` and `other`: equal types, shapes and packing.
Status check_equal(const std::string& first, const ColumnSpec& a, const std::string& other,
                   const ColumnSpec& b);

}  // namespace headrace
