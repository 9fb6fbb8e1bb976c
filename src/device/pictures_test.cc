// SPDX-License-Identifier: Apache-2.0
//
// The kernels alone, on the CPU, thread by thread: random pictures and programs against the CPU
// path, value by value.  Every memory that a kernel is told of is a block of its own, exactly as
// large as it must be, so that AddressSanitizer sees each access that is not in it.
//
// HEADRACE_KERNEL_PICTURES: how many (300); HEADRACE_KERNEL_SEED: which (1).
#include "base/have.h"
#if HEADRACE_HAVE_JPEG
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "../../tests/standin/kernels.h"
#include "codec/jpeg_fixture.h"
#include "codec/sample_context.h"
#include "device/picture_job.h"
#include "transform/program/program.h"

namespace headrace {
namespace {

static_assert(sizeof(Job) == sizeof(PictureJob) && sizeof(Output) == sizeof(PictureOutput) &&
              sizeof(Change) == sizeof(PixelChange) && sizeof(Mixing) == sizeof(PictureMixing));

using Blob = std::vector<std::byte>;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Kept final : public Slot {
 public:
  explicit Kept(DType dtype) : item_(size_of(dtype)) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    size_t n = item_;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    bytes.assign(n, std::byte{0});
    return MutableBytes(bytes);
  }
  Blob bytes;

 private:
  const size_t item_;
};

// Memory that ends where it ends; what is in it at first is not zero.
class Exact {
 public:
  explicit Exact(size_t bytes) : memory_(new unsigned char[bytes]) {
    std::memset(memory_.get(), 0x5a, bytes);
  }
  unsigned char* data() const { return memory_.get(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.get()); }

 private:
  std::unique_ptr<unsigned char[]> memory_;
};

struct Draw {
  Rng rng;
  explicit Draw(uint64_t seed) : rng(Key(seed).with("kernels")) {}
  int number(int low, int high) {
    return low + static_cast<int>(rng.below(static_cast<uint64_t>(high - low + 1)));
  }
  bool chance(double p) { return rng.uniform() < p; }
  template <typename T>
  T of(std::initializer_list<T> all) {
    return *(all.begin() + static_cast<ptrdiff_t>(rng.below(all.size())));
  }
};

Step step(std::string name, std::map<std::string, Param> params = {}) {
  return {std::move(name), Params(std::move(params))};
}

using Numbers = std::vector<double>;

std::vector<Step> random_geometry(Draw& draw) {
  const double side = draw.number(1, 70);
  const double other = draw.number(1, 70);
  const auto filter = draw.of<std::string>({"nearest", "bilinear", "bicubic"});
  const auto border = draw.of<std::string>({"constant", "edge", "reflect", "symmetric"});
  std::vector<Step> steps;
  switch (draw.number(0, 4)) {
    case 0:
      steps.push_back(
          step("random_resized_crop",
               {{"size", Numbers{side, other}}, {"scale", Numbers{0.01, 1}}, {"filter", filter}}));
      break;
    case 1:
      steps.push_back(step("resize", {{"size", Numbers{side, other}}, {"filter", filter}}));
      break;
    case 2:
      steps.push_back(step("resize", {{"size", Numbers{side}}, {"filter", filter}}));
      steps.push_back(step("center_crop", {{"size", Numbers{other, side}}}));
      break;
    case 3:
      steps.push_back(step("random_crop", {{"size", Numbers{side, other}},
                                           {"padding", Numbers{std::min(side, 15.0)}},
                                           {"padding_mode", border},
                                           {"pad_if_needed", true}}));
      break;
    default:
      steps.push_back(step("center_crop", {{"size", Numbers{side, other}}}));
  }
  if (draw.chance(0.5)) steps.push_back(step("random_flip"));
  if (draw.chance(0.3)) steps.push_back(step("random_vertical_flip"));
  return steps;
}

void add_changes(Draw& draw, std::vector<Step>& steps) {
  while (draw.chance(0.45)) {
    switch (draw.number(0, 3)) {
      case 0:
        steps.push_back(step("color_jitter", {{"brightness", Numbers{0.8}},
                                              {"contrast", Numbers{0.9}},
                                              {"saturation", Numbers{1.5}},
                                              {"hue", Numbers{0.5}},
                                              {"p", 0.8}}));
        break;
      case 1:
        steps.push_back(step("random_grayscale", {{"p", 0.4}}));
        break;
      case 2:
        steps.push_back(step(
            "random_erasing",
            {{"p", 0.7},
             {"value", draw.chance(0.5) ? Param(std::string("random")) : Param(Numbers{77})}}));
        break;
      default:
        steps.push_back(step(draw.chance(0.5) ? "random_flip" : "random_vertical_flip"));
    }
  }
}

void add_store(Draw& draw, std::vector<Step>& steps) {
  if (draw.chance(0.4))
    steps.push_back(step("normalize", {{"mean", Numbers{0.4}}, {"std", Numbers{0.21}}}));
  if (draw.chance(0.5))
    steps.push_back(step("cast", {{"dtype", draw.of<std::string>({"f32", "f16", "bf16"})}}));
  if (draw.chance(0.5)) steps.push_back(step("layout", {{"order", std::string("NHWC")}}));
}

fixture::JpegKind random_kind(Draw& draw) {
  fixture::JpegKind kind =
      draw.of<fixture::JpegKind>({{"420", 2, 2},
                                  {"422", 2, 1},
                                  {"444", 1, 1},
                                  {"440", 1, 2},
                                  {.name = "gray", .h = 1, .v = 1, .channels = 1}});
  if (draw.chance(0.2)) kind.restart_blocks = draw.number(1, 5);
  return kind;
}

int type_of(DType dtype) {
  return dtype == DType::kU8 ? 0 : dtype == DType::kF16 ? 1 : dtype == DType::kBF16 ? 2 : 3;
}

// All that one picture needs on the device, and what the kernels make of it.
struct OnDevice {
  std::vector<Exact> memory;
  PictureJob job;
  uint64_t take(size_t bytes) { return memory.emplace_back(bytes).address(); }
};

void put_planes(const DeferredValue& value, OnDevice& d) {
  const std::vector<fixture::RawPlane> planes = fixture::decode_raw(value.stored);
  for (size_t p = 0; p < planes.size(); ++p) {
    const auto pitch = static_cast<size_t>(d.job.pitch[p == 0 ? 0 : 1]);
    const fixture::RawPlane& plane = planes[p];
    ASSERT_EQ(plane.width, p == 0 ? d.job.width : d.job.chroma_width);
    ASSERT_EQ(plane.height, p == 0 ? d.job.height : d.job.chroma_height);
    const auto width = static_cast<size_t>(plane.width);
    const auto height = static_cast<size_t>(plane.height);
    d.job.plane[p] = d.take(pitch * (height - 1) + width);
    for (size_t y = 0; y < height; ++y)
      std::memcpy(reinterpret_cast<unsigned char*>(d.job.plane[p]) + y * pitch,
                  plane.samples.data() + y * width, width);
  }
}

// One picture of several, each with memory of its own, through all kernels.
Blob run_kernels(const DeferredSpec& spec, const std::vector<DeferredValue>& values,
                 uint64_t turn) {
  const int channels = channels_of(spec.mode);
  std::vector<OnDevice> all(values.size());
  std::vector<PictureJob> jobs;
  int contrasts = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    OnDevice& d = all[i];
    JobMemory memory;
    d.job = plan_job(values[i], memory);
    d.job.slot = static_cast<int32_t>(i);
    put_planes(values[i], d);
    const auto ints = [](int count, int most) {
      return static_cast<size_t>(count) * static_cast<size_t>(most + 2) * 4;
    };
    d.job.taps_x = d.take(ints(d.job.content_width, d.job.most_x));
    d.job.taps_y = d.take(ints(d.job.content_height, d.job.most_y));
    const int other = d.job.down_first != 0 ? d.job.content_height : d.job.content_width;
    d.job.pixels = d.take(static_cast<size_t>(d.job.region_width) *
                          static_cast<size_t>(d.job.region_height) * 4);
    d.job.middle =
        d.take(static_cast<size_t>(d.job.middle_extent) * static_cast<size_t>(other) * 4);
    const size_t told = values[i].changes.size() * sizeof(PixelChange);
    d.job.changes = d.take(told);
    if (told > 0)
      std::memcpy(reinterpret_cast<void*>(d.job.changes), values[i].changes.data(), told);
    d.job.sums = d.take(static_cast<size_t>(contrasts_of(values[i].changes)) * 8);
    contrasts = std::max(contrasts, contrasts_of(values[i].changes));
    jobs.push_back(d.job);
  }
  const Exact told(jobs.size() * sizeof(Job));
  std::memcpy(told.data(), jobs.data(), jobs.size() * sizeof(Job));
  const auto* at = reinterpret_cast<const Job*>(told.data());
  const size_t bytes = spec.result.bytes() * values.size();
  const Exact result(bytes);
  Output out{};
  out.address = result.address();
  out.channels = channels;
  out.dtype = type_of(spec.result.dtype);
  out.channels_first = spec.channels_first ? 1 : 0;
  out.height = static_cast<int>(spec.result.shape[spec.channels_first ? 1 : 0]);
  out.width = static_cast<int>(spec.result.shape[spec.channels_first ? 2 : 1]);
  for (size_t c = 0; c < 4; ++c) out.scale[c] = spec.scale[c], out.bias[c] = spec.bias[c];
  const auto n = static_cast<unsigned>(values.size());
  standin::run_grid({1, 2, n}, 32, turn, [&] { weigh(at); });
  standin::run_grid({3, 1, n}, 64, turn + 1, [&] { colours(at, channels); });
  standin::run_grid({3, 1, n}, 64, turn + 1, [&] { first_pass(at); });
  for (int round = 0; round < contrasts; ++round)
    standin::run_grid({2, 1, n}, 32, turn + 2, [&] { gray_sums(at, out, round); });
  standin::run_grid({3, 1, n}, 64, turn + 3, [&] { second_pass(at, out); });
  const auto* first = reinterpret_cast<const std::byte*>(result.data());
  return Blob(first, first + bytes);
}

Blob decode(const Decoder& decoder, const Blob& stored, uint64_t draws) {
  Kept slot(decoder.output().dtype);
  SampleContext context;
  context.begin(Key(draws), 0, 0, 0, "");
  const Bytes input(stored);
  const Status status = decoder.run({&input, 1}, context, slot);
  EXPECT_TRUE(status.ok()) << status.text();
  return slot.bytes;
}

std::unique_ptr<Decoder> make(const std::vector<Step>& steps, std::map<std::string, Param> options,
                              const std::shared_ptr<LateWork>& late) {
  FieldSpec spec{
      .name = "image", .what = "image", .options = Params(std::move(options)), .steps = steps};
  spec.late = late;
  auto made = make_decoder(spec);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? std::move(made).value() : nullptr;
}

// A program, some pictures through it; false where it failed.
void one_program(uint64_t seed, int pictures) {
  Draw draw(seed);
  std::vector<Step> steps = random_geometry(draw);
  add_changes(draw, steps);
  add_store(draw, steps);
  std::map<std::string, Param> options;
  if (draw.chance(0.2)) options.emplace("mode", std::string("L"));
  if (draw.chance(0.4)) options.emplace("orient", true);
  const auto late =
      std::make_shared<LateWork>(LateWork{std::make_shared<DecodeShare>(~0u, ShareLimits()), ""});
  const auto cpu = make(steps, options, nullptr);
  const auto device = make(steps, options, late);
  ASSERT_TRUE(cpu && device);
  ASSERT_NE(device->deferred(), nullptr) << late->why_on_cpu;
  ASSERT_FALSE(device->deferred()->has_pixels) << late->why_on_cpu;
  Blob wanted;
  std::vector<Blob> kept;
  for (int i = 0; i < pictures; ++i) {
    const fixture::JpegKind kind = random_kind(draw);
    const int most = draw.chance(0.2) ? 300 : 90;
    Blob jpeg = fixture::encode(fixture::make_image(draw.number(16, most), draw.number(16, most),
                                                    kind.channels, seed + static_cast<uint64_t>(i)),
                                kind, draw.number(1, 100));
    if (draw.chance(0.5)) jpeg = fixture::with_orientation(jpeg, draw.number(0, 9));
    const uint64_t draws = seed * 1000 + static_cast<uint64_t>(i);
    const Blob here = decode(*cpu, jpeg, draws);
    wanted.insert(wanted.end(), here.begin(), here.end());
    kept.push_back(decode(*device, jpeg, draws));
  }
  std::vector<DeferredValue> values;
  for (const Blob& value : kept) {
    values.push_back(split_deferred(value).value());
    ASSERT_EQ(values.back().picture.is_rendered, 0);
  }
  const Blob got = run_kernels(*device->deferred(), values, seed);
  ASSERT_EQ(got.size(), wanted.size());
  size_t different = 0;
  for (size_t k = 0; k < got.size(); ++k) different += got[k] != wanted[k];
  std::string names;
  for (const Step& s : steps) names += s.name + " ";
  EXPECT_EQ(different, 0u) << "HEADRACE_KERNEL_SEED=" << seed << ": " << names;
}

TEST(Kernels, random_programs_give_the_pixels_of_the_cpu_path) {
  const uint64_t first = setting("HEADRACE_KERNEL_SEED", 1);
  const uint64_t pictures = setting("HEADRACE_KERNEL_PICTURES", 300);
  constexpr int kEach = 3;
  for (uint64_t seed = first; seed < first + (pictures + kEach - 1) / kEach; ++seed) {
    one_program(seed, kEach);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

// Every sampling at every size from 16 to 40 on each axis, whole: edges are where decoders differ.
TEST(Kernels, every_small_size_of_every_sampling) {
  const auto late =
      std::make_shared<LateWork>(LateWork{std::make_shared<DecodeShare>(~0u, ShareLimits()), ""});
  for (const int width : {16, 17, 23, 31, 32, 33, 40})
    for (const int height : {16, 17, 18, 25, 32, 39})
      for (const fixture::JpegKind& kind :
           {fixture::JpegKind{"420", 2, 2}, fixture::JpegKind{"422", 2, 1},
            fixture::JpegKind{"444", 1, 1}, fixture::JpegKind{"440", 1, 2},
            fixture::JpegKind{.name = "gray", .h = 1, .v = 1, .channels = 1}}) {
        const Blob jpeg = fixture::encode(
            fixture::make_image(width, height, kind.channels, static_cast<uint64_t>(width)), kind);
        const std::vector<Step> whole{
            step("center_crop",
                 {{"size", Numbers{static_cast<double>(height), static_cast<double>(width)}}})};
        const auto cpu = make(whole, {}, nullptr);
        const auto device = make(whole, {}, late);
        const Blob value = decode(*device, jpeg, 0);
        EXPECT_EQ(run_kernels(*device->deferred(), {split_deferred(value).value()}, 7),
                  decode(*cpu, jpeg, 0))
            << kind.name << " " << width << " x " << height;
      }
}

}  // namespace
}  // namespace headrace
#endif
