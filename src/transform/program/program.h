// SPDX-License-Identifier: Apache-2.0
//
// From what a user wrote about a field to the decoder that runs for each sample:
//
//   hr.image("jpg").random_resized_crop(224).random_flip()
//
//   FieldSpec{.name = "image", .what = "image", .steps = {{"random_resized_crop", …},
//   {"random_flip"}}}
//
// Everything is checked here, before data moves: names, parameters, order, types, shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "codec/array.h"
#include "codec/decoder.h"
#include "codec/deferred.h"
#include "transform/params.h"

namespace headrace {

struct Step {
  std::string name;
  Params params;
};

// How the values of the field are stored, as far as decoders must know.
enum class Stored : uint8_t { kBytes, kInlineInt, kInlineFloat };

// Whether the bytes are a number written in digits.
enum class Digits : uint8_t { kNone, kWhole, kReal };

// The fields of a group: the first picture leads, the others follow its geometry.
enum class Joint : uint8_t { kNone, kLeads, kFollows };

// What      options                                           result
// "image"   mode="RGB"|"L"|"RGBA"|"P", fast=False, strict=True, u8[3,h,w], as the steps make it;
//           orient=False, max_pixels=178956970, variants=1     u8[variants,3,h,w] for more than one
//           defer=False                                        u8[?]: codec/deferred.h
// "boxes"   format, extra, key, … (boxes.h)                     f32[?,4 + extra]
// "points"  extra, key                                         f32[?,2 + extra]
// "scalar"  dtype="i64" ("f64" over floating point)           one element
// "array"   dtype, shape; steps normalize, cast               as the data hold it, or as asked
// "tokens"  likewise                                          one axis
// "text"    none                                              u8[?], checked to be UTF-8
// "bytes"   none                                              u8[?]
// "json"    none                                              u8[?], checked to be JSON
struct FieldSpec {
  std::string name;  // as the user calls the output; errors name it
  std::string what;
  Params options;
  std::vector<Step> steps;  // of an image or an array
  Stored stored = Stored::kBytes;
  Digits digits = Digits::kNone;
  std::optional<DType> number_type = {};  // of a number: as the data hold it
  std::optional<StoredArray> array = {};  // the values are arrays
  bool one_shape = true;                  // and must all be of one shape
  // The i-th step that moves pixels draws from draws.with(group).with(i); fields of one group
  // share these draws.  By default a hash of the name.
  std::optional<uint64_t> draw_group;
  Joint joint = Joint::kNone;
  uint64_t share = 0;  // not 0: image fields with this number are made from one decode
  std::shared_ptr<LateWork> late = {};  // codec/deferred.h; null: no device follows
};

// Errors read "field 'image', step 2 random_flip: unknown parameter 'prob'; it takes p".
Result<std::unique_ptr<Decoder>> make_decoder(const FieldSpec& spec);

}  // namespace headrace
