// SPDX-License-Identifier: Apache-2.0
//
// What sources around sources hand down: the whole ask, and all outputs of a sample in one pass.
#include <gtest/gtest.h>

#include <cstring>

#include "index/stacked.h"
#include "index/view.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Fields a, b and c, one i32 each, assembled: a of one piece, b of none (its value is -1), c of
// two (their sum).
class Pieced final : public Source {
 public:
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return 10; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    last = ask;
    out.clear();
    for (const uint32_t f : ask.fields) {
      for (uint32_t p = 0; p < kPieces[f]; ++p) out.pieces.push_back({kInlineUnit, 0, 4});
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    return {};
  }
  bool assembles(uint32_t) const override { return true; }
  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    last = ask;
    ++passes;
    for (const AssembleOutput& output : outputs) {
      if (output.pieces.size() != kPieces[output.field]) return internal("pieces of another field");
      int32_t sum = output.pieces.empty() ? -1 : 0;
      for (const PieceBytes& piece : output.pieces) sum += load_le<int32_t>(piece.bytes);
      HEADRACE_ASSIGN(const MutableBytes room, output.value->room(4));
      store_le(room, sum);
    }
    return {};
  }
  const Store& store() const override { return store_; }
  std::string file_path(uint32_t) const override { return {}; }
  std::string key(uint64_t sample) const override { return std::to_string(sample); }

  mutable SampleAsk last;
  mutable int passes = 0;

 private:
  static constexpr uint32_t kPieces[] = {1, 0, 2};
  static Field number(const char* name) {
    return {.name = name, .kind = Kind::kArray, .dtype = DType::kI32};
  }
  const Schema schema_ = {number("a"), number("b"), number("c")};
  const Blocks blocks_{{10}, 40};
  const MemoryStore store_;
};

std::vector<int32_t> numbers(const std::vector<std::byte>& bytes) {
  std::vector<int32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(SampleAskTest, a_view_changes_the_sample_and_nothing_else) {
  const auto base = std::make_shared<Pieced>();
  const auto view = make_view(base, {7, 3}).value();
  const std::vector<uint32_t> fields = {2, 0};
  Request request;
  ASSERT_TRUE(
      view->needs({.sample = 1, .epoch = 5, .fields = fields, .draws = Key(9), .want_key = true},
                  request)
          .ok());
  EXPECT_EQ(base->last.sample, 3u);
  EXPECT_EQ(base->last.epoch, 5u);
  EXPECT_EQ(base->last.draws, Key(9));
  EXPECT_TRUE(base->last.want_key);
  EXPECT_EQ(base->last.fields.size(), 2u);
  ASSERT_TRUE(view->assemble({.sample = 0, .epoch = 6, .draws = Key(1)}, {}).ok());
  EXPECT_EQ(base->last.sample, 7u);
  EXPECT_EQ(base->last.epoch, 6u);
  EXPECT_EQ(base->last.draws, Key(1));
}

TEST(SampleAskTest, stacks_and_plain_fields_are_assembled_in_one_pass) {
  const auto base = std::make_shared<Pieced>();
  const auto stacked =
      stack_columns(base, {{.name = "ba", .columns = {"b", "a"}, .dtype = DType::kI32},
                           {.name = "cbc", .columns = {"c", "b", "c"}, .dtype = DType::kI32}})
          .value();
  const std::vector<uint32_t> fields = {4, 0, 3, 2};
  const SampleAsk ask{.sample = 2, .epoch = 4, .fields = fields, .draws = Key(3)};
  Request request;
  ASSERT_TRUE(stacked->needs(ask, request).ok());
  EXPECT_EQ(base->last.epoch, 4u);
  ASSERT_EQ(request.pieces.size(), 8u);  // 4 + 1 + 1 + 2
  std::vector<int32_t> given = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<PieceBytes> pieces;
  for (const int32_t& n : given) pieces.push_back({std::as_bytes(std::span(&n, 1))});
  std::vector<std::vector<std::byte>> values(fields.size());
  std::vector<KeptRoom> rooms(values.begin(), values.end());
  std::vector<AssembleOutput> outputs;
  for (size_t f = 0; f < fields.size(); ++f)
    outputs.push_back(
        {fields[f],
         std::span(pieces).first(request.first_piece[f + 1]).subspan(request.first_piece[f]),
         &rooms[f]});
  ASSERT_TRUE(stacked->assemble(ask, outputs).ok());
  EXPECT_EQ(base->passes, 1);
  EXPECT_EQ(base->last.epoch, 4u);
  EXPECT_EQ(numbers(values[0]), (std::vector<int32_t>{3, -1, 7}));
  EXPECT_EQ(numbers(values[1]), (std::vector<int32_t>{5}));
  EXPECT_EQ(numbers(values[2]), (std::vector<int32_t>{-1, 6}));
  EXPECT_EQ(numbers(values[3]), (std::vector<int32_t>{15}));
}

}  // namespace
}  // namespace headrace
