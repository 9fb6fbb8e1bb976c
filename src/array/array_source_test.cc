// SPDX-License-Identifier: Apache-2.0
#include "array/array_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "array/array_boxes.h"
#include "array/array_fixture.h"
#include "array/unpack.h"
#include "array/value_fixture.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// All elements of one array, little-endian, last axis fastest: what a reference works on.
struct Plain {
  Extents shape;
  ByteList bytes;
};

int64_t pick(Rng& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
}

bool advance(Extents& at, const Extents& size) {
  for (size_t a = size.size(); a-- > 0;) {
    if (++at[a] < size[a]) return true;
    at[a] = 0;
  }
  return false;
}

size_t number_of(const Extents& at, const Extents& shape) {
  int64_t n = 0;
  for (size_t a = 0; a < shape.size(); ++a) n = n * shape[a] + at[a];
  return static_cast<size_t>(n);
}

// Writes chunks into the store, some of them left out, and remembers what they hold.
class Writer {
 public:
  Writer(Rng& rng, MemoryStore& store, ArrayDescription& d) : rng_(rng), store_(store), d_(d) {}

  Plain write(Array& array) {
    const size_t item = size_of(array.dtype);
    Plain plain{array.shape, ByteList(static_cast<size_t>(elements_in(array.shape)) * item)};
    for (std::byte& b : plain.bytes) b = static_cast<std::byte>(rng_.below(7) * 31);
    Extents grid;
    for (size_t a = 0; a < array.shape.size(); ++a)
      grid.push_back((array.shape[a] + array.chunk[a] - 1) / array.chunk[a]);
    const std::string one_file = add_file();
    ByteList all(rng_.below(9));  // a header
    Extents at(grid.size(), 0);
    if (elements_in(array.shape) > 0) do {
        if (rng_.below(6) == 0) {
          array.places.push_back({});
          leave_out(array, at, plain);
          continue;
        }
        const auto skipped =
            static_cast<uint32_t>(array.filters.empty() || rng_.below(4) > 0 ? 0 : 1);
        const ByteList stored = apply_filters(array.filters, skipped, chunk_of(array, at, plain));
        if (rng_.below(3) == 0) {
          const std::string file = add_file();
          store_.put(file, stored);
          array.places.push_back({last_file(), skipped, 0, kWholeFile});
        } else {
          array.places.push_back({file_number_, skipped, all.size(), stored.size()});
          put_all(all, stored);
        }
      } while (advance(at, grid));
    store_.put(one_file, all);
    return plain;
  }

 private:
  uint32_t last_file() const { return static_cast<uint32_t>(d_.files.size() - 1); }
  std::string add_file() {
    d_.files.push_back("file" + std::to_string(d_.files.size()));
    return d_.files.back();
  }

  template <typename Visit>
  void each(const Array& array, const Extents& chunk, const Visit& visit) const {
    Extents inside(array.shape.size(), 0);
    do {
      Extents at(inside);
      bool there = true;
      for (size_t a = 0; a < at.size(); ++a) {
        at[a] += chunk[a] * array.chunk[a];
        there = there && at[a] < array.shape[a];
      }
      if (there) visit(inside, at);
    } while (advance(inside, array.chunk));
  }

  ByteList chunk_of(const Array& array, const Extents& chunk, const Plain& plain) {
    const size_t item = size_of(array.dtype);
    ByteList out(static_cast<size_t>(elements_in(array.chunk)) * item, std::byte{0xee});
    const Extents strides = dense_strides(array.chunk, item, array.fortran);
    each(array, chunk, [&](const Extents& inside, const Extents& at) {
      size_t to = 0;
      for (size_t a = 0; a < inside.size(); ++a) to += static_cast<size_t>(inside[a] * strides[a]);
      const size_t from = number_of(at, array.shape) * item;
      for (size_t b = 0; b < item; ++b)
        out[to + b] = plain.bytes[from + (array.big_endian ? item - 1 - b : b)];
    });
    return out;
  }

  void leave_out(const Array& array, const Extents& chunk, Plain& plain) {
    const size_t item = size_of(array.dtype);
    const Bytes fill = fill_of(array);
    each(array, chunk, [&](const Extents&, const Extents& at) {
      const size_t to = number_of(at, array.shape) * item;
      for (size_t b = 0; b < item; ++b)
        plain.bytes[to + b] = fill[array.big_endian ? item - 1 - b : b];
    });
  }

  Rng& rng_;
  MemoryStore& store_;
  ArrayDescription& d_;
  const uint32_t file_number_ = static_cast<uint32_t>(d_.files.size());
};

// A random data set: two variables in up to three files along one axis.
struct Case {
  explicit Case(uint64_t seed) : rng(Key(seed)) {
    const auto rank = static_cast<size_t>(pick(rng, 1, 4));
    along = static_cast<size_t>(pick(rng, 0, static_cast<int64_t>(rank) - 1));
    Extents shape;
    for (size_t a = 0; a < rank; ++a) shape.push_back(pick(rng, 1, 7));
    const auto dtype = static_cast<DType>(rng.below(kDTypes));
    const bool big_endian = rng.below(3) == 0;
    const size_t segments = 1 + rng.below(3);
    Extents lengths;
    for (size_t s = 0; s < segments; ++s) lengths.push_back(pick(rng, s == 0 ? 2 : 0, 6));
    for (int v = 0; v < 2; ++v) {
      Variable variable{.name = v == 0 ? "a" : "b", .along = along};
      for (size_t s = 0; s < segments; ++s) {
        auto array = std::make_shared<Array>();
        array->name = variable.name;
        array->dtype = dtype;
        array->big_endian = big_endian;
        array->fortran = rng.below(3) == 0;
        array->shape = shape;
        array->shape[along] = lengths[s];
        for (const int64_t n : array->shape) array->chunk.push_back(pick(rng, 1, n + 1));
        if (rng.below(2) == 0) array->fill = ByteList(size_of(dtype), std::byte{0x41});
        array->filters = random_chain(*array);
        plain[v].push_back(Writer(rng, *store, d).write(*array));
        variable.segments.push_back(array);
        if (v == 0) total += lengths[s];
      }
      d.variables.push_back(variable);
    }
  }

  FilterChain random_chain(const Array& array) {
    FilterChain chain;
    if (rng.below(3) == 0) return chain;
    if (rng.below(2) == 0)
      chain.push_back({ChunkFilter::kShuffle, static_cast<uint32_t>(size_of(array.dtype))});
    chain.push_back({static_cast<ChunkFilter>(rng.below(7))});
    if (rng.below(3) == 0)
      chain.push_back({rng.below(2) == 0 ? ChunkFilter::kFletcher32 : ChunkFilter::kCrc32c});
    return chain;
  }

  // The element of variable v at an index whose part along the axis counts over all files.
  Bytes element(int v, Extents at) const {
    size_t s = 0;
    while (at[along] >= plain[v][s].shape[along]) at[along] -= plain[v][s++].shape[along];
    const size_t item = size_of(d.variables[0].segments[0]->dtype);
    return Bytes(plain[v][s].bytes).subspan(number_of(at, plain[v][s].shape) * item, item);
  }

  Rng rng;
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  ArrayDescription d;
  size_t along = 0;
  int64_t total = 0;
  std::vector<Plain> plain[2];
};

// Where the patch begins, by the rule that array_boxes.cc states: a draw for each patched axis.
int64_t drawn_begin(Key draws, uint64_t patched, int64_t room) {
  return static_cast<int64_t>(
      Rng(draws.with("patch").with(patched)).below(static_cast<uint64_t>(room)));
}

// What the field must be, one element at a time.
ByteList reference(const Case& c, const ArrayField& field, int64_t position, int64_t tile,
                   const Extents& tiles, Key draws) {
  const Extents like = c.d.variables[0].segments[0]->shape;
  const size_t rank = like.size();
  std::vector<Extents> indexes(rank);
  int64_t patched = 0;
  std::vector<int64_t> tile_at(tiles.size());
  for (size_t t = tiles.size(); t-- > 0;) {
    tile_at[t] = tile % tiles[t];
    tile /= tiles[t];
  }
  for (size_t a = 0; a < rank; ++a) {
    const AxisChoice& choice = field.axes[a];
    if (a == c.along) {
      for (int64_t i = 0; i < std::max<int64_t>(1, field.count); ++i)
        indexes[a].push_back(position + field.from + i);
    } else if (choice.patch > 0) {
      const int64_t n = like[a];
      int64_t begin = 0;
      if (tiles.empty())
        begin = drawn_begin(draws, static_cast<uint64_t>(patched),
                            choice.periodic ? n : n - choice.patch + 1);
      else
        begin = std::min(tile_at[static_cast<size_t>(patched)] * choice.patch, n - choice.patch);
      for (int64_t i = 0; i < choice.patch; ++i) indexes[a].push_back((begin + i) % n);
      ++patched;
    } else if (!choice.indexes.empty()) {
      indexes[a] = choice.indexes;
    } else {
      for (int64_t i = 0; i < like[a]; ++i) indexes[a].push_back(i);
    }
  }
  Extents size;
  for (const Extents& list : indexes) size.push_back(static_cast<int64_t>(list.size()));
  ByteList out;
  for (const uint32_t v : field.variables) {
    Extents at(rank, 0);
    do {
      Extents index(rank);
      for (size_t a = 0; a < rank; ++a) index[a] = indexes[a][static_cast<size_t>(at[a])];
      put_all(out, c.element(static_cast<int>(v), index));
    } while (advance(at, size));
  }
  return out;
}

ArrayField random_field(Case& c) {
  const Extents& shape = c.d.variables[0].segments[0]->shape;
  ArrayField field{.name = "x"};
  field.variables = c.rng.below(2) == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{1, 0};
  field.count = pick(c.rng, 0, std::min<int64_t>(3, c.total));
  for (size_t a = 0; a < shape.size(); ++a) {
    AxisChoice choice;
    const uint64_t kind = c.rng.below(4);
    if (a != c.along && kind == 1) {
      for (int64_t i = pick(c.rng, 1, 4); i > 0; --i)
        choice.indexes.push_back(pick(c.rng, 0, shape[a] - 1));
    } else if (a != c.along && kind >= 2) {
      choice.patch = pick(c.rng, 1, shape[a]);
      choice.periodic = kind == 3;
    }
    field.axes.push_back(choice);
  }
  return field;
}

TEST(array_source, every_value_is_what_element_by_element_gives) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Case c(seed);
    const ArrayField field = random_field(c);
    c.d.fields = {field};
    const int64_t steps = std::max<int64_t>(1, field.count);
    c.d.samples.stride = pick(c.rng, 1, 3);
    c.d.samples.end = c.total - steps + 1;
    c.d.samples.tiled = c.rng.below(3) == 0;
    if (c.rng.below(4) == 0)
      for (int i = 0; i < 3; ++i) c.d.samples.starts.push_back(pick(c.rng, 0, c.total - steps));
    const auto made = make_array_source(c.d, c.store);
    ASSERT_TRUE(made.ok()) << seed << ": " << made.status().text();
    const Source& source = *made.value();
    const auto tiles = count_tiles(c.d);
    ASSERT_TRUE(tiles.ok());
    const int64_t each = tiles.value().empty() ? 1 : elements_in(tiles.value());
    uint64_t in_blocks = 0;
    for (const uint32_t n : source.blocks().samples) in_blocks += n;
    ASSERT_EQ(in_blocks, source.size());
    for (uint64_t s = 0; s < source.size(); ++s) {
      const auto number = static_cast<int64_t>(s) / each;
      const int64_t position = c.d.samples.starts.empty()
                                   ? number * c.d.samples.stride
                                   : c.d.samples.starts[static_cast<size_t>(number)];
      const Key draws = Key(seed).with(s);
      const auto value = read_value(source, s, 0, draws);
      ASSERT_TRUE(value.ok()) << seed << ": " << value.status().text();
      ASSERT_EQ(value.value(),
                reference(c, field, position, static_cast<int64_t>(s) % each, tiles.value(), draws))
          << "seed " << seed << " sample " << s;
      int64_t elements = 1;
      for (const int64_t n : source.schema()[0].shape) elements *= n;
      ASSERT_EQ(value.value().size(),
                static_cast<size_t>(elements) * size_of(*source.schema()[0].dtype));
    }
  }
}

// One array [time, row], rows of two i16, in one plain file.
struct Small {
  explicit Small(DType dtype = DType::kI16) {
    array->name = "v";
    array->dtype = dtype;
    array->shape = {6, 2};
    array->chunk = {2, 2};
    ByteList bytes;
    for (uint64_t i = 0; i < 12; ++i) put_le(bytes, i, size_of(dtype));
    const uint64_t chunk = 4 * size_of(dtype);
    for (uint64_t k = 0; k < 3; ++k) array->places.push_back({0, 0, k * chunk, chunk});
    store->put("f", bytes);
    d.files = {"f"};
    d.variables = {{"v", {"time", "row"}, {array}, 0}};
    d.fields = {{"x", {0}, 0, 2, {{}, {}}}};
    d.samples.end = 5;
  }
  Status why() const { return make_array_source(d, store).status(); }

  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<Array> array = std::make_shared<Array>();
  ArrayDescription d;
};

// A variable of another type beside it, in the same chunks of a file of its own.
TEST(array_source, variables_of_several_types_become_the_float_that_holds_them) {
  for (const DType type : {DType::kF32, DType::kI32}) {
    Small s;
    const Small wide(type);
    auto other = std::make_shared<Array>(*wide.array);
    for (ChunkPlace& place : other->places) place.file = 1;
    s.store->put("g", as_text(wide.store->read_all("f").value().bytes()));
    s.d.files.push_back("g");
    s.d.variables.push_back({"w", {"time", "row"}, {other}, 0});
    s.d.fields[0].variables = {0, 1};
    const auto source = make_array_source(s.d, s.store).value();
    const DType made = type == DType::kF32 ? DType::kF32 : DType::kF64;
    EXPECT_EQ(source->schema()[0].dtype, made);
    EXPECT_EQ(source->schema()[0].shape, (std::vector<int64_t>{2, 2, 2}));
    const uint32_t fields[] = {0};
    const auto values = read_values(*source, {.sample = 1, .fields = fields}, false).value();
    ASSERT_EQ(values[0].size(), 8 * size_of(made));
    // i16 2, 3, 4, 5; of the other the same numbers, which of f32 are the bits of tiny ones.
    for (size_t i = 0; i < 8; ++i) {
      const double want =
          i < 4 || type == DType::kI32
              ? static_cast<double>(2 + i % 4)
              : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(2 + i % 4)));
      const Bytes at = Bytes(values[0]).subspan(i * size_of(made));
      EXPECT_EQ(made == DType::kF32 ? static_cast<double>(load_le<float>(at)) : load_le<double>(at),
                want);
    }
  }
}

TEST(array_source, packed_numbers_are_unpacked_each_by_its_own_scale) {
  Small s;
  s.array->packed = true;
  s.array->scale = 0.5;
  s.array->offset = 10;
  s.array->missing = 3;
  auto other = std::make_shared<Array>(*s.array);
  other->scale = 2;
  other->missing.reset();
  s.d.variables.push_back({"w", {"time", "row"}, {other}, 0});
  s.d.fields[0].variables = {0, 1};
  const auto source = make_array_source(s.d, s.store);
  ASSERT_TRUE(source.ok()) << source.status().text();
  EXPECT_EQ(source.value()->schema()[0].dtype, DType::kF32);
  EXPECT_EQ(source.value()->schema()[0].shape, (std::vector<int64_t>{2, 2, 2}));
  const auto value = read_value(*source.value(), 1, 0, Key(0));  // stored 2 3 4 5
  ASSERT_TRUE(value.ok());
  std::vector<float> got(8);
  ASSERT_EQ(value.value().size(), 32u);
  std::memcpy(got.data(), value.value().data(), 32);
  EXPECT_EQ(got[0], 11.0f);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(got[2], 12.0f);
  EXPECT_EQ(std::vector<float>(got.begin() + 4, got.end()), (std::vector<float>{14, 16, 18, 20}));
}

TEST(array_source, packed_numbers_of_every_width) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32,
                            DType::kI32, DType::kU64, DType::kI64}) {
    Small s(dtype);
    s.array->packed = true;
    s.array->scale = 3;
    const auto source = make_array_source(s.d, s.store);
    ASSERT_TRUE(source.ok());
    const auto value = read_value(*source.value(), 0, 0, Key(0)).value();
    if (unpacked_dtype(dtype) == DType::kF32)
      EXPECT_EQ(load_le<float>(Bytes(value).subspan(12)), 9.0f) << dtype_name(dtype);
    else
      EXPECT_EQ(load_le<double>(Bytes(value).subspan(24)), 9.0) << dtype_name(dtype);
  }
}

TEST(array_source, what_does_not_fit_is_an_error_that_says_so) {
  Small window;
  window.d.fields[0].count = 7;
  window.d.samples.end = 1;
  EXPECT_NE(window.why().text().find("which has 6"), std::string::npos) << window.why().text();
  Small none;
  none.d.samples.end = 0;
  EXPECT_NE(none.why().text().find("there is no sample"), std::string::npos);
  Small patch;
  patch.d.fields[0].axes[1].patch = 3;
  EXPECT_NE(patch.why().text().find("a patch of 3 does not fit into 'row', which has 2"),
            std::string::npos)
      << patch.why().text();
  Small index;
  index.d.fields[0].axes[1].indexes = {2};
  EXPECT_EQ(index.why().code(), Code::kInvalidArgument);
  Small unlike;
  unlike.d.variables.push_back({"w", {}, {unlike.array}, 1});
  unlike.d.fields[0].variables = {0, 1};
  EXPECT_NE(unlike.why().text().find("must be alike"), std::string::npos);
  Small files;
  auto wider = std::make_shared<Array>(*files.array);
  wider->shape = {6, 4};
  wider->chunk = {2, 4};
  files.d.variables[0].segments.push_back(wider);
  EXPECT_NE(files.why().text().find("files along one axis must be alike"), std::string::npos);
  Small huge;
  huge.array->shape = {int64_t{1} << 40, int64_t{1} << 40};
  huge.array->chunk = huge.array->shape;
  EXPECT_EQ(huge.why().code(), Code::kInvalidArgument) << huge.why().text();
  Small twice;
  twice.array->filters = {{ChunkFilter::kZlib}, {ChunkFilter::kZlib}};
  EXPECT_EQ(twice.why().code(), Code::kUnsupported);
}

TEST(array_source, damaged_chunks_are_errors) {
  Small s;
  ByteList chunk;
  for (uint64_t i = 0; i < 4; ++i) put_le(chunk, i, 2);
  s.array->filters = {{ChunkFilter::kZlib}, {ChunkFilter::kFletcher32}};
  const ByteList stored = apply_filters(s.array->filters, 0, chunk);
  for (ChunkPlace& place : s.array->places) place = {0, 0, 0, stored.size()};
  s.store->put("f", stored);
  const auto source = make_array_source(s.d, s.store);
  ASSERT_TRUE(read_value(*source.value(), 0, 0, Key(0)).ok());
  for (size_t i = 0; i < stored.size(); ++i) {
    ByteList bad = stored;
    bad[i] ^= std::byte{1};
    s.store->put("f", bad);
    EXPECT_EQ(read_value(*source.value(), 0, 0, Key(0)).status().code(), Code::kCorrupt) << i;
    s.store->put("f", ByteList(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(i)));
    EXPECT_FALSE(read_value(*source.value(), 0, 0, Key(0)).ok()) << i;
  }
}

TEST(array_source, a_sample_shares_chunks_and_reads_little_of_plain_ones) {
  Small s;
  s.d.fields.push_back({"y", {0}, 1, 0, {{}, {}}});
  const std::vector<uint32_t> both = {0, 1};
  Request request;
  const auto plain = make_array_source(s.d, s.store);
  ASSERT_TRUE(plain.value()->needs({.sample = 0, .fields = both, .want_key = true}, request).ok());
  EXPECT_EQ(request.key, "0");
  EXPECT_EQ(request.units.back().stored_bytes, 4u);  // one row of two i16
  s.array->filters = {{ChunkFilter::kZlib}};
  const auto packed = make_array_source(s.d, s.store);
  ASSERT_TRUE(packed.value()->needs({.sample = 0, .fields = both, .want_key = true}, request).ok());
  EXPECT_EQ(request.units.size(), 1u);
  EXPECT_EQ(request.pieces.size(), 2u);
  EXPECT_NE(plain.value()->fingerprint(), Hash128());
}

TEST(array_source, the_fingerprint_knows_the_window) {
  Small a;
  Small b;
  const auto before = make_array_source(a.d, a.store).value()->fingerprint();
  EXPECT_EQ(before, make_array_source(b.d, b.store).value()->fingerprint());
  b.d.fields[0].count = 1;
  EXPECT_FALSE(before == make_array_source(b.d, b.store).value()->fingerprint());
}

}  // namespace
}  // namespace headrace
