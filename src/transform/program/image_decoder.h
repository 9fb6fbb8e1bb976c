// SPDX-License-Identifier: Apache-2.0
//
// The decoder of pictures: bytes, through the steps, into the slot.
#pragma once

#include <memory>

#include "codec/decoder.h"
#include "transform/program/program.h"

namespace headrace {

// Errors begin with "step N name: " where a step is at fault.
Result<std::unique_ptr<Decoder>> make_image_decoder(const FieldSpec& spec);

}  // namespace headrace
