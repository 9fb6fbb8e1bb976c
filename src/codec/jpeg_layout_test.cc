// SPDX-License-Identifier: Apache-2.0
#include "base/have.h"
#if HEADRACE_HAVE_JPEG
#include <gtest/gtest.h>

#include "codec/jpeg_fixture.h"
#include "codec/jpeg_layout.h"
#include "codec/jpeg_marks.h"

namespace headrace {
namespace {

using Blob = std::vector<std::byte>;

Blob picture(const fixture::JpegKind& kind) {
  return fixture::encode(fixture::make_image(53, 37, kind.channels, 1), kind);
}

JpegLayout layout_of(const Blob& file) {
  JpegLayout out;
  EXPECT_TRUE(read_jpeg_layout(file, out));
  return out;
}

TEST(JpegLayout, samplings_are_told_apart) {
  const std::pair<fixture::JpegKind, JpegSampling> kinds[] = {
      {{"420", 2, 2}, JpegSampling::k420},
      {{"422", 2, 1}, JpegSampling::k422},
      {{"444", 1, 1}, JpegSampling::k444},
      {{"440", 1, 2}, JpegSampling::k440},
      {{.name = "gray", .h = 1, .v = 1, .channels = 1}, JpegSampling::kGray},
      {{.name = "restarts", .h = 2, .v = 2, .restart_blocks = 2}, JpegSampling::k420}};
  for (const auto& [kind, sampling] : kinds) {
    const JpegLayout layout = layout_of(picture(kind));
    EXPECT_TRUE(layout.is_plain) << kind.name;
    EXPECT_EQ(layout.sampling, sampling) << kind.name;
    EXPECT_EQ(layout.width, 53);
    EXPECT_EQ(layout.height, 37);
  }
}

TEST(JpegLayout, what_engines_do_not_take_is_not_plain) {
  EXPECT_FALSE(layout_of(picture({.name = "progressive", .progressive = true})).is_plain);
  EXPECT_FALSE(layout_of(picture({.name = "CMYK", .h = 1, .v = 1, .channels = 4})).is_plain);
  EXPECT_FALSE(layout_of(picture({"411", 4, 1})).is_plain);
}

TEST(JpegLayout, damage_that_marks_tell_of_is_not_plain) {
  const Blob whole = picture({"420", 2, 2});
  Blob cut(whole.begin(), whole.end() - 40);
  EXPECT_FALSE(layout_of(cut).is_plain);
  Blob marked = whole;
  marked[whole.size() - 30] = std::byte{0xff};
  marked[whole.size() - 29] = std::byte{0xd3};
  EXPECT_FALSE(layout_of(marked).is_plain);
  Blob padded = whole;
  padded.resize(whole.size() + 5);
  EXPECT_TRUE(layout_of(padded).is_plain);
}

// A part of the data between two restarts is gone: no mark is out of order but one is missing, or
// eight are.
TEST(JpegLayout, restarts_are_counted) {
  const fixture::JpegKind kind{.name = "restarts", .h = 1, .v = 1, .restart_blocks = 1};
  const Blob whole = picture(kind);
  ASSERT_TRUE(layout_of(whole).is_plain);
  std::vector<size_t> marks;
  for (size_t i = 0; i + 1 < whole.size(); ++i)
    if (whole[i] == std::byte{0xff} && (whole[i + 1] & std::byte{0xf8}) == std::byte{0xd0})
      marks.push_back(i);
  ASSERT_EQ(marks.size(), 7u * 5 - 1);
  Blob eight = whole;  // the marks that are left are in their order
  eight.erase(eight.begin() + static_cast<ptrdiff_t>(marks[3]),
              eight.begin() + static_cast<ptrdiff_t>(marks[11]));
  EXPECT_FALSE(layout_of(eight).is_plain);
  Blob last = whole;
  last.erase(last.begin() + static_cast<ptrdiff_t>(marks.back()), last.end() - 2);
  EXPECT_FALSE(layout_of(last).is_plain);
}

TEST(JpegLayout, data_too_short_for_its_blocks_is_not_plain) {
  const Blob whole = picture({"420", 2, 2});
  size_t scan = 0;
  for (size_t i = 0; i + 1 < whole.size() && scan == 0; ++i)
    if (whole[i] == std::byte{0xff} && whole[i + 1] == std::byte{0xda}) scan = i + 14;
  Blob none(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(scan));
  none.insert(none.end(), {std::byte{1}, std::byte{2}, std::byte{0xff}, std::byte{0xd9}});
  EXPECT_FALSE(layout_of(none).is_plain);
}

TEST(JpegLayout, marks_are_found_wherever_they_lie) {
  // Every length and place around the vectors', among bytes that look like marks and are none.
  for (size_t size = 0; size < 150; ++size) {
    std::vector<std::byte> data(size, std::byte{0xff});
    for (size_t i = 1; i < size; i += 2) data[i] = std::byte{0};
    EXPECT_EQ(find_mark(data, 0), size);
    for (size_t at = 0; at + 1 < size; ++at) {
      std::vector<std::byte> marked = data;
      marked[at] = std::byte{0xff}, marked[at + 1] = std::byte{0xd9};
      // A 0xff before the 0xff is a mark itself: bytes that fill.
      const size_t first = at > 0 && marked[at - 1] == std::byte{0xff} ? at - 1 : at;
      EXPECT_EQ(find_mark(marked, 0), first) << size << " " << at;
      EXPECT_EQ(find_mark(marked, at), at);
      EXPECT_EQ(find_mark(Bytes(marked).first(at + 1), at), at + 1) << "cut within the mark";
    }
  }
}

TEST(JpegLayout, every_cut_is_survived) {
  const Blob whole = picture({"420", 2, 2});
  for (size_t n = 0; n < whole.size(); ++n) {
    JpegLayout layout;
    if (read_jpeg_layout(Bytes(whole.data(), n), layout)) {
      EXPECT_FALSE(layout.is_plain) << n;
    }
  }
}

}  // namespace
}  // namespace headrace
#endif
