// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/have.h"
#include "format/arrow/columns.h"
#include "format/arrow/compression.h"
#include "format/arrow/metadata.h"
#include "open/test_data.h"

namespace headrace {
namespace {

const Format& arrow() {
  return *find_format("arrow").value();
}

std::string text_of(Bytes bytes) {
  return std::string(as_text(bytes));
}

template <typename T>
std::string raw(std::initializer_list<T> items) {
  return text_of(std::as_bytes(std::span(items.begin(), items.size())));
}

struct TestValue {
  std::string field;
  std::string bytes;
};

// Rows as lists of values; inline fields hold their 8 bytes.
Result<std::vector<std::byte>> write(const Schema& schema,
                                     const std::vector<std::vector<TestValue>>& rows) {
  std::vector<std::byte> out;
  HEADRACE_ASSIGN(const std::unique_ptr<Writer> writer,
                  arrow().create({.file = memory_sink(out), .schema = schema}));
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<RecordValue> values;
    for (const TestValue& value : rows[r])
      for (const Field& field : schema)
        if (field.name == value.field)
          values.push_back({field.name, field.kind, field.storage, as_bytes(value.bytes)});
    HEADRACE_TRY(writer->append({"key" + std::to_string(r), values}));
  }
  HEADRACE_TRY(writer->finish());
  return out;
}

Result<std::shared_ptr<const Source>> open(std::vector<std::byte> bytes) {
  auto store = std::make_shared<MemoryStore>();
  store->put("shard.arrow", std::move(bytes));
  HEADRACE_ASSIGN(
      Opened opened,
      open_source({"shard.arrow"}, {.store = store, .keep_sidecars = false, .threads = 1}));
  return std::shared_ptr<const Source>(opened.source);
}

const Schema kEverything = {
    {.name = "jpg", .kind = Kind::kJpeg},
    {.name = "odd", .kind = Kind::kPng},
    {.name = "txt", .kind = Kind::kText},
    {.name = "meta", .kind = Kind::kJson},
    {.name = "x", .kind = Kind::kNpy},
    {.name = "label", .kind = Kind::kInt, .storage = Storage::kInline},
    {.name = "small", .kind = Kind::kInt, .storage = Storage::kInline, .dtype = DType::kU8},
    {.name = "score", .kind = Kind::kFloat, .storage = Storage::kInline, .dtype = DType::kF16},
    {.name = "brain", .kind = Kind::kFloat, .storage = Storage::kInline, .dtype = DType::kBF16},
    {.name = "box", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {2, 2}},
    {.name = "halves", .kind = Kind::kArray, .dtype = DType::kBF16, .shape = {2}},
    {.name = "points", .kind = Kind::kArray, .dtype = DType::kI16, .shape = {kVaries, 3}},
    {.name = "rows", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {3, kVaries}},
    {.name = "ids", .kind = Kind::kTokens, .dtype = DType::kU16},
    {.name = "views", .kind = Kind::kJpeg, .many = true},
    {.name = "labels",
     .kind = Kind::kInt,
     .storage = Storage::kInline,
     .dtype = DType::kI32,
     .many = true},
    {.name = "boxes", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {2}, .many = true},
    {.name = "lines", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {kVaries}, .many = true},
};

const std::vector<std::vector<TestValue>> kRows = {
    {{"jpg", "J"},
     {"odd", "P"},
     {"txt", "h\xc3\xa9"},
     {"meta", "{}"},
     {"x", "NUMPY"},
     {"label", raw<int64_t>({-7})},
     {"small", raw<int64_t>({200})},
     {"score", raw<double>({0.5})},
     {"brain", raw<double>({1.5})},
     {"box", raw<float>({1, 2, 3, 4})},
     {"halves", raw<uint16_t>({5, 6})},
     {"points", raw<int16_t>({1, 2, 3, 4, 5, 6})},
     {"rows", "abcdef"},
     {"ids", raw<uint16_t>({9, 8, 7})},
     {"views", "one"},
     {"views", "two"},
     {"labels", raw<int64_t>({3})},
     {"labels", raw<int64_t>({4})},
     {"boxes", raw<float>({1, 2})},
     {"boxes", raw<float>({3, 4})},
     {"lines", raw<float>({1})},
     {"lines", raw<float>({2, 3})}},
    {},
    {{"jpg", ""}, {"points", ""}, {"box", raw<float>({5, 6, 7, 8})}, {"views", "three"}}};

TEST(Arrow, fields_of_every_kind_come_back_as_they_were) {
  const auto source = open(write(kEverything, kRows).value()).value();
  EXPECT_EQ(source->schema(), kEverything);
  for (size_t f = 0; f < kEverything.size(); ++f)
    EXPECT_EQ(source->schema()[f].many, kEverything[f].many) << kEverything[f].name;
  for (size_t r = 0; r < kRows.size(); ++r) {
    std::map<std::string, std::string> wanted;
    for (const TestValue& value : kRows[r]) {
      const auto field = std::find_if(kEverything.begin(), kEverything.end(),
                                      [&](const Field& f) { return f.name == value.field; });
      std::string& text = wanted[value.field];
      if (!text.empty()) text += '|';
      text += field->storage == Storage::kInline
                  ? inline_as_text(field->kind, as_bytes(value.bytes))
                  : value.bytes;
    }
    const TestSample got = read_sample(*source, r).value();
    EXPECT_EQ(got.key, "key" + std::to_string(r));
    EXPECT_EQ(got.fields, wanted) << "row " << r;
  }
}

TEST(Arrow, bodies_and_buffers_begin_at_multiples_of_64) {
  const std::vector<std::byte> file = write(kEverything, kRows).value();
  const Bytes bytes = file;
  const auto length = static_cast<size_t>(load_le<int32_t>(bytes.last(10)));
  std::vector<std::byte> footer_bytes(bytes.end() - 10 - static_cast<std::ptrdiff_t>(length),
                                      bytes.end() - 10);
  ArrowFooter footer;
  ASSERT_TRUE(parse_arrow_footer(footer_bytes, footer).ok());
  ASSERT_EQ(footer.batches.size(), 1u);
  const ArrowBlock& block = footer.batches[0];
  EXPECT_EQ((block.offset + block.metadata_length) % 64, 0);
  std::vector<std::byte> metadata(bytes.begin() + block.offset + 8,
                                  bytes.begin() + block.offset + block.metadata_length);
  ArrowMessage message;
  ASSERT_TRUE(parse_arrow_message(metadata, message).ok());
  for (const ArrowPlace& place : message.batch.buffers) EXPECT_EQ(place.offset % 64, 0);
}

TEST(Arrow, a_batch_is_written_before_it_is_too_large) {
  const Schema schema = {{.name = "x", .kind = Kind::kInt, .storage = Storage::kInline}};
  std::vector<std::vector<TestValue>> rows;
  for (int64_t i = 0; i < 70000; ++i) rows.push_back({{"x", raw<int64_t>({i})}});
  const auto source = open(write(schema, rows).value()).value();
  ASSERT_EQ(source->size(), 70000u);
  EXPECT_EQ(read_sample(*source, 69999).value().fields.at("x"), "69999");
  EXPECT_EQ(read_sample(*source, 65536).value().key, "key65536");
}

TEST(Arrow, what_it_cannot_hold_is_refused_by_name) {
  EXPECT_EQ(arrow().can_hold({{.name = "__key__"}}).code(), Code::kUnsupported);
  EXPECT_EQ(arrow().can_hold({{.name = "a"}, {.name = "a", .kind = Kind::kJpeg}}).code(),
            Code::kUnsupported);
  EXPECT_EQ(arrow().can_hold({{.name = "\xff"}}).code(), Code::kUnsupported);
  EXPECT_TRUE(arrow().can_hold(kEverything).ok());
  const auto refused = [](Field field, std::string bytes) {
    return write({field}, {{{field.name, std::move(bytes)}}}).status();
  };
  EXPECT_EQ(refused({.name = "t", .kind = Kind::kText}, "\xff").code(), Code::kUnsupported);
  EXPECT_EQ(
      refused({.name = "n", .kind = Kind::kInt, .storage = Storage::kInline, .dtype = DType::kI8},
              raw<int64_t>({128}))
          .code(),
      Code::kUnsupported);
  EXPECT_EQ(
      refused({.name = "a", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {3}}, "12345678")
          .code(),
      Code::kCorrupt);
}

TEST(Arrow, every_flipped_bit_is_an_error_or_samples_within_the_file) {
  std::vector<std::byte> file = write(kEverything, kRows).value();
  for (size_t i = 0; i < file.size(); ++i) {
    file[i] ^= std::byte{1} << (i % 8);
    if (const auto source = open(file); source.ok()) (void)read_samples(*source.value()).ok();
    file[i] ^= std::byte{1} << (i % 8);
  }
}

#if HEADRACE_HAVE_LZ4 && HEADRACE_HAVE_ZSTD
// A stream of one column of lists of no items (pyarrow 26's fixed_size_list(int32, 0)), three rows.
std::string lists_of_nothing() {
  constexpr std::string_view kHex =
      "ffffffffa80000001000000000000a000c000600050008000a000000000104000c0000000800080000000400"
      "08000000040000000100000004000000d4ffffff00000110140000001c000000040000000100000024000000"
      "01000000780000000400040004000000100014000800060007000c0000001000100000000000010210000000"
      "200000000400000000000000040000006974656d0000000008000c0008000700080000000000000120000000"
      "ffffffffa0000000140000000000000000000a000e000600050008000a000000000304001000000000000a00"
      "18000c00040008000a0000004c00000010000000030000000000000000000000030000000000000000000000"
      "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "020000000300000000000000000000000000000000000000000000000000000000000000ffffffff00000000";
  std::string out;
  for (size_t i = 0; i < kHex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(kHex.substr(i, 2)), nullptr, 16));
  return out;
}

TEST(Arrow, rows_without_bytes_are_not_counted_for_ever) {
  std::string bytes = lists_of_nothing();
  const auto index = [&bytes] {
    MemoryStore store;
    store.put("a.arrow", bytes);
    return find_format("arrow").value()->index({store, store.stat("a.arrow").value()});
  };
  ASSERT_TRUE(index().ok()) << index().status().text();
  EXPECT_EQ(index().value()->head().samples, 3u);
  // The counts of the batch and of its column.
  for (const size_t at : {size_t{240}, size_t{312}})
    store_le(std::as_writable_bytes(std::span(bytes)).subspan(at), uint64_t{1} << 40);
  EXPECT_NE(index().status().text().find("1099511627776 rows"), std::string::npos)
      << index().status().text();
}

TEST(ArrowCompression, opens_to_the_declared_length_or_not_at_all) {
  // 1000 times 'a', as pyarrow.compress has it.
  const std::string text(1000, 'a');
  const std::string lz4 = raw<uint8_t>({0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 0x0e, 0x00, 0x00,
                                        0x00, 0x1f, 0x61, 0x01, 0x00, 0xff, 0xff, 0xff, 0xd2, 0x50,
                                        0x61, 0x61, 0x61, 0x61, 0x61, 0x00, 0x00, 0x00, 0x00});
  const std::string zstd = raw<uint8_t>({0x28, 0xb5, 0x2f, 0xfd, 0x60, 0xe8, 0x02, 0x4d, 0x00, 0x00,
                                         0x10, 0x61, 0x61, 0x01, 0x00, 0xe3, 0x2b, 0x80, 0x05});
  Buffer out;
  for (const auto& [how, stored] :
       {std::pair(ArrowCompression::kLz4Frame, lz4), std::pair(ArrowCompression::kZstd, zstd)}) {
    ASSERT_TRUE(open_arrow_buffer(how, as_bytes(stored), text.size(), out).ok());
    EXPECT_EQ(as_text(out.bytes()), text);
    for (const uint64_t wrong :
         {uint64_t{0}, uint64_t{1}, uint64_t{999}, uint64_t{1001}, ~uint64_t{0}})
      EXPECT_EQ(open_arrow_buffer(how, as_bytes(stored), wrong, out).code(), Code::kCorrupt);
    for (size_t n = 0; n < stored.size(); ++n)
      EXPECT_FALSE(open_arrow_buffer(how, as_bytes(stored).first(n), text.size(), out).ok()) << n;
  }
}

#endif

TEST(ArrowShape, is_read_as_it_is_written) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {3}, {kVaries, 3}, {2, kVaries, 5}})
    EXPECT_EQ(parse_arrow_shape(arrow_shape_text(shape)), shape);
  EXPECT_FALSE(parse_arrow_shape("3,x"));
  EXPECT_FALSE(parse_arrow_shape("-3"));
}

}  // namespace
}  // namespace headrace
