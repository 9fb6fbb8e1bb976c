// SPDX-License-Identifier: Apache-2.0
//
// A shard as one pickled dict, protocol 4: `__key__` a list of texts, of each field a list of
// bytes, texts or arrays, or one array of numbers.  pickle.load() needs NumPy for the arrays alone.
//
// Lists are begun first and each sample appends to all of them, so that no more than a sample is
// in memory; only numbers wait for the end.

#include "format/pickle/writer.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/npy.h"
#include "base/utf8.h"
#include "format/typed_values.h"

namespace headrace {
namespace {

// Opcodes, in pieces: what is put on the stack and where it goes.  Things that are wanted again get
// a number, counted up from 0.
class PickleCode {
 public:
  const ByteVector& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

  void op(char code) { bytes_.push_back(static_cast<std::byte>(code)); }
  void op(std::string_view codes) { append(as_bytes(codes)); }
  void append(Bytes data) { bytes_.insert(bytes_.end(), data.begin(), data.end()); }

  uint32_t remember() {
    op("\x94"
       "0");  // and off the stack
    return remembered_++;
  }
  void recall(uint32_t number) {
    op('j');
    put_le(bytes_, number);
  }

  void integer(uint64_t value) {  // below 2^63: a length
    if (value < 256) {
      op('K');
      put_le(bytes_, static_cast<uint8_t>(value));
    } else {
      op("\x8a\x08");
      put_le(bytes_, value);
    }
  }
  void text(std::string_view value) {
    op('\x8d');
    put_le(bytes_, uint64_t{value.size()});
    append(as_bytes(value));
  }
  // The bytes themselves follow.
  void bytes_of(uint64_t size) {
    op('\x8e');
    put_le(bytes_, size);
  }
  void global(std::string_view module, std::string_view name) {
    text(module);
    text(name);
    op('\x93');
  }

 private:
  ByteVector bytes_;
  uint32_t remembered_ = 0;
};

// How the values of a field are written.
struct PickleField {
  Field field;
  std::optional<uint32_t> list = {};  // its number; numbers have none
  DType dtype = DType::kI64;          // of numbers
  ByteVector numbers = {};
  uint64_t count = 0;
};

class PickleWriter final : public Writer {
 public:
  explicit PickleWriter(ShardOutput out) : sink_(std::move(out.file)) {
    code_.op("\x80\x04");
    keys_ = new_list();
    for (Field& field : out.schema) {
      PickleField one{.field = std::move(field)};
      if (is_number(one.field.kind))
        one.dtype = type_of_number(one.field, one.field.kind);
      else
        one.list = new_list();
      fields_.push_back(std::move(one));
    }
  }

  Status append(const Record& record) override {
    Status status = add(record);
    return status.ok() ? status : status.with(std::string(record.key));
  }

  Status finish() override {
    code_.op("}(");
    code_.text(kPickleKeys);
    code_.recall(keys_);
    for (PickleField& field : fields_) {
      code_.text(field.field.name);
      if (field.list) {
        code_.recall(*field.list);
      } else {
        const uint64_t size = field.numbers.size();
        begin_array(npy_descr(field.dtype), {field.count}, size);
        code_.append(field.numbers);
        end_array();
      }
    }
    code_.op("u.");
    HEADRACE_TRY(flush());
    return sink_->close();
  }

 private:
  uint32_t new_list() {
    code_.op(']');
    return code_.remember();
  }

  Status add(const Record& record) {
    if (valid_utf8_prefix(as_bytes(record.key)) != record.key.size())
      return unsupported("the key is no UTF-8, and a pickle holds texts");
    code_.recall(keys_);
    code_.text(record.key);
    code_.op("a0");
    ++samples_;
    for (const RecordValue& value : record.values) {
      const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const PickleField& f) {
        return f.field.name == value.field;
      });
      if (at == fields_.end()) return internal("a field that was not announced");
      if (Status s = add_value(*at, value); !s.ok())
        return s.with(fmt::format("field '{}'", value.field));
    }
    for (const PickleField& field : fields_)
      if (field.count != samples_)
        return unsupported(fmt::format(
            "the sample has {} of field '{}', and the lists of a pickle are equally long: leave it "
            "out with drop=, or pack to tar",
            field.count < samples_ ? "no value" : "several values", field.field.name));
    return flush();
  }

  Status add_value(PickleField& field, const RecordValue& value) {
    ++field.count;
    if (!field.list) return put_number(field.numbers, field.dtype, value);
    code_.recall(*field.list);
    HEADRACE_TRY(put_value(field, value));
    code_.op("a0");
    return {};
  }

  Status put_value(const PickleField& field, const RecordValue& value) {
    if (is_typed_array(field.field)) {
      HEADRACE_ASSIGN(const auto shape, shape_of(field.field, value.bytes.size()));
      return put_array(npy_descr(*field.field.dtype), shape, value.bytes);
    }
    if (value.kind == Kind::kNpy) {
      HEADRACE_ASSIGN(const NpyHeader header, parse_npy(value.bytes, value.bytes.size()));
      if (!header.fortran_order && !header.type.big_endian && header.type.dtype())
        return put_array(header.type.descr, header.shape, value.bytes.subspan(header.data));
    }
    const bool is_text = value.kind == Kind::kText;
    if (is_text && valid_utf8_prefix(value.bytes) != value.bytes.size())
      return unsupported("a text that is no UTF-8");
    if (is_text) {
      code_.text(as_text(value.bytes));
      return {};
    }
    code_.bytes_of(value.bytes.size());
    return put_large(value.bytes);
  }

  Status put_array(const std::string& descr, const std::vector<uint64_t>& shape, Bytes data) {
    begin_array(descr, shape, data.size());
    HEADRACE_TRY(put_large(data));
    end_array();
    return {};
  }

  // As NumPy pickles an array: _reconstruct(ndarray, (0,), b"b"), then its state.
  void begin_array(const std::string& descr, const std::vector<uint64_t>& shape, uint64_t bytes) {
    const uint32_t type = type_of(descr);
    code_.recall(*reconstruct_);
    code_.recall(*array_);
    code_.op(
        std::string_view("K\0\x85"
                         "C\1b\x87R",
                         8));
    code_.op("(K\1(");
    for (const uint64_t n : shape) code_.integer(n);
    code_.op('t');
    code_.recall(type);
    code_.op('\x89');  // not in Fortran's order
    code_.bytes_of(bytes);
  }
  void end_array() { code_.op("tb"); }

  // dtype("f4", False, True), then its state: version, byte order, and what plain types do not
  // have.
  uint32_t type_of(const std::string& descr) {
    if (!array_) {
      code_.global("numpy.core.multiarray", "_reconstruct");
      reconstruct_ = code_.remember();
      code_.global("numpy", "ndarray");
      array_ = code_.remember();
    }
    const auto known = types_.find(descr);
    if (known != types_.end()) return known->second;
    code_.global("numpy", "dtype");
    code_.text(std::string_view(descr).substr(1));
    code_.op("\x89\x88\x87R(K\3");
    code_.text(descr.substr(0, 1));
    code_.op(std::string_view("NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb", 17));
    return types_[descr] = code_.remember();
  }

  // Not copied: what waits is written first.
  Status put_large(Bytes data) {
    HEADRACE_TRY(flush());
    return sink_->append(data);
  }
  Status flush() {
    const Status status = sink_->append(code_.bytes());
    code_.clear();
    return status;
  }

  std::unique_ptr<Sink> sink_;
  PickleCode code_;
  std::vector<PickleField> fields_;
  uint32_t keys_ = 0;
  uint64_t samples_ = 0;
  std::optional<uint32_t> reconstruct_;
  std::optional<uint32_t> array_;
  std::map<std::string, uint32_t> types_;  // NumPy's, by name
};

}  // namespace

Status pickle_can_hold(const Schema& schema) {
  HEADRACE_TRY(numpy_can_hold(schema));
  for (const Field& field : schema) {
    if (field.many)
      return unsupported(fmt::format(
          "field '{}' has several values in a sample, which a pickle's lists do not hold: leave it "
          "out, or pack to another format",
          field.name));
    if (field.name == kPickleKeys)
      return unsupported(
          fmt::format("a field named '{}' is taken for keys: rename it", kPickleKeys));
  }
  return {};
}

Result<std::unique_ptr<Writer>> make_pickle_writer(ShardOutput out) {
  return std::unique_ptr<Writer>(std::make_unique<PickleWriter>(std::move(out)));
}

}  // namespace headrace
