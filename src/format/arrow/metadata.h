// SPDX-License-Identifier: Apache-2.0
//
// The metadata of Arrow's IPC format as plain values.  Everything that is read went through
// FlatBuffers' verifier first.  arrow_metadata.cc and arrow_metadata_writer.cc are the only
// places that know FlatBuffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

inline constexpr std::string_view kArrowMagic = "ARROW1";
inline constexpr uint32_t kArrowContinuation = 0xffffffff;

// The numbers are those of the format.
enum class ArrowType : uint8_t {
  kNone,
  kNull,
  kInt,
  kFloat,
  kBinary,
  kUtf8,
  kBool,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kInterval,
  kList,
  kStruct,
  kUnion,
  kFixedSizeBinary,
  kFixedSizeList,
  kMap,
  kDuration,
  kLargeBinary,
  kLargeUtf8,
  kLargeList,
  kRunEndEncoded,
  kBinaryView,
  kUtf8View,
  kListView,
  kLargeListView,
};

std::string_view arrow_type_name(ArrowType type);

using ArrowMetadata = std::vector<std::pair<std::string, std::string>>;

// A column or a child of one.
struct ArrowField {
  std::string name = {};
  ArrowType type = ArrowType::kNull;
  bool nullable = true;
  std::optional<DType> dtype = {};  // of numbers, and of the integers that dates and times are
  std::string_view unit = {};  // of dates and times, as NumPy calls it: "D", "s", "ms", "us", "ns"
  int64_t width = 0;           // bytes of a kFixedSizeBinary, items of a kFixedSizeList
  bool is_dense = false;       // of a kUnion
  // In place of values the batches have numbers of this type, into the dictionary of this id.
  std::optional<int64_t> dictionary = {};
  DType index_type = DType::kI32;
  std::vector<uint32_t> children = {};  // numbers of fields
  uint32_t end = 0;                     // the fields below it are those up to here
  ArrowMetadata metadata = {};

  // Empty where there is no such key.
  std::string_view meta(std::string_view key) const;
};

// All fields, each before its children and these in order: as batches have their nodes.
struct ArrowFileSchema {
  std::vector<ArrowField> fields = {};
  std::vector<uint32_t> columns = {};
  ArrowMetadata metadata = {};
};

struct ArrowNode {
  int64_t length = 0;
  int64_t nulls = 0;
};

struct ArrowPlace {
  int64_t offset = 0;  // in the body
  int64_t length = 0;
};

enum class ArrowCompression : uint8_t { kNone = 0, kLz4Frame = 1, kZstd = 2 };

// Nothing is checked beyond that the metadata are whole: numbers are as the file has them.
struct ArrowBatch {
  int64_t rows = 0;
  std::vector<ArrowNode> nodes = {};
  std::vector<ArrowPlace> buffers = {};
  std::vector<int64_t> variadic = {};  // further buffers of each view column
  ArrowCompression compression = ArrowCompression::kNone;
  bool unions_have_nulls = false;  // before version 5
};

struct ArrowMessage {
  enum class Header : uint8_t { kSchema, kDictionary, kBatch, kOther };
  Header header = Header::kOther;
  int64_t body_length = 0;
  ArrowFileSchema schema = {};
  ArrowBatch batch = {};
  int64_t dictionary = 0;
  bool is_delta = false;
};

// A message of a file, as the footer names it.
struct ArrowBlock {
  int64_t offset = 0;
  int32_t metadata_length = 0;
  int64_t body_length = 0;
};

struct ArrowFooter {
  ArrowFileSchema schema = {};
  std::vector<ArrowBlock> dictionaries = {};
  std::vector<ArrowBlock> batches = {};
};

// `metadata` is aligned to 8.  Refilled: keeps its memory.
Status parse_arrow_message(Bytes metadata, ArrowMessage& out);
Status parse_arrow_footer(Bytes footer, ArrowFooter& out);
// True where these first bytes of metadata can only be a message with a schema.
bool begins_arrow_schema(Bytes metadata);

// Written: the bytes of a FlatBuffer, without a frame.
std::vector<std::byte> arrow_schema_message(const ArrowFileSchema& schema);
std::vector<std::byte> arrow_batch_message(const ArrowBatch& batch, int64_t body_length);
std::vector<std::byte> arrow_footer(const ArrowFileSchema& schema,
                                    const std::vector<ArrowBlock>& batches);

}  // namespace headrace
