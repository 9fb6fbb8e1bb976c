// SPDX-License-Identifier: Apache-2.0
#include "index/stacked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "index/indexed_source.h"
#include "index/manifest.h"
#include "index/part_builder.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Five samples: n = 10 i (missing in 2), x = i / 2 (missing in 2 and 4), t: a text.
std::shared_ptr<const Source> make_table() {
  PartBuilder part({.format = "files", .shard_bytes = 100});
  const uint32_t n = part.field("n", Kind::kInt, Storage::kInline);
  const uint32_t x = part.field("x", Kind::kFloat, Storage::kInline);
  const uint32_t t = part.field("t", Kind::kText, Storage::kInline);
  for (int i = 0; i < 5; ++i) {
    if (i != 2) part.add_int(n, 10 * i);
    if (i != 2 && i != 4) part.add_float(x, i / 2.0);
    part.add_bytes(t, as_bytes("text"));
    part.end_sample("row" + std::to_string(i));
  }
  const PartPointer made = part.finish().value();
  IndexedParts parts{
      .shards = ShardTable("files"), .schema = {}, .store = std::make_shared<MemoryStore>()};
  const std::vector<uint32_t> blocks = block_samples(*made);
  EXPECT_TRUE(
      parts.shards
          .add({.name = "t", .place = "/t", .bytes = 100, .samples = 5, .block_samples = blocks})
          .ok());
  EXPECT_TRUE(merge_schema(made->head().schema, parts.schema).ok());
  parts.parts = {made};
  return std::make_shared<const IndexedSource>(std::move(parts));
}

Status error_of(ColumnStack stack) {
  return stack_columns(make_table(), {std::move(stack)}).status();
}
bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

// The elements of the last field of the schema.
template <typename T>
Result<std::vector<T>> stack_at(const Source& source, uint64_t sample) {
  const auto last = static_cast<uint32_t>(source.schema().size() - 1);
  const uint32_t fields[] = {0, last, 2};
  Request request;
  HEADRACE_TRY(source.needs({.sample = sample, .fields = fields, .want_key = true}, request));
  EXPECT_EQ(request.first_piece.size(), 4u);
  EXPECT_EQ(request.key, source.key(sample));
  const Piece piece = request.pieces[request.first_piece[1]];
  EXPECT_EQ(piece.unit, kInlineUnit);
  std::vector<T> out(piece.length / sizeof(T));
  std::memcpy(out.data(), request.inline_bytes.data() + piece.begin, piece.length);
  return out;
}

TEST(Stacked, columns_stand_side_by_side) {
  const auto source =
      stack_columns(make_table(), {{.name = "v", .columns = {"x", "n", "x"}}}).value();
  const Field& field = source->schema().back();
  EXPECT_EQ(field.kind, Kind::kArray);
  EXPECT_EQ(field.shape, std::vector<int64_t>{3});
  EXPECT_EQ(source->size(), 5u);
  EXPECT_EQ(source->fingerprint(), make_table()->fingerprint());
  EXPECT_EQ(stack_at<float>(*source, 3).value(), (std::vector<float>{1.5F, 30, 1.5F}));
}

TEST(Stacked, what_is_missing_goes_by_the_rule) {
  ColumnStack stack{.name = "v", .columns = {"n", "x"}, .dtype = DType::kF64};
  auto source = stack_columns(make_table(), {stack}).value();
  const Status missing = stack_at<double>(*source, 4).status();
  EXPECT_EQ(missing.code(), Code::kCorrupt);
  EXPECT_TRUE(says(missing, "column 'x' has no value in sample 4 (row4)")) << missing.text();
  stack.missing = Missing::kFill;
  stack.fill = std::nan("");
  source = stack_columns(make_table(), {stack}).value();
  EXPECT_EQ(stack_at<double>(*source, 4).value()[0], 40);
  EXPECT_TRUE(std::isnan(stack_at<double>(*source, 4).value()[1]));
  stack.missing = Missing::kDrop;
  source = stack_columns(make_table(), {stack}).value();
  ASSERT_EQ(source->size(), 3u);
  EXPECT_EQ(source->key(2), "row3");
  EXPECT_NE(source->fingerprint(), make_table()->fingerprint());
  EXPECT_EQ(stack_at<double>(*source, 2).value(), (std::vector<double>{30, 1.5}));
}

TEST(Stacked, integers_hold_numbers_exactly_or_fail) {
  const auto source =
      stack_columns(make_table(), {{.name = "v", .columns = {"x", "n"}, .dtype = DType::kU8}})
          .value();
  EXPECT_EQ(stack_at<uint8_t>(*source, 0).value(), (std::vector<uint8_t>{0, 0}));
  const Status half = stack_at<uint8_t>(*source, 1).status();
  EXPECT_TRUE(says(half, "column 'x' holds 0.5 in sample 1 (row1), which is no u8")) << half.text();
}

TEST(Stacked, what_does_not_fit_is_said) {
  EXPECT_TRUE(says(error_of({.name = "v", .columns = {"n", "t"}}), "'t' holds text"));
  EXPECT_TRUE(says(error_of({.name = "v", .columns = {"z"}}), "no column 'z'"));
  EXPECT_TRUE(says(error_of({.name = "v"}), "no column is named"));
  EXPECT_TRUE(says(error_of({.name = "v", .columns = {"n"}, .dtype = DType::kF16}), "cast"));
  EXPECT_TRUE(says(error_of({.name = "v",
                             .columns = {"n"},
                             .dtype = DType::kI8,
                             .missing = Missing::kFill,
                             .fill = 128}),
                   "no number of type i8"));
}

}  // namespace
}  // namespace headrace
