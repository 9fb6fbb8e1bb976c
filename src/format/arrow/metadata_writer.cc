// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/arrow_generated.h"
#include "format/arrow/metadata.h"

namespace headrace {
namespace {

namespace fb = arrow_metadata;
using Builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fb::Int> put_int(Builder& out, DType dtype) {
  const bool is_signed =
      dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  return fb::CreateInt(out, static_cast<int32_t>(size_of(dtype)) * 8, is_signed);
}

fb::Precision precision_of(DType dtype) {
  if (dtype == DType::kF16) return fb::Precision::Half;
  return dtype == DType::kF32 ? fb::Precision::Single : fb::Precision::Double;
}

// Only the types that are written.
flatbuffers::Offset<void> put_type(Builder& out, const ArrowField& field) {
  switch (field.type) {
    case ArrowType::kInt:
      return put_int(out, *field.dtype).Union();
    case ArrowType::kFloat:
      return fb::CreateFloatingPoint(out, precision_of(*field.dtype)).Union();
    case ArrowType::kUtf8:
      return fb::CreateUtf8(out).Union();
    case ArrowType::kList:
      return fb::CreateList(out).Union();
    case ArrowType::kFixedSizeList:
      return fb::CreateFixedSizeList(out, static_cast<int32_t>(field.width)).Union();
    default:
      return fb::CreateBinary(out).Union();
  }
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>> put_metadata(
    Builder& out, const ArrowMetadata& metadata) {
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs;
  for (const auto& [key, value] : metadata)
    pairs.push_back(fb::CreateKeyValue(out, out.CreateString(key), out.CreateString(value)));
  return out.CreateVector(pairs);
}

flatbuffers::Offset<fb::Field> put_field(Builder& out, const ArrowFileSchema& schema,
                                         uint32_t number) {
  const ArrowField& field = schema.fields[number];
  std::vector<flatbuffers::Offset<fb::Field>> children;
  for (const uint32_t child : field.children) children.push_back(put_field(out, schema, child));
  const auto name = out.CreateString(field.name);
  const auto type = put_type(out, field);
  const auto below = out.CreateVector(children);
  const auto metadata = put_metadata(out, field.metadata);
  return fb::CreateField(out, name, field.nullable, static_cast<fb::Type>(field.type), type, 0,
                         below, metadata);
}

flatbuffers::Offset<fb::Schema> put_schema(Builder& out, const ArrowFileSchema& schema) {
  std::vector<flatbuffers::Offset<fb::Field>> columns;
  for (const uint32_t column : schema.columns) columns.push_back(put_field(out, schema, column));
  const auto fields = out.CreateVector(columns);
  const auto metadata = put_metadata(out, schema.metadata);
  return fb::CreateSchema(out, fb::Endianness::Little, fields, metadata);
}

std::vector<std::byte> bytes_of(const Builder& out) {
  const Bytes bytes = std::as_bytes(std::span(out.GetBufferPointer(), out.GetSize()));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> message(Builder& out, fb::Header type, flatbuffers::Offset<void> header,
                               int64_t body_length) {
  out.Finish(fb::CreateMessage(out, fb::Version::V5, type, header, body_length));
  return bytes_of(out);
}

}  // namespace

std::vector<std::byte> arrow_schema_message(const ArrowFileSchema& schema) {
  Builder out;
  const auto header = put_schema(out, schema).Union();
  return message(out, fb::Header::Schema, header, 0);
}

std::vector<std::byte> arrow_batch_message(const ArrowBatch& batch, int64_t body_length) {
  Builder out;
  std::vector<fb::FieldNode> nodes;
  for (const ArrowNode& node : batch.nodes) nodes.emplace_back(node.length, node.nulls);
  std::vector<fb::BufferPlace> places;
  for (const ArrowPlace& place : batch.buffers) places.emplace_back(place.offset, place.length);
  const auto node_vector = out.CreateVectorOfStructs(nodes);
  const auto place_vector = out.CreateVectorOfStructs(places);
  const auto header = fb::CreateRecordBatch(out, batch.rows, node_vector, place_vector).Union();
  return message(out, fb::Header::RecordBatch, header, body_length);
}

std::vector<std::byte> arrow_footer(const ArrowFileSchema& schema,
                                    const std::vector<ArrowBlock>& batches) {
  Builder out;
  std::vector<fb::Block> blocks;
  for (const ArrowBlock& block : batches)
    blocks.emplace_back(block.offset, block.metadata_length, block.body_length);
  const auto described = put_schema(out, schema);
  const auto none = out.CreateVectorOfStructs(std::vector<fb::Block>());
  const auto places = out.CreateVectorOfStructs(blocks);
  out.Finish(fb::CreateFooter(out, fb::Version::V5, described, none, places));
  return bytes_of(out);
}

}  // namespace headrace
