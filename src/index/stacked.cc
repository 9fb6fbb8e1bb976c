// SPDX-License-Identifier: Apache-2.0
#include "index/stacked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "index/combined.h"
#include "index/one_number.h"
#include "index/source_wrapper.h"
#include "index/view.h"

namespace headrace {
namespace {

struct Member {
  uint32_t field = 0;          // of the base
  DType stored = DType::kI64;  // a number of the index is int64 or double
  bool is_assembled = false;   // a file of arrays has it: the base makes it of its pieces
};

// Room for one number.
class NumberRoom final : public ValueRoom {
 public:
  Result<MutableBytes> room(size_t bytes) override {
    if (bytes > number_.size()) return internal("a column of another size");
    bytes_ = bytes;
    return MutableBytes(number_).first(bytes);
  }
  Bytes bytes() const { return Bytes(number_).first(bytes_); }

 private:
  std::array<std::byte, 8> number_{};
  size_t bytes_ = 0;
};

// The same samples, hence the base's fingerprint: what is made of them is not part of it.
// Immutable, hence thread-safe.
class Stacked final : public SourceWrapper {
 public:
  Stacked(std::shared_ptr<const Source> base, std::vector<ColumnStack> stacks)
      : SourceWrapper(std::move(base)),
        stacks_(std::move(stacks)),
        schema_(this->base().schema()) {}

  Status prepare() {
    for (const ColumnStack& stack : stacks_)
      if (Status s = add_stack(stack); !s.ok())
        return s.with(fmt::format("field '{}'", stack.name));
    return {};
  }

  const Schema& schema() const override { return schema_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    const size_t below = base().schema().size();
    if (std::all_of(ask.fields.begin(), ask.fields.end(),
                    [below](uint32_t f) { return f < below; }))
      return base().needs(ask, out);
    ScratchRequests scratch(1);  // the base may be one of these too
    std::vector<uint32_t>& wanted = scratch[0].fields;
    Request& found = scratch[0].request;
    for (const uint32_t f : ask.fields) {
      if (f >= schema_.size()) return internal("no such field");
      if (f < below)
        wanted.push_back(f);
      else
        for (const Member& member : members_[f - below]) wanted.push_back(member.field);
    }
    HEADRACE_TRY(base().needs(asking(ask, wanted), found));
    out.clear();
    std::swap(out.units, found.units);
    std::swap(out.inline_bytes, found.inline_bytes);
    std::swap(out.key, found.key);
    size_t at = 0;  // of wanted
    for (const uint32_t f : ask.fields) {
      if (f < below) {
        const std::span<const Piece> pieces = pieces_of(found, at++);
        out.pieces.insert(out.pieces.end(), pieces.begin(), pieces.end());
      } else if (assembles(f)) {
        for (size_t m = 0; m < members_[f - below].size(); ++m) {
          const std::span<const Piece> pieces = pieces_of(found, at++);
          out.pieces.insert(out.pieces.end(), pieces.begin(), pieces.end());
        }
      } else {
        HEADRACE_TRY(add_numbers(ask.sample, f - below, found, at, out));
        at += members_[f - below].size();
      }
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    return {};
  }

  uint64_t row_bytes(uint32_t field) const override {
    return field < base().schema().size() ? base().row_bytes(field) : 0;
  }
  bool assembles(uint32_t field) const override {
    const size_t below = base().schema().size();
    return field < below ? base().assembles(field) : members_[field - below][0].is_assembled;
  }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    const size_t below = base().schema().size();
    if (std::all_of(outputs.begin(), outputs.end(),
                    [below](const AssembleOutput& o) { return o.field < below; }))
      return base().assemble(ask, outputs);
    std::vector<AssembleOutput> wanted;  // of the base
    size_t columns = 0;
    for (const AssembleOutput& o : outputs)
      columns += o.field < below ? 0 : members_[o.field - below].size();
    std::vector<NumberRoom> numbers(columns);  // of the stacks, one after the other
    size_t at = 0;
    for (const AssembleOutput& o : outputs) {
      if (o.field < below) {
        wanted.push_back(o);
        continue;
      }
      HEADRACE_TRY(add_members(ask, o, std::span(numbers).subspan(at), wanted));
      at += members_[o.field - below].size();
    }
    HEADRACE_TRY(base().assemble(ask, wanted));
    at = 0;
    for (const AssembleOutput& o : outputs) {
      if (o.field < below) continue;
      const std::span<const NumberRoom> mine(numbers);
      HEADRACE_TRY(stack_numbers(ask.sample, o.field - below, mine.subspan(at), *o.value));
      at += members_[o.field - below].size();
    }
    return {};
  }

  // The samples that have every column of the stacks that leave the others out.
  Result<std::vector<uint64_t>> complete() const {
    std::vector<uint32_t> wanted;
    for (size_t s = 0; s < stacks_.size(); ++s)
      if (stacks_[s].missing == Missing::kDrop)
        for (const Member& member : members_[s]) wanted.push_back(member.field);
    std::vector<uint64_t> out;
    Request request;
    for (uint64_t sample = 0; sample < size(); ++sample) {
      HEADRACE_TRY(base().needs({.sample = sample, .fields = wanted}, request));
      bool has_all = true;
      for (size_t w = 0; w < wanted.size(); ++w)
        has_all &= !pieces_of(request, w).empty() || base().assembles(wanted[w]);
      if (has_all) out.push_back(sample);
    }
    return out;
  }

 private:
  static SampleAsk asking(SampleAsk ask, std::span<const uint32_t> fields) {
    ask.fields = fields;
    return ask;
  }

  // What the base is to assemble for one stack: a number for each column.
  Status add_members(const SampleAsk& ask, const AssembleOutput& stack,
                     std::span<NumberRoom> numbers, std::vector<AssembleOutput>& wanted) const {
    const std::vector<Member>& members = members_[stack.field - base().schema().size()];
    thread_local std::vector<uint32_t> fields;
    thread_local Request request;
    fields.clear();
    for (const Member& member : members) fields.push_back(member.field);
    // How many of the pieces are each column's: none where its chunk was never written.
    HEADRACE_TRY(base().needs(asking(ask, fields), request));
    if (request.pieces.size() != stack.pieces.size()) return internal("pieces of another sample");
    for (size_t m = 0; m < members.size(); ++m)
      wanted.push_back({members[m].field,
                        stack.pieces.subspan(request.first_piece[m], pieces_of(request, m).size()),
                        &numbers[m]});
    return {};
  }

  Status stack_numbers(uint64_t sample, size_t number, std::span<const NumberRoom> numbers,
                       ValueRoom& value) const {
    const ColumnStack& stack = stacks_[number];
    const std::vector<Member>& members = members_[number];
    const size_t item = size_of(stack.dtype);
    HEADRACE_ASSIGN(const MutableBytes out, value.room(item * members.size()));
    for (size_t m = 0; m < members.size(); ++m) {
      const Bytes one = numbers[m].bytes();
      if (one.size() != size_of(members[m].stored)) return internal("a column of another size");
      if (!convert_number(members[m].stored, one, stack.dtype, out.subspan(m * item, item)))
        return no_such_number(sample, stack, m, number_text(members[m].stored, one));
    }
    return {};
  }

  static std::span<const Piece> pieces_of(const Request& request, size_t field) {
    const uint32_t first = request.first_piece[field];
    return std::span(request.pieces).subspan(first, request.first_piece[field + 1] - first);
  }

  Status add_stack(const ColumnStack& stack) {
    if (stack.columns.empty()) return invalid("no column is named");
    if (stack.dtype == DType::kF16 || stack.dtype == DType::kBF16)
      return invalid(fmt::format("columns become integers, f32 or f64; .cast(\"{}\") follows",
                                 dtype_name(stack.dtype)));
    std::byte element[8];
    if (stack.missing == Missing::kFill && !put_number(stack.dtype, stack.fill, element))
      return invalid(
          fmt::format("missing={} is no number of type {}", stack.fill, dtype_name(stack.dtype)));
    std::vector<Member>& members = members_.emplace_back();
    for (const std::string& column : stack.columns) {
      HEADRACE_ASSIGN(const Member member, find(column));
      members.push_back(member);
      if (member.is_assembled != members[0].is_assembled)
        return invalid("columns of the index and of arrays do not go together");
    }
    schema_.push_back({.name = stack.name,
                       .kind = Kind::kArray,
                       .dtype = stack.dtype,
                       .shape = {static_cast<int64_t>(members.size())}});
    return {};
  }

  Result<Member> find(const std::string& column) const {
    const Schema& fields = base().schema();
    std::string numbers;
    for (size_t f = 0; f < fields.size(); ++f) {
      const Field& field = fields[f];
      const bool is_number = field.storage == Storage::kInline && !field.many &&
                             (field.kind == Kind::kInt || field.kind == Kind::kFloat);
      if (is_number) numbers.append(numbers.empty() ? "'" : ", '").append(field.name).append("'");
      if (field.name != column) continue;
      const auto number = static_cast<uint32_t>(f);
      if (is_number)
        return Member{number, field.kind == Kind::kFloat ? DType::kF64 : DType::kI64, false};
      const bool is_element = field.kind == Kind::kArray && field.shape.empty() && field.dtype &&
                              field.dtype != DType::kF16 && field.dtype != DType::kBF16;
      if (is_element && base().assembles(number)) return Member{number, *field.dtype, true};
      return invalid(fmt::format("column '{}' holds {}{}; columns of numbers are wanted", column,
                                 field.many ? "several values a row of " : "", field_text(field)));
    }
    return invalid(fmt::format("there is no column '{}'; columns of numbers are {}", column,
                               numbers.empty() ? "none" : numbers));
  }

  Status no_such_number(uint64_t sample, const ColumnStack& stack, size_t member,
                        const std::string& number) const {
    return corrupt(fmt::format("column '{}' holds {} in sample {} ({}), which is no {}",
                               stack.columns[member], number, sample, key(sample),
                               dtype_name(stack.dtype)));
  }

  // The elements of one stack; `at` is the first of its columns in `found`, whose bytes are out's.
  Status add_numbers(uint64_t sample, size_t number, const Request& found, size_t at,
                     Request& out) const {
    const ColumnStack& stack = stacks_[number];
    const std::vector<Member>& members = members_[number];
    const size_t item = size_of(stack.dtype);
    const size_t begin = out.inline_bytes.size();
    out.inline_bytes.resize(begin + item * members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      const MutableBytes to = MutableBytes(out.inline_bytes).subspan(begin + m * item, item);
      const std::span<const Piece> pieces = pieces_of(found, at + m);
      const std::string& column = stack.columns[m];
      if (pieces.empty()) {
        if (stack.missing == Missing::kFill && put_number(stack.dtype, stack.fill, to)) continue;
        return corrupt(
            fmt::format("column '{}' has no value in sample {} ({}); say missing=0, "
                        "missing=\"nan\" or missing=\"drop\"",
                        column, sample, key(sample)));
      }
      const Piece& piece = pieces[0];
      if (piece.unit != kInlineUnit || piece.length != 8 || begin < 8 || piece.begin > begin - 8)
        return internal("a number that does not lie in the index");
      const Bytes from = Bytes(out.inline_bytes).subspan(piece.begin, 8);
      const bool fits = convert_number(members[m].stored, from, stack.dtype, to);
      if (!fits) return no_such_number(sample, stack, m, number_text(members[m].stored, from));
    }
    out.pieces.push_back({kInlineUnit, begin, item * members.size()});
    return {};
  }

  const std::vector<ColumnStack> stacks_;
  std::vector<std::vector<Member>> members_;  // of each stack
  Schema schema_;
};

}  // namespace

Result<std::shared_ptr<const Source>> stack_columns(std::shared_ptr<const Source> base,
                                                    std::vector<ColumnStack> stacks) {
  const bool drops = std::any_of(stacks.begin(), stacks.end(),
                                 [](const ColumnStack& s) { return s.missing == Missing::kDrop; });
  const uint64_t all = base->size();
  auto stacked = std::make_shared<Stacked>(std::move(base), std::move(stacks));
  HEADRACE_TRY(stacked->prepare());
  if (!drops) return std::shared_ptr<const Source>(std::move(stacked));
  HEADRACE_ASSIGN(std::vector<uint64_t> samples, stacked->complete());
  if (samples.size() == all) return std::shared_ptr<const Source>(std::move(stacked));
  if (samples.empty()) return invalid("missing=\"drop\" leaves no row");
  return make_view(std::move(stacked), std::move(samples));
}

}  // namespace headrace
