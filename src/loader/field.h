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
#include "loader/absent.h"
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
  int64_t pad_multiple = 1;        // see ColumnSpec
  bool pad_left = false;
  bool many = false;  // any number of values a sample: a list each
  // A sample that lacks the field: its default, which the steps follow; zeros, and a column
  // OUTPUT_valid that tells; an empty place in a list.  None of them: bad data.
  std::optional<DefaultValue> otherwise;
  bool optional = false;
  bool is_none_when_absent = false;
  std::shared_ptr<LateWork> late;  // a device follows: see FieldSpec
  // Functions of the user: makes a decoder around the field's, which goes on where that one ends.
  std::function<Result<DecoderPointer>(DecoderPointer)> wrap_decoder;
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
  uint32_t field = 0;  // of the source's schema, or kKeyField, kNoField
  DecoderPointer decoder;
  std::shared_ptr<const AbsentValue> absent;  // null: the field must be there

  bool is_key() const { return field == kKeyField; }
  bool is_stored() const { return field != kKeyField && field != kNoField; }
};
// `like`: what another source gives, for a source that has no such field and need not.
Result<FieldWork> make_field(const FieldRequest& request, const Source& source,
                             const TensorSpec* like = nullptr);
// Whether the data have it, or its key is asked for.
bool has_field(const FieldRequest& request, const Source& source);

}  // namespace headrace
