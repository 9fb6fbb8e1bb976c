// SPDX-License-Identifier: Apache-2.0
#include "format/files/json_texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/zstd.h"
#include "storage/memory.h"

namespace headrace {
namespace {

struct Read {
  std::vector<std::string> texts;
  std::vector<BadLine> bad;
  Status status;
};

Read read_range(const std::shared_ptr<MemoryStore>& store, const std::string& path,
                JsonTexts::Range range, const std::string& member = "text", uint64_t bytes = 64) {
  Read out;
  auto opened = JsonTexts::open(store, store->stat(path).value(), range, member);
  if (!opened.ok()) return out.status = opened.status(), out;
  JsonTexts& lines = *opened.value();
  while (!lines.at_end()) {
    JsonTextBatch batch;
    out.status = lines.next(bytes, batch);
    if (!out.status.ok()) return out;
    size_t begin = 0;
    for (const size_t end : batch.ends) {
      out.texts.push_back(batch.bytes.substr(begin, end - begin));
      begin = end;
    }
    out.bad.insert(out.bad.end(), batch.bad.begin(), batch.bad.end());
  }
  return out;
}

std::shared_ptr<MemoryStore> holding(const std::string& path, std::string_view text) {
  auto store = std::make_shared<MemoryStore>();
  store->put(path, text);
  return store;
}

TEST(JsonTexts, every_line_is_in_exactly_one_of_the_ranges_wherever_they_are_cut) {
  std::string text = "\xef\xbb\xbf";
  std::vector<std::string> wanted;
  for (int i = 0; i < 12; ++i) {
    wanted.push_back(std::string(static_cast<size_t>(i * 3 % 7), 'x') + fmt::format(" \\n{}", i));
    text +=
        fmt::format("{{\"id\": {}, \"text\": \"{}\"}}{}\n", i, wanted.back(), i % 4 ? "" : "\r");
    if (i % 5 == 0) text += "\n";
    wanted.back().replace(wanted.back().find("\\n"), 2, "\n");
  }
  for (const bool last_ends : {true, false}) {
    const auto store = holding("a.jsonl", last_ends ? text : text.substr(0, text.size() - 1));
    const uint64_t size = store->stat("a.jsonl").value().bytes;
    for (uint64_t cut = 0; cut <= size; ++cut) {
      Read first = read_range(store, "a.jsonl", {0, cut});
      const Read second = read_range(store, "a.jsonl", {cut, size});
      ASSERT_TRUE(first.status.ok() && second.status.ok());
      first.texts.insert(first.texts.end(), second.texts.begin(), second.texts.end());
      ASSERT_EQ(first.texts, wanted) << "cut at " << cut;
      ASSERT_TRUE(first.bad.empty() && second.bad.empty());
    }
  }
}

TEST(JsonTexts, lines_that_cannot_be_read_are_told_beside_the_others) {
  const auto store = holding("a.jsonl",
                             "{\"text\": \"a\"}\n{\"text\": \"b\n\n{\"text\": \"\xff\"}\n"
                             "{\"other\": 1}\n{\"text\": 5}\n[1]\n{\"text\": \"\\ud800\"}\n"
                             "{\"text\": \"z\"}\n");
  const Read got = read_range(store, "a.jsonl", {});
  EXPECT_EQ(got.texts, (std::vector<std::string>{"a", "z"}));
  ASSERT_EQ(got.bad.size(), 6u);
  const uint64_t lines[] = {2, 4, 5, 6, 7, 8};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(got.bad[i].line, lines[i]);
    EXPECT_EQ(got.bad[i].after, 1u);
  }
  EXPECT_EQ(got.bad[1].cause, "its 'text' is not UTF-8 from byte 0 on");
  EXPECT_EQ(got.bad[2].cause, "it has no text 'text'");
  EXPECT_EQ(got.bad[3].cause, "its 'text' is no text");
}

TEST(JsonTexts, a_member_of_a_member_has_a_dotted_name) {
  const auto store = holding("a.jsonl", "{\"meta\": {\"body\": \"a\"}}\n{\"meta\": {}}\n");
  const Read got = read_range(store, "a.jsonl", {}, "meta.body");
  EXPECT_EQ(got.texts, (std::vector<std::string>{"a"}));
  EXPECT_EQ(got.bad.size(), 1u);
}

TEST(JsonTexts, packed_files_of_several_frames_are_read_and_cut_ones_are_refused) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  std::string packed;
  for (const std::string_view part :
       {std::string_view(text).substr(0, 50'001), std::string_view(text).substr(50'001)}) {
    Buffer frame;
    ASSERT_TRUE(pack_zstd(as_bytes(part), 3, frame).ok());
    packed += as_text(frame.bytes());
  }
  const auto store = holding("a.jsonl.zst", packed);
  const Read got = read_range(store, "a.jsonl.zst", {});
  ASSERT_TRUE(got.status.ok()) << got.status.text();
  EXPECT_EQ(got.texts.size(), 3000u);
  EXPECT_EQ(got.texts.back(), "document 2999");
  for (const size_t keep : {packed.size() - 1, packed.size() / 2, size_t{5}}) {
    store->put("cut.jsonl.zst", packed.substr(0, keep));
    EXPECT_EQ(read_range(store, "cut.jsonl.zst", {}).status.code(), Code::kCorrupt) << keep;
  }
}

TEST(JsonTexts, line_ends_are_counted_up_to_a_byte) {
  const auto store = holding("a", "a\nb\n\nc");
  const FileInfo file = store->stat("a").value();
  for (const auto& [end, wanted] : {std::pair{0, 0}, {1, 0}, {2, 1}, {5, 3}, {6, 3}})
    EXPECT_EQ(count_line_ends(*store, file, static_cast<uint64_t>(end)).value(),
              static_cast<uint64_t>(wanted));
}

}  // namespace
}  // namespace headrace
