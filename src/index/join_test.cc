// SPDX-License-Identifier: Apache-2.0
//
// Data sets made of others: what they hand to their parts, and what comes of it.
#include "index/join.h"

#include <gtest/gtest.h>

#include "index/concat.h"
#include "index/view.h"
#include "storage/memory.h"
#include "storage/routed.h"

namespace headrace {
namespace {

// Samples of two fields each: "file" lies in a store of its own, "note" in the index.
class Small final : public Source {
 public:
  Small(std::string name, uint64_t size, Kind kind = Kind::kBytes) : name_(std::move(name)) {
    auto store = std::make_shared<MemoryStore>();
    for (uint64_t i = 0; i < size; ++i)
      store->put("mem://" + name_ + "/" + std::to_string(i), name_ + " " + std::to_string(i));
    store_ = std::move(store);
    schema_ = {{.name = "file", .kind = kind},
               {.name = "note", .kind = Kind::kText, .storage = Storage::kInline}};
    blocks_ = {{static_cast<uint32_t>(size)}, 100 * size};
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return blocks_.samples[0]; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return Hasher().add(name_).finish(); }
  Status needs(const SampleAsk& ask, Request& out) const override {
    out.clear();
    for (const uint32_t f : ask.fields) {
      if (f == 0) {
        out.pieces.push_back({static_cast<uint32_t>(out.units.size()), 0, kWholeFile});
        out.units.push_back({.file = static_cast<uint32_t>(ask.sample),
                             .encoding = 1,
                             .stored_bytes = kWholeFile,
                             .decoded_bytes = kWholeFile});
      } else {
        const std::string note = "note of " + name_ + std::to_string(ask.sample);
        const Bytes bytes = as_bytes(note);
        out.pieces.push_back({kInlineUnit, out.inline_bytes.size(), bytes.size()});
        out.inline_bytes.insert(out.inline_bytes.end(), bytes.begin(), bytes.end());
      }
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    if (ask.want_key) out.key = key(ask.sample);
    return {};
  }
  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    const std::string text = std::to_string(unit.file) + ":" + std::string(as_text(stored));
    decoded.resize(text.size());
    std::memcpy(decoded.data(), text.data(), text.size());
    return {};
  }
  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override {
    return "mem://" + name_ + "/" + std::to_string(file);
  }
  std::string key(uint64_t sample) const override { return name_ + std::to_string(sample); }

 private:
  std::string name_;
  std::shared_ptr<const Store> store_;
  Schema schema_;
  Blocks blocks_;
};

std::shared_ptr<const Source> small(std::string name, uint64_t size = 4, Kind kind = Kind::kBytes) {
  return std::make_shared<Small>(std::move(name), size, kind);
}

// The values of a sample, read and opened as the engine does; "-" where there is none.
std::vector<std::string> values_of(const Source& source, uint64_t sample,
                                   const std::vector<uint32_t>& fields) {
  Request request;
  const Status asked = source.needs({.sample = sample, .fields = fields}, request);
  EXPECT_TRUE(asked.ok()) << asked.text();
  std::vector<std::string> out;
  for (size_t f = 0; f < fields.size(); ++f) {
    if (request.first_piece[f] == request.first_piece[f + 1]) {
      out.push_back("-");
      continue;
    }
    const Piece& piece = request.pieces[request.first_piece[f]];
    if (piece.unit == kInlineUnit) {
      out.emplace_back(as_text(Bytes(request.inline_bytes).subspan(piece.begin, piece.length)));
      continue;
    }
    const Unit& unit = request.units[piece.unit];
    const Buffer stored = source.store().read_all(source.file_path(unit.file)).value();
    Buffer decoded;
    EXPECT_TRUE(source.decode_unit(unit, stored.bytes(), decoded).ok());
    out.emplace_back(as_text(decoded.bytes()));
  }
  return out;
}

std::vector<std::string> names_of(const Source& source) {
  std::vector<std::string> out;
  for (const Field& field : source.schema()) out.push_back(field.name);
  return out;
}

using Texts = std::vector<std::string>;

TEST(Join, fields_of_all_parts_are_read_from_their_own_stores) {
  const auto joined = join_sources({{"a", small("x")}, {"b", small("y")}}).value();
  EXPECT_EQ(names_of(*joined), (Texts{"a.file", "a.note", "b.file", "b.note"}));
  EXPECT_EQ(values_of(*joined, 2, {3, 0, 2, 1}),
            (Texts{"note of y2", "2:x 2", "2:y 2", "note of x2"}));
  EXPECT_EQ(joined->key(1), "x1");
  EXPECT_EQ(joined->blocks().bytes, 800u);
}

TEST(Join, a_join_within_a_join_and_a_view_of_it) {
  const auto inner = join_sources({{"a", small("x")}, {"b", small("y")}}).value();
  const auto turned = make_view(inner, {3, 2, 1, 0}).value();
  const auto outer = join_sources({{"c", small("z")}, {"d", turned}}).value();
  EXPECT_EQ(values_of(*outer, 0, {4, 0, 3, 2}), (Texts{"3:y 3", "0:z 0", "note of x3", "3:x 3"}));
  const auto twice = join_sources({{"e", outer}, {"f", outer}}).value();
  EXPECT_EQ(values_of(*twice, 1, {6, 0, 8}), (Texts{"1:z 1", "1:z 1", "2:x 2"}));
}

TEST(Join, units_have_numbers_of_their_own_and_paths_without_a_route_in_messages) {
  const auto joined = join_sources({{"a", small("x")}, {"b", small("y")}}).value();
  const std::vector<uint32_t> fields = {0, 2};
  Request request;
  ASSERT_TRUE(joined->needs({.sample = 3, .fields = fields, .want_key = true}, request).ok());
  ASSERT_EQ(request.units.size(), 2u);
  EXPECT_NE(request.units[0], request.units[1]);
  EXPECT_EQ(request.key, "x3");
  EXPECT_EQ(plain_path(joined->file_path(request.units[1].file)), "mem://y/3");
}

TEST(Join, what_does_not_fit_is_refused) {
  EXPECT_FALSE(join_sources({{"a", small("x")}}).ok());
  EXPECT_FALSE(join_sources({{"a", small("x")}, {"a", small("y")}}).ok());
  const Status lengths = join_sources({{"a", small("x", 4)}, {"b", small("y", 5)}}).status();
  EXPECT_NE(lengths.text().find("'a' has 4 samples and 'b' has 5"), std::string::npos);
}

TEST(Join, the_fingerprint_covers_the_parts_and_their_order) {
  const auto ab = join_sources({{"a", small("x")}, {"b", small("y")}}).value();
  const auto ba = join_sources({{"a", small("y")}, {"b", small("x")}}).value();
  EXPECT_NE(ab->fingerprint(), ba->fingerprint());
  EXPECT_EQ(ab->fingerprint(),
            join_sources({{"c", small("x")}, {"d", small("y")}}).value()->fingerprint());
}

TEST(Concat, samples_come_one_after_the_other) {
  const auto both = concat_sources({small("x", 3), small("y", 2), small("z", 4)}).value();
  EXPECT_EQ(both->size(), 9u);
  EXPECT_EQ(both->blocks().samples, (std::vector<uint32_t>{3, 2, 4}));
  EXPECT_EQ(values_of(*both, 2, {0, 1}), (Texts{"2:x 2", "note of x2"}));
  EXPECT_EQ(values_of(*both, 3, {1, 0}), (Texts{"note of y0", "0:y 0"}));
  EXPECT_EQ(values_of(*both, 8, {0}), (Texts{"3:z 3"}));
  Texts keys;
  ASSERT_TRUE(both->keys(2, 6, keys).ok());
  EXPECT_EQ(keys, (Texts{"x2", "y0", "y1", "z0"}));
}

TEST(Concat, what_a_part_lacks_has_no_value) {
  const auto joined = join_sources({{"a", small("x")}, {"b", small("y")}}).value();
  const auto both = concat_sources({joined, small("z")}).value();
  EXPECT_EQ(values_of(*both, 1, {0, 4, 2}), (Texts{"1:x 1", "-", "1:y 1"}));
  EXPECT_EQ(values_of(*both, 5, {0, 4, 2, 5}), (Texts{"-", "1:z 1", "-", "note of z1"}));
}

TEST(Concat, pictures_of_two_kinds_are_one_field_and_other_kinds_are_refused) {
  const auto both = concat_sources({small("x", 1, Kind::kJpeg), small("y", 1, Kind::kPng)}).value();
  EXPECT_EQ(both->schema()[0].kind, Kind::kBytes);
  const Status other =
      concat_sources({small("x", 1, Kind::kJpeg), small("y", 1, Kind::kText)}).status();
  EXPECT_NE(other.text().find("field 'file' is jpeg in files"), std::string::npos) << other.text();
}

}  // namespace
}  // namespace headrace
