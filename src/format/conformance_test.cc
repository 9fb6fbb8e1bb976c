// SPDX-License-Identifier: Apache-2.0
//
// What every format promises.  Runs once per line of formats.inc: a new format is
// tested before its author writes a test.

#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "open/test_data.h"

namespace headrace {
namespace {

// Of a format that holds only some fields, and no keys.
std::vector<TestSample> narrow_samples(const Format& format, int n) {
  std::vector<TestSample> out;
  for (int i = 0; i < n; ++i) {
    TestSample& sample = out.emplace_back();
    sample.key = "shard/" + std::to_string(100000000 + i).substr(1);
    for (const std::string_view field : format.only)
      sample.fields[std::string(field)] = kind_of_test_field(field) == Kind::kFloat
                                              ? std::to_string(i % 10)
                                              : std::string(static_cast<size_t>(4 * (i % 80)), 'x');
  }
  return out;
}

std::vector<TestSample> samples(const Format& format) {
  if (!format.only.empty()) return narrow_samples(format, 5);
  if (!format.holds_gaps) return numbered_samples(5);
  return {{"a", {{"cls", "3"}, {"jpg", std::string(700, 'x')}}},
          {"b/c", {{"jpg", ""}}},
          {"b/d", {{"cls", "12"}, {"jpg", "y"}, {"seg.png", std::string(512, '\0')}}}};
}

class FormatConformance : public ::testing::TestWithParam<const Format*> {
 protected:
  const Format& format() const { return *GetParam(); }

  std::vector<std::byte> write(const std::vector<TestSample>& wanted) {
    return write_samples(format(), wanted, &companion_);
  }
  // With the companion of what was written last.
  Result<std::shared_ptr<const Source>> open(std::vector<std::byte> bytes) const {
    auto store = std::make_shared<MemoryStore>();
    store->put("shard", std::move(bytes));
    if (!companion_.empty()) store->put(companion_path(format(), "shard"), companion_);
    HEADRACE_ASSIGN(Opened opened, open_source({"shard"}, {.store = store,
                                                           .format = std::string(format().name),
                                                           .keep_sidecars = false,
                                                           .threads = 1}));
    return std::shared_ptr<const Source>(opened.source);
  }
  Result<std::vector<TestSample>> read(std::vector<std::byte> bytes) const {
    HEADRACE_ASSIGN(const std::shared_ptr<const Source> source, open(std::move(bytes)));
    return read_samples(*source);
  }

 private:
  std::vector<std::byte> companion_;
};

class WritableFormatConformance : public FormatConformance {};

TEST_P(FormatConformance, has_a_name_a_doc_line_and_suffixes) {
  EXPECT_FALSE(format().name.empty());
  EXPECT_FALSE(format().doc.empty());
  EXPECT_FALSE(format().suffixes.empty());
  EXPECT_EQ(find_format(format().name).value(), &format());
}

TEST_P(WritableFormatConformance, reads_back_what_it_wrote) {
  EXPECT_EQ(read(write(samples(format()))).value(), samples(format()));
}

TEST_P(WritableFormatConformance, the_same_samples_give_the_same_bytes) {
  EXPECT_EQ(write(samples(format())), write(samples(format())));
}

// Where a sink refuses to go back, formats that say they never do are written all the same.
TEST_P(WritableFormatConformance, says_whether_it_goes_back_in_its_file) {
  std::vector<std::byte> companion, expected;
  const auto written = try_to_write_samples(format(), samples(format()), &companion, true);
  if (format().rewrites) {
    EXPECT_EQ(written.status().code(), Code::kUnsupported) << written.status().text();
    return;
  }
  ASSERT_TRUE(written.ok()) << written.status().text();
  EXPECT_EQ(written.value(), write_samples(format(), samples(format()), &expected));
  EXPECT_EQ(companion, expected);
}

TEST_P(WritableFormatConformance, is_recognised_by_its_bytes) {
  EXPECT_EQ(guess_format(write(samples(format())), "no_suffix").value(), &format());
}

TEST_P(WritableFormatConformance, a_cut_at_any_byte_is_an_error) {
  const std::vector<std::byte> whole = write(samples(format()));
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto got = read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
    if (!format().has_end && got.ok()) {  // between two samples: those before it, unchanged
      ASSERT_LT(got.value().size(), samples(format()).size()) << "cut at " << n;
      for (size_t s = 0; s < got.value().size(); ++s)
        EXPECT_EQ(got.value()[s], samples(format())[s]) << "cut at " << n;
      continue;
    }
    ASSERT_FALSE(got.ok()) << "cut at " << n;
    EXPECT_EQ(got.status().code(), Code::kCorrupt) << "cut at " << n;
    EXPECT_EQ(got.status().place().file, "shard") << "cut at " << n;
  }
}

TEST_P(WritableFormatConformance, a_flipped_bit_never_changes_counts_or_keys_in_silence) {
  const auto wanted = samples(format());
  std::vector<std::byte> bytes = write(wanted);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte{1} << bit;
      const auto got = read(bytes);
      bytes[i] ^= std::byte{1} << bit;
      if (!got.ok() || !format().guards_lengths) continue;
      if (format().has_checksum) {
        EXPECT_EQ(got.value(), wanted) << "byte " << i;
        continue;
      }
      ASSERT_EQ(got.value().size(), wanted.size()) << "byte " << i;
      for (size_t s = 0; s < wanted.size(); ++s) {
        EXPECT_EQ(got.value()[s].key, wanted[s].key) << "byte " << i;
        ASSERT_EQ(got.value()[s].fields.size(), wanted[s].fields.size()) << "byte " << i;
        for (const auto& [name, value] : wanted[s].fields)
          EXPECT_EQ(got.value()[s].fields.at(name).size(), value.size()) << "byte " << i;
      }
    }
  }
}

TEST_P(WritableFormatConformance, random_access_equals_sequential_for_two_readers_at_once) {
  const auto wanted = format().only.empty() ? numbered_samples(300) : narrow_samples(format(), 300);
  const auto source = open(write(wanted)).value();
  ASSERT_EQ(source->size(), wanted.size());
  std::atomic<int> bad{0};
  std::vector<std::jthread> readers;
  for (uint64_t r = 0; r < 2; ++r)
    readers.emplace_back([&, r] {
      Rng rng{Key(r)};
      for (int i = 0; i < 1000; ++i) {
        const uint64_t s = rng.below(wanted.size());
        const auto got = read_sample(*source, s);
        if (!got.ok() || got.value() != wanted[s]) ++bad;
      }
    });
  readers.clear();
  EXPECT_EQ(bad, 0);
}

TEST_P(FormatConformance, any_bytes_are_an_error_or_samples_but_never_a_crash) {
  Rng rng(Key(7));
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bytes(rng.below(2000));
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next());
    (void)read(bytes).ok();
  }
}

std::string row_name(const ::testing::TestParamInfo<const Format*>& row) {
  return std::string(row.param->name);
}

std::vector<const Format*> writable_formats() {
  std::vector<const Format*> out(all_formats().begin(), all_formats().end());
  // Those that need Python are written and read back in tests/: here nobody brings their library.
  std::erase_if(
      out, [](const Format* format) { return format->create == nullptr || format->needs_python; });
  return out;
}

TEST(Registry, only_these_need_python_and_say_so_without_it) {
  std::vector<std::string_view> names;
  for (const Format* format : all_formats()) {
    if (!format->needs_python) continue;
    names.push_back(format->name);
    const auto store = std::make_shared<MemoryStore>();
    store->put("shard", std::vector<std::byte>(64));
    const auto read = format->index({*store, store->stat("shard").value()});
    EXPECT_FALSE(read.ok());
    std::vector<std::byte> out;
    ShardOutput output{.file = memory_sink(out), .samples = 1};
    const auto written = format->create(std::move(output));
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.status().code(), Code::kUnsupported);
    EXPECT_NE(written.status().message().find("pip install"), std::string_view::npos);
  }
  EXPECT_EQ(names, std::vector<std::string_view>{"parquet"});
}

INSTANTIATE_TEST_SUITE_P(All, FormatConformance,
                         ::testing::ValuesIn(all_formats().begin(), all_formats().end()), row_name);
INSTANTIATE_TEST_SUITE_P(All, WritableFormatConformance, ::testing::ValuesIn(writable_formats()),
                         row_name);

TEST(Registry, an_unknown_name_lists_the_known_ones) {
  const auto r = find_format("tra");
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("known: tar "), std::string_view::npos);
}

TEST(Registry, bytes_win_over_the_suffix) {
  const std::string tar = write_tar(numbered_samples(1));
  EXPECT_EQ(guess_format(as_bytes(tar), "list.csv").value()->name, "tar");
  EXPECT_EQ(guess_format(as_bytes("path,label\n"), "LIST.CSV").value()->name, "files");
  EXPECT_EQ(guess_format(as_bytes("?"), "what.xyz").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace headrace
