// SPDX-License-Identifier: Apache-2.0
//
// The decoder of arrays, tokens and numbers: what a user wrote, checked.
#pragma once

#include <memory>

#include "codec/decoder.h"
#include "transform/program/program.h"

namespace headrace {

// "array": any; "tokens": one axis; "scalar": one element.
Result<std::unique_ptr<Decoder>> make_numbers_decoder(const FieldSpec& spec);

// Whether the values say nothing that the user did not: then no sample need be looked at.
bool chooses_array(const FieldSpec& spec);

}  // namespace headrace
