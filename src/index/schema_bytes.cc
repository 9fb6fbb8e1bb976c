// SPDX-License-Identifier: Apache-2.0
#include "index/schema_bytes.h"

#include "index/part.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxAxes = 64;  // as NumPy 2 has, and as the formats read

void put_field(ByteVector& out, const Field& field) {
  put_text(out, field.name);
  out.push_back(static_cast<std::byte>(field.kind));
  out.push_back(static_cast<std::byte>(field.storage));
  out.push_back(static_cast<std::byte>(field.many));
  put_varint(out, field.dtype ? static_cast<uint64_t>(*field.dtype) + 1 : 0);
  put_varint(out, field.shape.size());
  for (const int64_t extent : field.shape)
    put_varint(out, static_cast<uint64_t>(extent) + 1);  // kVaries wraps to 0
}

Field take_field(ByteReader& in) {
  Field field{.name = std::string(in.text())};
  const auto kind = in.le<uint8_t>();
  const auto storage = in.le<uint8_t>();
  const auto many = in.le<uint8_t>();
  const uint64_t dtype = in.varint();
  uint64_t axes = in.count();
  if (kind > static_cast<uint8_t>(Kind::kArray) || storage > 1 || many > 1 || dtype > kDTypes ||
      axes > kMaxAxes) {
    in.fail();
    return field;
  }
  field.kind = static_cast<Kind>(kind);
  field.storage = static_cast<Storage>(storage);
  field.many = many != 0;
  if (dtype != 0) field.dtype = static_cast<DType>(dtype - 1);
  for (; axes > 0 && in.ok(); --axes) {
    const auto extent = static_cast<int64_t>(in.varint() - 1);
    if (extent < kVaries) in.fail();
    field.shape.push_back(extent);
  }
  return field;
}

}  // namespace

void put_schema(ByteVector& out, const Schema& schema) {
  put_varint(out, schema.size());
  for (const Field& field : schema) put_field(out, field);
}

Schema take_schema(ByteReader& in) {
  Schema schema;
  uint64_t n = in.count();
  if (n > kMaxFields) in.fail();
  for (; n > 0 && in.ok(); --n) schema.push_back(take_field(in));
  return schema;
}

}  // namespace headrace
