// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the columns of an Arrow schema: leaves, each of which is a field.
//
//   column            leaf
//   binary, string    kBlob      one extent a value; views too
//   fixed_binary      kFixed     one extent a value, found by its number
//   fixed_list        kFixed     of numbers, nested or not: an array of fixed shape
//   list              kVarying   of numbers, or of fixed_lists of them: an array [?, …]
//   number, bool      kNumber    in the index; dates and times as the integers they are
//   struct            its children, as `name.child`; {bytes, path} is `name` and `name.path`
//   list of others    its items, several values of the field
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/arrow/metadata.h"
#include "index/schema.h"

namespace headrace {

inline constexpr std::string_view kArrowKey = "__key__";
inline constexpr std::string_view kArrowKindMeta = "headrace.kind";
inline constexpr std::string_view kArrowDTypeMeta = "headrace.dtype";
inline constexpr std::string_view kArrowShapeMeta = "headrace.shape";
inline constexpr std::string_view kArrowManyMeta = "headrace.many";
inline constexpr std::string_view kArrowExtensionName = "ARROW:extension:name";
inline constexpr std::string_view kArrowExtensionData = "ARROW:extension:metadata";
inline constexpr std::string_view kArrowTensor = "arrow.fixed_shape_tensor";

enum class ArrowForm : uint8_t { kBlob, kFixed, kVarying, kNumber };

// Numbers of fields are those of the ArrowFileSchema.
struct ArrowLeaf {
  uint32_t node = 0;
  ArrowForm form = ArrowForm::kBlob;
  Field field = {};
  bool is_key = false;
  std::vector<uint32_t> above = {};   // a null of one of these structs is a null of the value
  std::optional<uint32_t> list = {};  // of which the values are items
  std::vector<uint32_t> within = {};  // structs between the list and the node
  uint32_t numbers = 0;               // of an array: where the elements are
  uint64_t stride = 0;                // bytes of a kFixed, of each item of a kVarying
};

struct ArrowColumns {
  std::vector<ArrowLeaf> leaves = {};
  std::vector<std::string> notices = {};
};

// Columns that nothing becomes of are said in the notices.
ArrowColumns plan_arrow_columns(const ArrowFileSchema& schema);

// The values of a dictionary: the field as the root of a schema of its own, no dictionary any
// more.  Empty where the values are no plain ones; such a column is no leaf either.
std::optional<ArrowLeaf> plan_arrow_dictionary(const ArrowFileSchema& schema, uint32_t field,
                                               ArrowFileSchema& values);

std::string arrow_shape_text(const std::vector<int64_t>& shape);  // "?,3"
std::optional<std::vector<int64_t>> parse_arrow_shape(std::string_view text);

}  // namespace headrace
