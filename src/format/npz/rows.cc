// SPDX-License-Identifier: Apache-2.0
//
// Arrays of one length, row by row.  Numbers and texts of one axis go into the index; other
// rows are read where they lie, or are pieces of a member that opens as a whole.

#include <fmt/format.h>

#include "format/npz/samples.h"

namespace headrace {
namespace {

bool is_row_text(const NpyHeader& header) {
  return header.type.is_text() && header.shape.size() == 1 &&
         !(header.type.kind == 'U' && header.type.big_endian);
}

// One member on its way to n samples.  One thread at a time.
class Column {
 public:
  Status open(NpzFile& npz, const NpzMember& member, uint32_t file, PartBuilder& part) {
    header_ = *member.header;
    field_ = {.name = member.name};
    const std::optional<DType> dtype = header_.type.dtype();
    if (header_.shape.size() == 1) {
      HEADRACE_TRY(npz.array(member, contents_, data_));
      if (is_row_text(header_)) {
        mode_ = Mode::kText;
        field_.kind = header_.type.kind == 'U' ? Kind::kText : Kind::kBytes;
        field_.storage = Storage::kInline;
      } else if (all_numbers(*dtype)) {
        mode_ = Mode::kNumber;
        field_.kind = *dtype >= DType::kF16 ? Kind::kFloat : Kind::kInt;
        field_.storage = Storage::kInline;
        field_.dtype = dtype;
      }
    }
    if (mode_ == Mode::kExtent) {
      field_.kind = Kind::kArray;
      field_.dtype = dtype;
      for (size_t a = 1; a < header_.shape.size(); ++a)
        field_.shape.push_back(static_cast<int64_t>(header_.shape[a]));
      set_unit(member, file);
      contents_ = {};
    }
    number_ = part.field(field_);
    return {};
  }

  Status add(uint64_t row, PartBuilder& part) {
    const uint64_t bytes = header_.row_bytes();
    if (mode_ == Mode::kText) {
      HEADRACE_ASSIGN(const std::string text,
                      npy_text(data_.subspan(row * bytes, bytes), header_.type.kind));
      part.add_bytes(number_, as_bytes(text));
    } else if (mode_ == Mode::kNumber) {
      const NpzNumber value = *number_at(data_, *field_.dtype, row);
      if (value.is_float)
        part.add_float(number_, value.number);
      else
        part.add_int(number_, value.integer);
    } else {
      PartValue value = unit_;
      if (value.encoding == 0) {
        value.offset += header_.data + row * bytes;
        value.stored = bytes;
      } else {
        value.begin = header_.data + row * bytes;
        value.length = bytes;
      }
      part.add_extent(number_, value);
    }
    return {};
  }

 private:
  enum class Mode { kExtent, kNumber, kText };

  bool all_numbers(DType dtype) const {
    if (dtype != DType::kU64) return true;
    for (uint64_t i = 0; i < header_.items; ++i)
      if (!number_at(data_, dtype, i)) return false;
    return true;
  }

  void set_unit(const NpzMember& member, uint32_t file) {
    unit_ = npz_unit(member.zip, file);
    const bool convert = (header_.type.big_endian && header_.type.item_bytes > 1) ||
                         (header_.fortran_order && header_.shape.size() > 1);
    if (!convert) return;
    unit_.encoding = unit_.encoding == kNpzInflate ? kNpzInflateConvert : kNpzConvert;
    unit_.decoded = member.zip.size;
  }

  Mode mode_ = Mode::kExtent;
  NpyHeader header_;
  Field field_;
  uint32_t number_ = 0;
  PartValue unit_;
  Buffer contents_;
  Bytes data_;  // of numbers and texts: all of them
};

}  // namespace

bool has_readable_rows(const NpyHeader& header) {
  return header.type.dtype().has_value() || is_row_text(header);
}

Status can_be_rows(const std::vector<NpzMember>& members) {
  if (members.empty()) return invalid("there is no array");
  const auto refuse = [](const NpzMember& member, std::string_view why) {
    return invalid(fmt::format("'{}' {}", member.name, why));
  };
  NameSet names;
  for (const NpzMember& member : members) {
    if (!member.is_array) return refuse(member, "is no array");
    if (!names.insert(member.name).second) return refuse(member, "is there twice");
    const NpyHeader& header = *member.header;
    if (header.shape.empty()) return refuse(member, "is a single value");
    const uint64_t rows = members.front().header->shape[0];
    if (header.shape[0] != rows)
      return refuse(member, fmt::format("has {} rows, '{}' has {}", header.shape[0],
                                        members.front().name, rows));
    if (rows == 0 || header.row_bytes() == 0)
      return refuse(member, "is an array without an element");
    if (!has_readable_rows(header))
      return refuse(member,
                    fmt::format("is an array of '{}', rows of which are not read; save it as "
                                "numbers",
                                header.type.descr));
  }
  return {};
}

Status add_npz_rows(NpzFile& npz, uint32_t file, std::string_view prefix, PartBuilder& part) {
  std::vector<Column> columns(npz.members().size());
  for (size_t c = 0; c < columns.size(); ++c)
    HEADRACE_TRY(columns[c].open(npz, npz.members()[c], file, part));
  const uint64_t rows = npz.members().front().header->shape[0];
  for (uint64_t row = 0; row < rows; ++row) {
    for (Column& column : columns) HEADRACE_TRY(column.add(row, part));
    part.end_sample(fmt::format("{}{:08}", prefix, row));
  }
  return {};
}

}  // namespace headrace
