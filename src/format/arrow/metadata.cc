// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/arrow/arrow_generated.h"

namespace headrace {
namespace {

namespace fb = arrow_metadata;

constexpr flatbuffers::uoffset_t kMaxDepth = 64;  // of fields within fields

constexpr std::array<std::string_view, 27> kTypeNames = {"none",
                                                         "null",
                                                         "int",
                                                         "float",
                                                         "binary",
                                                         "string",
                                                         "bool",
                                                         "decimal",
                                                         "date",
                                                         "time",
                                                         "timestamp",
                                                         "interval",
                                                         "list",
                                                         "struct",
                                                         "union",
                                                         "fixed_binary",
                                                         "fixed_list",
                                                         "map",
                                                         "duration",
                                                         "large_binary",
                                                         "large_string",
                                                         "large_list",
                                                         "run_end_encoded",
                                                         "binary_view",
                                                         "string_view",
                                                         "list_view",
                                                         "large_list_view"};

template <typename Root>
const Root* verified(Bytes bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  // A table has at least 4 bytes: more of them than that are the same ones again and again.
  options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 4 + 1);
  flatbuffers::Verifier verifier(data, bytes.size(), options);
  return verifier.VerifyBuffer<Root>() ? flatbuffers::GetRoot<Root>(data) : nullptr;
}

std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

std::optional<DType> int_type(const fb::Int& type) {
  const bool is_signed = type.is_signed();
  switch (type.bit_width()) {
    case 8:
      return is_signed ? DType::kI8 : DType::kU8;
    case 16:
      return is_signed ? DType::kI16 : DType::kU16;
    case 32:
      return is_signed ? DType::kI32 : DType::kU32;
    case 64:
      return is_signed ? DType::kI64 : DType::kU64;
    default:
      return {};
  }
}

std::optional<DType> float_type(fb::Precision precision) {
  switch (precision) {
    case fb::Precision::Half:
      return DType::kF16;
    case fb::Precision::Single:
      return DType::kF32;
    case fb::Precision::Double:
      return DType::kF64;
  }
  return {};
}

std::string_view unit_name(fb::TimeUnit unit) {
  if (unit == fb::TimeUnit::Second) return "s";
  if (unit == fb::TimeUnit::Millisecond) return "ms";
  return unit == fb::TimeUnit::Microsecond ? "us" : "ns";
}

// What the type's own table says.
Status take_type(const fb::Field& in, ArrowField& out) {
  if (in.type() == nullptr || in.type_type() == fb::Type::NONE || in.type_type() > fb::Type::MAX)
    return unsupported(
        fmt::format("column '{}' has a type of number {}, which is not known here: write the file "
                    "again without the column",
                    out.name, static_cast<int>(in.type_type())));
  out.type = static_cast<ArrowType>(in.type_type());
  bool is_number = true;
  switch (in.type_type()) {
    case fb::Type::Int:
      out.dtype = int_type(*in.type_as_Int());
      break;
    case fb::Type::FloatingPoint:
      out.dtype = float_type(in.type_as_FloatingPoint()->precision());
      break;
    case fb::Type::Date:
      out.dtype = in.type_as_Date()->unit() == fb::DateUnit::Day ? DType::kI32 : DType::kI64;
      out.unit = out.dtype == DType::kI32 ? "D" : "ms";
      break;
    case fb::Type::Time:
      out.dtype = in.type_as_Time()->bit_width() == 32 ? DType::kI32 : DType::kI64;
      out.unit = unit_name(in.type_as_Time()->unit());
      break;
    case fb::Type::Timestamp:
      out.dtype = DType::kI64;
      out.unit = unit_name(in.type_as_Timestamp()->unit());
      break;
    case fb::Type::Duration:
      out.dtype = DType::kI64;
      out.unit = unit_name(in.type_as_Duration()->unit());
      break;
    default:
      is_number = false;
  }
  // Polars writes integers of 128 bits: they are left out as other types are that no field holds.
  const bool is_wide = in.type_type() == fb::Type::Int && in.type_as_Int()->bit_width() == 128;
  if (is_number && !out.dtype && !is_wide)
    return corrupt(fmt::format("column '{}' has numbers of a width that does not exist", out.name));
  if (const auto* type = in.type_as_FixedSizeBinary()) out.width = type->byte_width();
  if (const auto* type = in.type_as_FixedSizeList()) out.width = type->list_size();
  if (const auto* type = in.type_as_Union()) out.is_dense = type->mode() == fb::UnionMode::Dense;
  if (out.width < 0) return corrupt(fmt::format("column '{}' has a negative width", out.name));
  return {};
}

Status take_dictionary(const fb::Field& in, ArrowField& out) {
  if (in.dictionary() == nullptr) return {};
  out.dictionary = in.dictionary()->id();
  if (const fb::Int* type = in.dictionary()->index_type()) {
    const std::optional<DType> dtype = int_type(*type);
    if (!dtype) return corrupt(fmt::format("column '{}' has no type for its dictionary", out.name));
    out.index_type = *dtype;
  }
  return {};
}

ArrowMetadata take_metadata(const flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>* pairs) {
  ArrowMetadata out;
  if (pairs != nullptr)
    for (const fb::KeyValue* pair : *pairs)
      out.emplace_back(text_of(pair->key()), text_of(pair->value()));
  return out;
}

// Each before its children.  The verifier has bounded depth and number.
Status take_field(const fb::Field& in, ArrowFileSchema& schema, uint32_t& number) {
  number = static_cast<uint32_t>(schema.fields.size());
  ArrowField out;
  out.name = text_of(in.name());
  out.nullable = in.nullable();
  HEADRACE_TRY(take_type(in, out));
  HEADRACE_TRY(take_dictionary(in, out));
  out.metadata = take_metadata(in.custom_metadata());
  schema.fields.push_back(std::move(out));
  std::vector<uint32_t> children;
  if (in.children() != nullptr)
    for (const fb::Field* child : *in.children())
      HEADRACE_TRY(take_field(*child, schema, children.emplace_back()));
  schema.fields[number].children = std::move(children);
  schema.fields[number].end = static_cast<uint32_t>(schema.fields.size());
  return {};
}

// Lists have one item, maps one pair.
Status check_children(const ArrowField& field) {
  size_t wanted = 0;
  switch (field.type) {
    case ArrowType::kStruct:
    case ArrowType::kUnion:
      return {};
    case ArrowType::kList:
    case ArrowType::kLargeList:
    case ArrowType::kListView:
    case ArrowType::kLargeListView:
    case ArrowType::kFixedSizeList:
    case ArrowType::kMap:
      wanted = 1;
      break;
    case ArrowType::kRunEndEncoded:
      wanted = 2;
      break;
    default:
      break;
  }
  if (field.children.size() == wanted) return {};
  return corrupt(fmt::format("column '{}' of type {} has {} children", field.name,
                             arrow_type_name(field.type), field.children.size()));
}

Status take_schema(const fb::Schema& in, ArrowFileSchema& out) {
  out = {};
  if (in.endianness() != fb::Endianness::Little)
    return unsupported("an Arrow file of a big-endian machine: write it again on another one");
  if (in.fields() != nullptr)
    for (const fb::Field* field : *in.fields())
      HEADRACE_TRY(take_field(*field, out, out.columns.emplace_back()));
  for (const ArrowField& field : out.fields) HEADRACE_TRY(check_children(field));
  out.metadata = take_metadata(in.custom_metadata());
  return {};
}

// The elements may lie less aligned than the verifier promises for tables.
template <typename Vector>
Bytes raw(const Vector* vector, size_t size) {
  if (vector == nullptr) return {};
  return std::as_bytes(std::span(vector->Data(), vector->size() * size));
}

Status take_batch(const fb::RecordBatch* in, ArrowBatch& out) {
  if (in == nullptr) return corrupt("a batch without its description");
  out.rows = in->length();
  const Bytes nodes = raw(in->nodes(), sizeof(fb::FieldNode));
  out.nodes.resize(nodes.size() / sizeof(ArrowNode));
  std::copy(nodes.begin(), nodes.end(), std::as_writable_bytes(std::span(out.nodes)).begin());
  const Bytes places = raw(in->buffers(), sizeof(fb::BufferPlace));
  out.buffers.resize(places.size() / sizeof(ArrowPlace));
  std::copy(places.begin(), places.end(), std::as_writable_bytes(std::span(out.buffers)).begin());
  const Bytes counts = raw(in->variadic_buffer_counts(), sizeof(int64_t));
  out.variadic.resize(counts.size() / sizeof(int64_t));
  std::copy(counts.begin(), counts.end(), std::as_writable_bytes(std::span(out.variadic)).begin());
  out.compression = ArrowCompression::kNone;
  if (const fb::BodyCompression* compression = in->compression()) {
    if (compression->codec() > fb::Codec::MAX || compression->method() != fb::Method::Buffer)
      return unsupported(fmt::format("a batch is compressed in a way that is not known here ({})",
                                     static_cast<int>(compression->codec())));
    out.compression = compression->codec() == fb::Codec::Zstd ? ArrowCompression::kZstd
                                                              : ArrowCompression::kLz4Frame;
  }
  return {};
}
static_assert(sizeof(ArrowNode) == sizeof(fb::FieldNode) &&
              sizeof(ArrowPlace) == sizeof(fb::BufferPlace));

Status check_version(fb::Version version) {
  if (version >= fb::Version::V4 && version <= fb::Version::MAX) return {};
  return unsupported(
      fmt::format("Arrow metadata of version {}; 4 and 5 are read: write the file again with "
                  "Arrow 0.8 or newer",
                  static_cast<int>(version) + 1));
}

void take_blocks(const flatbuffers::Vector<const fb::Block*>* in, std::vector<ArrowBlock>& out) {
  const Bytes blocks = raw(in, sizeof(fb::Block));
  for (size_t at = 0; at < blocks.size(); at += sizeof(fb::Block))
    out.push_back({load_le<int64_t>(blocks.subspan(at)), load_le<int32_t>(blocks.subspan(at + 8)),
                   load_le<int64_t>(blocks.subspan(at + 16))});
}
static_assert(sizeof(fb::Block) == 24);

}  // namespace

std::string_view arrow_type_name(ArrowType type) {
  return kTypeNames[std::min(static_cast<size_t>(type), kTypeNames.size() - 1)];
}

std::string_view ArrowField::meta(std::string_view key) const {
  for (const auto& [own, value] : metadata)
    if (own == key) return value;
  return {};
}

Status parse_arrow_message(Bytes metadata, ArrowMessage& out) {
  const auto* message = verified<fb::Message>(metadata);
  if (message == nullptr) return corrupt("the metadata of a message are damaged");
  HEADRACE_TRY(check_version(message->version()));
  out.body_length = message->body_length();
  out.batch.unions_have_nulls = message->version() < fb::Version::V5;
  out.header = ArrowMessage::Header::kOther;
  if (const fb::Schema* schema = message->header_as_Schema()) {
    out.header = ArrowMessage::Header::kSchema;
    return take_schema(*schema, out.schema);
  }
  if (const fb::DictionaryBatch* dictionary = message->header_as_DictionaryBatch()) {
    out.header = ArrowMessage::Header::kDictionary;
    out.dictionary = dictionary->id();
    out.is_delta = dictionary->is_delta();
    return take_batch(dictionary->data(), out.batch);
  }
  if (const fb::RecordBatch* batch = message->header_as_RecordBatch()) {
    out.header = ArrowMessage::Header::kBatch;
    return take_batch(batch, out.batch);
  }
  return {};
}

Status parse_arrow_footer(Bytes bytes, ArrowFooter& out) {
  const auto* footer = verified<fb::Footer>(bytes);
  if (footer == nullptr) return corrupt("the footer is damaged");
  HEADRACE_TRY(check_version(footer->version()));
  if (footer->schema() == nullptr) return corrupt("the footer has no schema");
  HEADRACE_TRY(take_schema(*footer->schema(), out.schema));
  take_blocks(footer->dictionaries(), out.dictionaries);
  take_blocks(footer->record_batches(), out.batches);
  return {};
}

// The message's table is written last, hence lies in front.  Only its own bytes are looked at.
bool begins_arrow_schema(Bytes metadata) {
  if (metadata.size() < 8) return false;
  const uint64_t table = load_le<uint32_t>(metadata);
  if (table % 4 != 0 || table > metadata.size() - 4) return false;
  const int64_t vtable = static_cast<int64_t>(table) - load_le<int32_t>(metadata.subspan(table));
  const auto size = static_cast<int64_t>(metadata.size());
  if (vtable < 4 || vtable % 2 != 0 || vtable > size - 8) return false;
  const auto type_at = load_le<uint16_t>(metadata.subspan(static_cast<uint64_t>(vtable) + 6));
  return load_le<uint16_t>(metadata.subspan(static_cast<uint64_t>(vtable))) >= 8 && type_at >= 4 &&
         type_at < metadata.size() - table &&
         metadata[table + type_at] == static_cast<std::byte>(fb::Header::Schema);
}

}  // namespace headrace
