// SPDX-License-Identifier: Apache-2.0
//
// Samples of any shape in one .npz: members `<key>/<field>.npy` for arrays and numbers,
// `<key>/<field>` for everything else, whose bytes np.load() gives as they are.  Their kind
// goes into an extra field of the member.  Stored, with one time stamp for all.

#include "format/npz/writer.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "base/npy.h"
#include "format/npz/names.h"
#include "format/typed_values.h"
#include "format/zip/writer.h"

namespace headrace {
namespace {

class NpzWriter final : public Writer {
 public:
  explicit NpzWriter(ShardOutput out) : zip_(std::move(out.file)) {
    for (Field& field : out.schema) fields_.emplace(field.name, std::move(field));
  }

  Status append(const Record& record) override {
    Status status = add(record);
    return status.ok() ? status : status.with(record.key);
  }
  Status finish() override { return zip_.finish(); }

 private:
  Status add(const Record& record) {
    if (!keys_.emplace(record.key).second)
      return unsupported("the key comes twice; an .npz holds a name once");
    const std::string prefix = std::string(record.key) + '/';
    if (record.values.empty()) return zip_.add(prefix, Kind::kBytes, {});
    size_t number = 0;  // among the values of one field
    for (size_t i = 0; i < record.values.size(); ++i) {
      const RecordValue& value = record.values[i];
      number = i > 0 && record.values[i - 1].field == value.field ? number + 1 : 0;
      if (value.field.empty()) return unsupported("a field without a name");
      std::string name = prefix + npz_field_name(value.field);
      const auto known = fields_.find(std::string(value.field));
      Field field{.name = std::string(value.field), .kind = value.kind};
      if (known != fields_.end()) field = known->second;
      const bool several =
          field.many || number > 0 ||
          (i + 1 < record.values.size() && record.values[i + 1].field == value.field);
      if (several) name += fmt::format("[{}]", number);
      if (Status s = add_value(name, field, value); !s.ok())
        return s.with(fmt::format("field '{}'", value.field));
    }
    return {};
  }

  Status add_value(std::string& name, const Field& field, const RecordValue& value) {
    if (is_number(value.kind)) return add_number(name + ".npy", field, value);
    if (is_typed_array(field)) {
      HEADRACE_ASSIGN(const std::vector<uint64_t> shape, shape_of(field, value.bytes.size()));
      const std::string header = make_npy_header(*field.dtype, shape);
      const std::array<Bytes, 2> parts = {as_bytes(header), value.bytes};
      return zip_.add(name + ".npy", value.kind, parts);
    }
    if (value.kind == Kind::kNpy) {
      HEADRACE_TRY(parse_npy(value.bytes, value.bytes.size()).status());
      name += ".npy";
    }
    return zip_.add(name, value.kind, std::span(&value.bytes, 1));
  }

  Status add_number(const std::string& name, const Field& field, const RecordValue& value) {
    const DType dtype = type_of_number(field, value.kind);
    ByteVector data;
    HEADRACE_TRY(put_number(data, dtype, value));
    const std::string header = make_npy_header(dtype, {});
    const std::array<Bytes, 2> parts = {as_bytes(header), Bytes(data)};
    return zip_.add(name, value.kind, parts);
  }

  ZipWriter zip_;
  std::unordered_map<std::string, Field> fields_;
  std::unordered_set<std::string> keys_;
};

}  // namespace

Result<std::unique_ptr<Writer>> make_npz_writer(ShardOutput out) {
  return std::unique_ptr<Writer>(std::make_unique<NpzWriter>(std::move(out)));
}

}  // namespace headrace
