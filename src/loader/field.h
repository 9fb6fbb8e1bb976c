// SPDX-License-Identifier: Apache-2.0
//
// What a user asks of a field, and what it becomes for a given source.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "index/source.h"
#include "transform/program/program.h"

namespace headrace {

using DecoderPointer = std::shared_ptr<const Decoder>;

struct FieldRequest {
  std::string output;  // the name in the batch
  std::string field;   // the name in the data; unused for the key
  // "image", "boxes", "points", "scalar", "array", "tokens", "text", "bytes", "json", "key"
  std::string what;
  Params options;
  std::vector<Step> steps;
  std::string joint;               // the name of the group it shares draws with; "": none
  bool leads = false;              // the picture whose geometry the group follows
  uint64_t share = 0;              // see FieldSpec
  std::optional<Packing> packing;  // unset: dense where the shape is fixed, list for text and bytes
  std::optional<PadNumber> pad;    // of padded values; unset: 0
  bool many = false;               // any number of values a sample: a list each
  // Python functions: makes a decoder that goes on where this one ends.
  std::function<Result<DecoderPointer>(DecoderPointer)> then;
};

// The number of a field in a schema.  Unknown: lists what there is, and the nearest name.
Result<uint32_t> find_field(const Schema& schema, const std::string& name);

// What `hr.open(source)` without fields gives: media as bytes, scalars and text as such.
std::vector<FieldRequest> fields_as_they_lie(const Schema& schema);

// Lets fields that make pictures of the same stored field share one decode.
void share_pictures(std::vector<FieldRequest>& requests);

// One field of one source, checked as far as that can be before data moves.
struct FieldWork {
  ColumnSpec spec;
  bool is_key = false;
  uint32_t field = 0;  // of the source's schema
  DecoderPointer decoder;
};
Result<FieldWork> make_field(const FieldRequest& request, const Source& source);

}  // namespace headrace
