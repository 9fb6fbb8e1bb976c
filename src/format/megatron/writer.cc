// SPDX-License-Identifier: Apache-2.0
//
// Samples as documents of a Megatron pair (MMIDIDX, version 1).  Tokens go to the .bin as they
// come; the .idx is written in the end and appears after it: where an .idx is, its .bin is
// complete.

#include <fmt/format.h>

#include <array>
#include <limits>

#include "format/megatron/index.h"

namespace headrace {
namespace {

constexpr std::string_view kLengths = "lengths";
constexpr std::string_view kModes = "modes";

bool is_array(const Field& field) {
  return (field.kind == Kind::kTokens || field.kind == Kind::kArray) &&
         field.storage == Storage::kExtent && field.dtype.has_value() && field.shape.size() <= 1;
}

bool is_whole(DType dtype) {
  return dtype < DType::kF16;
}

// Of what the reader gives beside tokens.
bool is_beside(const Field& field) {
  if (!is_array(field)) return false;
  if (field.name == kModes) return field.dtype == DType::kI8;
  return field.name == kLengths && (field.dtype == DType::kI32 || field.dtype == DType::kI64);
}

Status refuse(const Field& field, std::string_view why) {
  return unsupported(fmt::format("a Megatron file cannot hold the field '{}' ({}): {}", field.name,
                                 field_text(field), why));
}

// The field that is the tokens, after everything else was refused.
Result<const Field*> tokens_of(const Schema& schema) {
  const Field* tokens = nullptr;
  for (const Field& field : schema) {
    if (is_beside(field)) continue;
    if (!is_array(field) || !is_whole(*field.dtype))
      return refuse(field, "it holds tokens, one list of whole numbers a sample; drop the field");
    if (field.many) return refuse(field, "some sample has several values of it");
    if (megatron_code(*field.dtype) == 0)
      return refuse(field, "there is no number for the type; make it i32, i64 or u16 first");
    if (tokens != nullptr)
      return refuse(field, fmt::format("it holds one field of tokens, and '{}' is one; drop one of "
                                       "them",
                                       tokens->name));
    tokens = &field;
  }
  if (tokens == nullptr)
    return unsupported("a Megatron file holds tokens, and there is no field of them");
  return tokens;
}

// Refilled by the sink only in large stretches.
class Stretch {
 public:
  explicit Stretch(Sink& sink) : sink_(sink) {}
  template <typename T>
  Status add(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_le(MutableBytes(bytes_).subspan(at), value);
    return bytes_.size() < kEnough ? Status() : flush();
  }
  Status flush() {
    HEADRACE_TRY(sink_.append(bytes_));
    bytes_.clear();
    return {};
  }

 private:
  static constexpr size_t kEnough = size_t{256} << 10;
  Sink& sink_;
  std::vector<std::byte> bytes_;
};

class MegatronWriter final : public Writer {
 public:
  MegatronWriter(std::unique_ptr<Sink> index, std::unique_ptr<Sink> bin, const Schema& schema,
                 const Field& tokens)
      : index_(std::move(index)),
        bin_(std::move(bin)),
        tokens_(tokens.name),
        dtype_(*tokens.dtype) {
    for (const Field& field : schema) {
      if (field.name == kLengths) lengths_width_ = size_of(*field.dtype);
      if (field.name == kModes) has_modes_ = true;
    }
  }

  Status append(const Record& record) override {
    if (Status s = document(record); !s.ok()) return s.with(record.key);
    return {};
  }

  Status finish() override {
    HEADRACE_TRY(bin_->close());
    HEADRACE_TRY(put_index());
    return index_->close();
  }

 private:
  Status document(const Record& record) {
    const RecordValue* tokens = nullptr;
    const RecordValue* lengths = nullptr;
    const RecordValue* modes = nullptr;
    for (const RecordValue& value : record.values) {
      const RecordValue*& place = value.field == tokens_    ? tokens
                                  : value.field == kLengths ? lengths
                                                            : modes;
      if (place != nullptr)
        return unsupported(fmt::format("a Megatron file holds one value of '{}'", value.field));
      place = &value;
    }
    if (tokens == nullptr)
      return unsupported(
          fmt::format("the sample has no '{}', which is all that a Megatron file "
                      "holds",
                      tokens_));
    const uint64_t width = size_of(dtype_);
    if (tokens->bytes.size() % width != 0)
      return corrupt(fmt::format("field '{}' has {} bytes, which are no {}", tokens_,
                                 tokens->bytes.size(), dtype_name(dtype_)));
    const uint64_t before = lengths_.size();
    HEADRACE_TRY(cut(tokens->bytes.size() / width, lengths));
    HEADRACE_TRY(take_modes(lengths_.size() - before, modes));
    documents_.push_back(lengths_.size());
    return bin_->append(tokens->bytes);
  }

  // The document's sequences: as `lengths` says, else one.
  Status cut(uint64_t tokens, const RecordValue* lengths) {
    if (lengths == nullptr) return add_length(tokens);
    uint64_t sum = 0;
    for (uint64_t at = 0; at + lengths_width_ <= lengths->bytes.size(); at += lengths_width_) {
      const Bytes bytes = lengths->bytes.subspan(at);
      const auto length = static_cast<uint64_t>(lengths_width_ == 4 ? load_le<int32_t>(bytes)
                                                                    : load_le<int64_t>(bytes));
      if (length > tokens - sum) break;
      sum += length;
      HEADRACE_TRY(add_length(length));
    }
    if (sum == tokens) return {};
    return corrupt(
        fmt::format("the lengths of its sequences do not add up to its {} tokens", tokens));
  }

  Status add_length(uint64_t length) {
    if (length > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
      return unsupported(
          fmt::format("a sequence of {} tokens; an index holds less than 2^31 of them", length));
    lengths_.push_back(static_cast<int32_t>(length));
    return {};
  }

  Status take_modes(uint64_t sequences, const RecordValue* modes) {
    if (!has_modes_) return {};
    if (modes == nullptr || modes->bytes.size() != sequences)
      return corrupt(fmt::format("{} modes for {} sequences",
                                 modes == nullptr ? 0 : modes->bytes.size(), sequences));
    modes_.insert(modes_.end(), modes->bytes.begin(), modes->bytes.end());
    return {};
  }

  Status put_index() {
    HEADRACE_TRY(index_->append(as_bytes(kMmapMagic)));
    Stretch out(*index_);
    HEADRACE_TRY(out.add(kMegatronVersion));
    HEADRACE_TRY(out.add(megatron_code(dtype_)));
    HEADRACE_TRY(out.add(uint64_t{lengths_.size()}));
    HEADRACE_TRY(out.add(uint64_t{documents_.size()}));
    for (const int32_t length : lengths_) HEADRACE_TRY(out.add(length));
    uint64_t begin = 0;
    for (const int32_t length : lengths_) {
      HEADRACE_TRY(out.add(begin));
      begin += static_cast<uint64_t>(length) * size_of(dtype_);
    }
    for (const uint64_t document : documents_) HEADRACE_TRY(out.add(document));
    HEADRACE_TRY(out.flush());
    return index_->append(modes_);
  }

  const std::unique_ptr<Sink> index_, bin_;
  const std::string tokens_;
  const DType dtype_;
  uint64_t lengths_width_ = 4;
  bool has_modes_ = false;
  std::vector<int32_t> lengths_;  // of all sequences: 4 bytes each
  std::vector<uint64_t> documents_{0};
  std::vector<std::byte> modes_;
};

}  // namespace

Status megatron_can_hold(const Schema& schema) {
  return tokens_of(schema).status();
}

Result<std::unique_ptr<Writer>> make_megatron_writer(ShardOutput out) {
  HEADRACE_ASSIGN(const Field* tokens, tokens_of(out.schema));
  if (out.companion == nullptr) return internal("a Megatron file needs its .bin");
  return std::unique_ptr<Writer>(std::make_unique<MegatronWriter>(
      std::move(out.file), std::move(out.companion), out.schema, *tokens));
}

}  // namespace headrace
