// SPDX-License-Identifier: Apache-2.0
#include "codec/decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace headrace {
namespace {

struct Count {
  int begun = 0;
  int seen = 0;
  void begin_sample() {
    ++begun;
    seen = 0;
  }
};
struct Notes {
  std::vector<int> numbers;
  void begin_sample() { numbers.clear(); }
};

TEST(SampleContext, says_which_sample_it_is) {
  SampleContext context;
  context.begin(Key(7), 3, 41, 2, "k41");
  EXPECT_EQ(context.draws(), Key(7));
  EXPECT_EQ(context.epoch(), 3u);
  EXPECT_EQ(context.sample(), 41u);
  EXPECT_EQ(context.source(), 2u);
  EXPECT_EQ(context.key(), "k41");
}

TEST(SampleContext, parts_are_begun_anew_for_each_sample_and_keep_their_memory) {
  SampleContext context;
  context.begin(Key(0), 0, 0, 0, {});
  auto& notes = context.part<Notes>();
  notes.numbers.assign(1000, 1);
  context.part<Count>().seen = 5;
  EXPECT_EQ(&context.part<Notes>(), &notes);
  EXPECT_EQ(context.part<Notes>().numbers.size(), 1000u);
  context.begin(Key(1), 0, 1, 0, {});
  EXPECT_EQ(&context.part<Notes>(), &notes);
  EXPECT_TRUE(notes.numbers.empty());
  EXPECT_GE(notes.numbers.capacity(), 1000u);
  EXPECT_EQ(context.part<Count>().begun, 1);
  EXPECT_EQ(context.part<Count>().seen, 0);
}

TEST(SampleContext, contexts_share_nothing) {
  SampleContext a;
  SampleContext b;
  a.part<Count>().seen = 1;
  EXPECT_EQ(b.part<Count>().seen, 0);
}

TEST(SampleContext, draws_of_a_value_end_with_it) {
  SampleContext context;
  context.begin(Key(1), 0, 0, 0, {});
  {
    const ScopedDraws value(context, Key(1).with("value").with(4));
    EXPECT_EQ(context.draws(), Key(1).with("value").with(4));
    const ScopedDraws inner(context, Key(2));
    EXPECT_EQ(context.draws(), Key(2));
  }
  EXPECT_EQ(context.draws(), Key(1));
}

// Bytes through the table that comes beside them.
class Lookup final : public Decoder {
 public:
  const TensorSpec& output() const override { return spec_; }
  size_t inputs() const override { return 2; }
  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    const Bytes value = inputs[0];
    const Bytes table = inputs[1];
    const auto n = static_cast<int64_t>(value.size());
    HEADRACE_ASSIGN(const MutableBytes room, out.room({&n, 1}));
    for (size_t i = 0; i < value.size(); ++i) {
      const auto at = std::to_integer<size_t>(value[i]);
      if (at >= table.size()) return corrupt("no such entry").at(i);
      room[i] = table[at];
      ++context.part<Count>().seen;
    }
    return {};
  }

 private:
  const TensorSpec spec_{DType::kU8, {kVaries}};
};

class Kept final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    bytes.resize(static_cast<size_t>(shape[0]));
    return MutableBytes(bytes);
  }
  std::vector<std::byte> bytes;
};

TEST(Decoder, takes_a_value_and_its_side_data) {
  const Lookup lookup;
  const std::array<std::byte, 3> value{std::byte{2}, std::byte{0}, std::byte{2}};
  const std::array<Bytes, 2> inputs{Bytes(value), as_bytes("xyz")};
  ASSERT_EQ(inputs.size(), lookup.inputs());
  SampleContext context;
  context.begin(Key(0), 0, 0, 0, {});
  Kept slot;
  ASSERT_TRUE(lookup.run(inputs, context, slot).ok());
  EXPECT_EQ(as_text(slot.bytes), "zxz");
  EXPECT_EQ(context.part<Count>().seen, 3);
  const std::array<Bytes, 2> short_table{Bytes(value), as_bytes("xy")};
  EXPECT_EQ(lookup.run(short_table, context, slot).place().offset, 0);
  EXPECT_EQ(lookup.deferred(), nullptr);
}

}  // namespace
}  // namespace headrace
