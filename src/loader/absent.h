// SPDX-License-Identifier: Apache-2.0
//
// What a sample gets in place of a field that it lacks: the default that the user gave, which the
// field's steps and function then follow as they follow any value; or, of an optional field, zeros.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "batch/pad_value.h"
#include "codec/tensor.h"
#include "engine/absent.h"
#include "transform/program/program.h"

namespace headrace {

struct DefaultArray {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::vector<std::byte> elements;  // little-endian, last axis fastest
};

// As a user gives it: a number; text, bytes or JSON; an array.
using DefaultValue = std::variant<PadNumber, std::string, DefaultArray>;

struct FieldRequest;

// What the field of a source that has none of that name would be: `like` in another source, or as
// its default says.  Makes `spec` one that a decoder can be made of.
Status describe_absent(const FieldRequest& request, const TensorSpec* like, FieldSpec& spec);

// `inner`: the decoder of the values there are; `whole`: with the function that follows it.
Result<std::shared_ptr<const AbsentValue>> make_absent(const FieldRequest& request,
                                                       const FieldSpec& spec,
                                                       const std::shared_ptr<const Decoder>& inner,
                                                       const std::shared_ptr<const Decoder>& whole);

}  // namespace headrace
