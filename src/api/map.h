// SPDX-License-Identifier: Apache-2.0
//
// A function of the user's as the last step of a field.
#pragma once

#include <functional>
#include <string>

#include "headrace/field.h"
#include "loader/field.h"

namespace hr {

// Throws where the declared type is none.
std::function<headrace::Result<headrace::DecoderPointer>(headrace::DecoderPointer)> call_wrapper(
    const std::string& output, const MapFunction& map);

}  // namespace hr
