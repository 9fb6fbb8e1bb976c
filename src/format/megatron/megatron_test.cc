// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "format/megatron/index.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

// Numbers, one after the other.
class Layout {
 public:
  explicit Layout(std::string_view magic) { text(magic); }
  Layout& text(std::string_view text) {
    bytes_.insert(bytes_.end(), as_bytes(text).begin(), as_bytes(text).end());
    return *this;
  }
  template <typename T>
  Layout& put(std::initializer_list<T> values) {
    for (const T value : values) {
      bytes_.resize(bytes_.size() + sizeof value);
      store_le(MutableBytes(bytes_).last(sizeof value), value);
    }
    return *this;
  }
  const ByteVector& bytes() const { return bytes_; }

 private:
  ByteVector bytes_;
};

// Four sequences of u16 (2, 3, 0 and 1 of them) in documents of two, none, one and one.
Layout modern(bool modes = false) {
  Layout out(kMmapMagic);
  out.put<uint64_t>({1}).put<uint8_t>({8}).put<uint64_t>({4, 5});
  out.put<int32_t>({2, 3, 0, 1}).put<int64_t>({0, 4, 10, 10}).put<int64_t>({0, 2, 2, 3, 4});
  if (modes) out.put<int8_t>({0, 1, 0, 2});
  return out;
}

Layout legacy(bool documents) {
  Layout out(kLegacyMagic);
  out.put<uint64_t>({1, 8, 2, 4, 4});
  if (documents) out.put<uint64_t>({5});
  out.put<int64_t>({0, 1, 2, 3, 4}).put<int64_t>({0, 2, 5, 5, 6}).put<int64_t>({2, 3, 0, 1});
  if (documents) out.put<int64_t>({0, 2, 2, 3, 4});
  return out;
}

Result<std::vector<TestSample>> read(const ByteVector& index, std::string bin = "aabbccddeeff",
                                     const std::string& name = "in/x.idx") {
  auto store = std::make_shared<MemoryStore>();
  store->put(name, index);
  if (bin != "none") store->put(name.substr(0, name.size() - 4) + ".bin", bin);
  HEADRACE_ASSIGN(const Opened opened,
                  open_source({name}, {.store = store, .keep_sidecars = false}));
  return read_samples(*opened.source);
}

std::vector<std::string> column(const std::vector<TestSample>& samples, const std::string& field) {
  std::vector<std::string> out;
  for (const TestSample& sample : samples)
    out.push_back(sample.fields.contains(field) ? sample.fields.at(field) : "(none)");
  return out;
}

using Texts = std::vector<std::string>;

TEST(Megatron, a_document_is_a_sample_in_every_form_of_the_index) {
  const Texts want{"aabbccddee", "", "", "ff"};
  EXPECT_EQ(column(read(modern().bytes()).value(), "tokens"), want);
  EXPECT_EQ(column(read(modern(true).bytes()).value(), "tokens"), want);
  EXPECT_EQ(column(read(legacy(true).bytes()).value(), "tokens"), want);
  EXPECT_EQ(read(modern().bytes()).value()[3].key, "x/00000003");
}

TEST(Megatron, without_documents_a_sequence_is_a_sample) {
  const Texts want{"aabb", "ccddee", "", "ff"};
  Layout fairseq(kMmapMagic);
  fairseq.put<uint64_t>({1}).put<uint8_t>({8}).put<uint64_t>({4});
  fairseq.put<int32_t>({2, 3, 0, 1}).put<int64_t>({0, 4, 10, 10});
  EXPECT_EQ(column(read(fairseq.bytes()).value(), "tokens"), want);
  EXPECT_EQ(column(read(legacy(false).bytes()).value(), "tokens"), want);
}

TEST(Megatron, lengths_and_modes_of_the_sequences_are_fields) {
  const std::vector<TestSample> samples = read(modern(true).bytes()).value();
  const auto numbers = [](std::initializer_list<int32_t> values) {
    return std::string(as_text(Layout("").put<int32_t>(values).bytes()));
  };
  EXPECT_EQ(column(samples, "lengths"), (Texts{numbers({2, 3}), "", numbers({0}), numbers({1})}));
  EXPECT_EQ(column(samples, "modes"),
            (Texts{std::string("\0\1", 2), "", std::string(1, '\0'), "\2"}));
  EXPECT_EQ(column(read(legacy(true).bytes()).value(), "lengths")[0].size(), 16u);
}

TEST(Megatron, the_bin_is_found_beside_an_index_without_a_folder) {
  EXPECT_EQ(read(modern().bytes(), "aabbccddeeff", "x.idx").value().size(), 4u);
}

TEST(Megatron, either_file_and_what_their_names_share_mean_the_pair) {
  auto store = std::make_shared<MemoryStore>();
  store->put("in/x.idx", modern().bytes());
  store->put("in/x.bin", "aabbccddeeff");
  for (const std::string url :
       {"in/x.idx", "in/x.bin", "in/x", "in", "in/*", "in/x.*", "in/*.bin"}) {
    const auto opened = open_source({url}, {.store = store, .keep_sidecars = false});
    ASSERT_TRUE(opened.ok()) << url << ": " << opened.status().text();
    EXPECT_EQ(opened.value().source->size(), 4u) << url;
  }
}

void expect_error(const Result<std::vector<TestSample>>& got, std::string_view text) {
  EXPECT_FALSE(got.ok()) << text;
  EXPECT_NE(got.status().text().find(text), std::string::npos) << got.status().text();
}

TEST(Megatron, a_bin_that_is_missing_or_of_another_length_is_an_error_with_numbers) {
  expect_error(read(modern().bytes(), "none"), "x.bin is missing");
  expect_error(read(modern().bytes(), "aabbccddee"), "it has 10 bytes, the index says 12");
  expect_error(read(legacy(true).bytes(), "aabbccddee"), "it has 10 bytes, the index says 12");
  expect_error(read(modern().bytes(), "aabbccddeeff and more"),
               "x.bin has 9 bytes more than the index names, so they are no pair");
}

// The 8 bytes at `at` become `value`.
ByteVector with(ByteVector bytes, size_t at, uint64_t value) {
  store_le(MutableBytes(bytes).subspan(at), value);
  return bytes;
}

TEST(Megatron, an_index_that_does_not_agree_with_itself_is_an_error) {
  const ByteVector good = modern().bytes();
  expect_error(read(with(good, 9, 2)), "version 2 of the index");
  expect_error(read(with(good, 18, 5)), "122 bytes do not fit an index of 5 sequences");
  expect_error(read(with(good, 18, ~uint64_t{0} / 12)), "do not fit an index");
  expect_error(read(with(good, 26, ~uint64_t{0})), "do not fit an index");
  expect_error(read(with(good, 26, 4)), "do not fit an index of 4 sequences and 3 documents");
  constexpr size_t kBegins = 34 + 16;
  constexpr size_t kDocuments = kBegins + 32;
  expect_error(read(with(good, kBegins + 8, 6)),
               "sequence 1 begins at byte 6 of the tokens, and the one before it ends at 4");
  expect_error(read(with(good, kBegins + 8, ~uint64_t{0})), "sequence 1 goes past the 12 bytes");
  expect_error(read(with(good, kBegins + 24, ~uint64_t{0} - 5)), "the last sequence begins at");
  expect_error(read(with(good, 34, 0x00000003fffffffe)), "sequence 0 has the length -2");
  expect_error(read(with(good, kDocuments, 1)), "the first document begins with sequence 1");
  expect_error(read(with(good, kDocuments + 16, 1)), "document 1 goes from sequence 2 to 1");
  expect_error(read(with(good, kDocuments + 32, 3)), "the documents have 3 sequences, the index 4");
  ByteVector type = good;
  type[17] = std::byte{9};
  expect_error(read(type), "no type of tokens has the number 9");
  expect_error(read({good.begin(), good.begin() + 20}), "after 20 bytes");
  expect_error(read(ByteVector(100, std::byte{'x'})), "neither MMIDIDX nor TNTIDX");
}

TEST(Megatron, an_old_index_that_does_not_agree_with_itself_is_an_error) {
  const ByteVector good = legacy(true).bytes();
  expect_error(read(with(good, 8, 7)), "version 7 of the index");
  expect_error(read(with(good, 24, 4)), "elements of 4 bytes that are u16");
  expect_error(read(with(good, 32, uint64_t{1} << 60)), "do not fit an index");
  expect_error(read(with(good, 40, 3)), "only sequences of one dimension are read");
  expect_error(read(with(good, 56 + 8, 2)), "sequence 1 has other than one dimension");
  expect_error(read(with(good, 96 + 8, 3)), "sequence 0 has 2 elements, and goes from 0 to 3");
  expect_error(read(with(good, 96 + 24, ~uint64_t{0})), "the last sequence begins at");
}

Status can_hold(const Field& field) {
  return find_format("megatron").value()->can_hold({field});
}

TEST(MegatronWriter, refuses_by_name_what_it_cannot_hold) {
  EXPECT_TRUE(can_hold({.name = "ids", .kind = Kind::kTokens, .dtype = DType::kU16}).ok());
  EXPECT_TRUE(
      can_hold({.name = "x", .kind = Kind::kArray, .dtype = DType::kI64, .shape = {12}}).ok());
  const auto refused = [](const Field& field, std::string_view why) {
    const Status status = can_hold(field);
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(status.text().find("'x'"), std::string::npos) << status.text();
    EXPECT_NE(status.text().find(why), std::string::npos) << status.text();
  };
  refused({.name = "x", .kind = Kind::kJpeg}, "drop the field");
  refused({.name = "x", .kind = Kind::kInt, .storage = Storage::kInline, .dtype = DType::kI64},
          "drop the field");
  refused({.name = "x", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {kVaries}},
          "whole numbers");
  refused({.name = "x", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {kVaries, 2}},
          "drop the field");
  refused({.name = "x", .kind = Kind::kTokens, .dtype = DType::kU32}, "make it i32");
  refused({.name = "x", .kind = Kind::kTokens, .dtype = DType::kI32, .many = true}, "several");
  const Field one{.name = "a", .kind = Kind::kTokens, .dtype = DType::kI32};
  const Field two{.name = "b", .kind = Kind::kTokens, .dtype = DType::kI32};
  EXPECT_NE(find_format("megatron").value()->can_hold({one, two}).text().find("'a' is one"),
            std::string::npos);
  EXPECT_EQ(find_format("megatron").value()->can_hold({}).code(), Code::kUnsupported);
}

TEST(MegatronWriter, writes_sequences_and_modes_as_they_were_read) {
  ByteVector index, bin;
  const Schema schema{{.name = "tokens", .kind = Kind::kTokens, .dtype = DType::kU16},
                      {.name = "lengths", .kind = Kind::kArray, .dtype = DType::kI32},
                      {.name = "modes", .kind = Kind::kArray, .dtype = DType::kI8}};
  const auto writer =
      find_format("megatron")
          .value()
          ->create({.file = memory_sink(index), .companion = memory_sink(bin), .schema = schema})
          .value();
  for (const TestSample& sample : read(modern(true).bytes()).value()) {
    std::vector<RecordValue> values;
    for (const auto& [name, value] : sample.fields)
      values.push_back({.field = name, .kind = Kind::kArray, .bytes = as_bytes(value)});
    ASSERT_TRUE(writer->append({sample.key, values}).ok());
  }
  const std::string odd = "abc";
  const RecordValue bad{.field = "tokens", .kind = Kind::kTokens, .bytes = as_bytes(odd)};
  EXPECT_EQ(writer->append({"key", {&bad, 1}}).code(), Code::kCorrupt);
  EXPECT_EQ(writer->append({"key", {}}).code(), Code::kUnsupported);
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(index, modern(true).bytes());
  EXPECT_EQ(as_text(bin), "aabbccddeeff");
}

}  // namespace
}  // namespace headrace
