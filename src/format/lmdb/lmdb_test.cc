// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "format/lmdb/page.h"
#include "open/test_data.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

constexpr size_t kPage = 4096;
constexpr size_t kSecondMeta = kPage + kLmdbPageHead;

const Format& lmdb() {
  return *find_format("lmdb").value();
}

Result<std::vector<TestSample>> read(ByteVector bytes) {
  auto store = std::make_shared<MemoryStore>();
  store->put("shard.lmdb", std::move(bytes));
  HEADRACE_ASSIGN(const Opened opened,
                  open_source({"shard.lmdb"}, {.store = store, .keep_sidecars = false}));
  return read_samples(*opened.source);
}

std::string error_of(ByteVector bytes) {
  return read(std::move(bytes)).status().text();
}

LmdbMeta meta_of(const ByteVector& bytes) {
  return load_le<LmdbMeta>(Bytes(bytes).subspan(kSecondMeta));
}

ByteVector with_meta(ByteVector bytes, const LmdbMeta& meta) {
  store_le(MutableBytes(bytes).subspan(kSecondMeta), meta);
  return bytes;
}

// Enough for branches of branches: keys of 400 bytes leave room for nine children.
std::vector<TestSample> deep_samples() {
  std::vector<TestSample> out;
  for (int i = 0; i < 1500; ++i)
    out.push_back({std::to_string(10000 + i) + std::string(400, 'k'),
                   {{"jpg", std::string(static_cast<size_t>(i % 3) * 2500, 'x')}, {"cls", "1"}}});
  return out;
}

TEST(Lmdb, trees_of_any_depth_are_read_back) {
  const ByteVector bytes = write_samples(lmdb(), deep_samples());
  EXPECT_GE(meta_of(bytes).main.depth, 4);
  EXPECT_EQ(meta_of(bytes).main.entries, 3000u);
  EXPECT_EQ(bytes.size(), (meta_of(bytes).last_page + 1) * kPage);
  EXPECT_EQ(read(bytes).value(), deep_samples());
}

TEST(Lmdb, every_count_of_leaves_makes_branches_with_two_children_at_least) {
  for (int n = 1; n < 120; ++n) {
    std::vector<TestSample> samples = deep_samples();
    samples.resize(static_cast<size_t>(n) * 4);
    const ByteVector bytes = write_samples(lmdb(), samples);
    for (size_t at = 2 * kPage; at < bytes.size(); at += kPage) {
      const auto head = load_le<LmdbPageHead>(Bytes(bytes).subspan(at));
      const bool is_branch = head.number == at / kPage && head.flags == kLmdbBranch;
      EXPECT_TRUE(!is_branch || head.lower >= kLmdbPageHead + 4) << n;
    }
    EXPECT_EQ(read(bytes).value().size(), samples.size()) << n;
  }
}

TEST(Lmdb, a_tree_that_leads_back_to_itself_ends) {
  ByteVector bytes = write_samples(lmdb(), deep_samples());
  const uint64_t root = meta_of(bytes).main.root;
  const MutableBytes page = MutableBytes(bytes).subspan(root * kPage, kPage);
  const auto first = load_le<uint16_t>(Bytes(page).subspan(kLmdbPageHead));
  const auto loop = [&](uint64_t to) {
    store_le(page.subspan(first), LmdbNodeHead{.low = static_cast<uint16_t>(to),
                                               .high = static_cast<uint16_t>(to >> 16)});
  };
  loop(root);
  EXPECT_NE(error_of(bytes).find("is no leaf page of the tree"), std::string::npos);
  loop(meta_of(bytes).last_page + 5);
  EXPECT_NE(error_of(bytes).find("there is no page"), std::string::npos);
  // A branch of the same level, twice: keys are not in order then.
  const auto second = load_le<uint16_t>(Bytes(page).subspan(kLmdbPageHead + 2));
  loop(load_le<LmdbNodeHead>(Bytes(page).subspan(second)).page());
  EXPECT_NE(error_of(bytes).find("the keys are not in order"), std::string::npos);
}

TEST(Lmdb, counts_that_differ_from_the_tree_are_errors) {
  const ByteVector good = write_samples(lmdb(), deep_samples());
  LmdbMeta meta = meta_of(good);
  meta.main.entries += 2;
  EXPECT_NE(error_of(with_meta(good, meta)).find("3000 entries and says 3002"), std::string::npos);
  meta = meta_of(good);
  --meta.main.leaf_pages;
  EXPECT_NE(error_of(with_meta(good, meta)).find("a leaf too many"), std::string::npos);
  meta = meta_of(good);
  --meta.main.branch_pages;
  EXPECT_NE(error_of(with_meta(good, meta)).find("a branch too many"), std::string::npos);
  meta = meta_of(good);
  meta.main.depth = 40;
  EXPECT_NE(error_of(with_meta(good, meta)).find("depth 40"), std::string::npos);
  meta = meta_of(good);
  meta.main.root = kLmdbNoPage;
  EXPECT_NE(error_of(with_meta(good, meta)).find("without a first page"), std::string::npos);
  meta = meta_of(good);
  meta.last_page -= 1;
  EXPECT_NE(error_of(with_meta(good, meta)).find("there is no page"), std::string::npos);
}

TEST(Lmdb, what_it_cannot_read_is_refused_clearly) {
  const ByteVector good = write_samples(lmdb(), numbered_samples(3));
  LmdbMeta meta = meta_of(good);
  meta.main.flags = kLmdbDupSort;
  EXPECT_NE(error_of(with_meta(good, meta)).find("dupsort"), std::string::npos);
  meta = meta_of(good);
  meta.version = 2;
  EXPECT_NE(error_of(with_meta(good, meta)).find("data version 2"), std::string::npos);
  EXPECT_EQ(read(with_meta(good, meta)).status().code(), Code::kUnsupported);
  meta = meta_of(good);
  meta.free.pad = 8192;
  EXPECT_NE(error_of(with_meta(good, meta)).find("4096 and 8192"), std::string::npos);
  ByteVector narrow(good.begin() + 4, good.end());
  EXPECT_NE(error_of(narrow).find("32-bit"), std::string::npos);
  ByteVector other = good;
  other[16] = std::byte{1};
  EXPECT_NE(error_of(other).find("beefc001 where the magic beefc0de belongs"), std::string::npos);
}

TEST(Lmdb, a_tree_without_depth_does_not_go_down_for_ever) {
  const ByteVector bytes = write_samples(lmdb(), deep_samples());
  LmdbMeta meta = meta_of(bytes);
  meta.main.depth = 0;
  EXPECT_NE(error_of(with_meta(bytes, meta)).find("a tree of depth 0"), std::string::npos);
}

TEST(Lmdb, the_later_transaction_wins) {
  ByteVector bytes = write_samples(lmdb(), numbered_samples(3));
  LmdbMeta empty = load_le<LmdbMeta>(Bytes(bytes).subspan(kLmdbPageHead));
  EXPECT_EQ(read(bytes).value(), numbered_samples(3));
  empty.transaction = 2;
  store_le(MutableBytes(bytes).subspan(kLmdbPageHead), empty);
  EXPECT_NE(error_of(bytes).find("no sample"), std::string::npos);
}

TEST(Lmdb, a_run_that_is_another_values_is_an_error_at_its_place) {
  ByteVector bytes = write_samples(
      lmdb(), {{"a", {{"jpg", std::string(9000, 'x')}}}, {"b", {{"jpg", std::string(3000, 'y')}}}});
  store_le(MutableBytes(bytes).subspan(2 * kPage),
           LmdbPageHead{.number = 2, .flags = kLmdbOverflow, .lower = 2});
  const Status status = read(bytes).status();
  EXPECT_EQ(status.place().offset, 2 * static_cast<int64_t>(kPage));
  EXPECT_NE(status.text().find("does not hold the 9000 bytes"), std::string::npos);
}

Status write_keys(const std::vector<std::string>& keys, std::string_view field = "jpg") {
  ByteVector out;
  const auto writer = lmdb().create({.file = memory_sink(out)}).value();
  for (const std::string& key : keys) {
    const RecordValue value{.field = field};
    HEADRACE_TRY(writer->append({key, {&value, 1}}));
  }
  return writer->finish();
}

TEST(LmdbWriter, refuses_by_name_what_lmdb_cannot_hold) {
  EXPECT_TRUE(write_keys({std::string(507, 'k')}).ok());
  const Status longer = write_keys({std::string(508, 'k')});
  EXPECT_EQ(longer.code(), Code::kUnsupported);
  EXPECT_NE(longer.text().find("at most 511 bytes"), std::string::npos);
  EXPECT_NE(write_keys({"a", "a"}).text().find("have the entry 'a.jpg'"), std::string::npos);
  EXPECT_NE(write_keys({"b", "a"}).text().find("'a.jpg' cannot come after 'b.jpg'"),
            std::string::npos);
  EXPECT_TRUE(write_keys({"a.b"}).ok());
  EXPECT_NE(write_keys({"a"}, "x/y").text().find("field named 'x/y'"), std::string::npos);
}

}  // namespace
}  // namespace headrace
