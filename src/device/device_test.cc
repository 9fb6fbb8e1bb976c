// SPDX-License-Identifier: Apache-2.0
//
// The whole way to the device, over libraries that stand in for the GPU's (tests/standin).
#include "base/have.h"
#if HEADRACE_HAVE_JPEG && defined(HEADRACE_STANDINS)
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <future>

#include "batch/mix.h"
#include "codec/jpeg_fixture.h"
#include "codec/sample_context.h"
#include "device/compiler.h"
#include "device/device_stage.h"
#include "device/picture_work.h"
#include "transform/program/program.h"

namespace headrace {
namespace {

using Blob = std::vector<std::byte>;

class Environment final : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("HEADRACE_CUDA_PATH", HEADRACE_STANDINS, 1);
    setenv("HEADRACE_STANDIN_DELAY_US", "300", 1);
    setenv("HEADRACE_STANDIN_TEMPER", "threads", 0);
    setenv("XDG_CACHE_HOME", (::testing::TempDir() + "headrace-device-test").c_str(), 1);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new Environment);

class Kept final : public Slot {
 public:
  explicit Kept(DType dtype) : item_(size_of(dtype)) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    size_t n = item_;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    buffer = std::make_shared<Buffer>(n);
    return buffer->span();
  }
  SharedBuffer buffer;

 private:
  const size_t item_;
};

Step step(std::string name, std::map<std::string, Param> params = {}) {
  return {std::move(name), Params(std::move(params))};
}

std::shared_ptr<LateWork> late_work(unsigned samplings = ~0u, ShareLimits limits = {}) {
  return std::make_shared<LateWork>(LateWork{std::make_shared<DecodeShare>(samplings, limits), ""});
}

std::unique_ptr<Decoder> make(std::vector<Step> steps, std::shared_ptr<LateWork> late,
                              std::map<std::string, Param> options = {}) {
  FieldSpec spec{.name = "image",
                 .what = "image",
                 .options = Params(std::move(options)),
                 .steps = std::move(steps)};
  spec.late = std::move(late);
  return make_decoder(spec).value();
}

SharedBuffer decode(const Decoder& decoder, const Blob& stored, uint64_t draw) {
  Kept slot(decoder.output().dtype);
  SampleContext context;
  context.begin(Key(draw), 0, 0, 0, "");
  const Bytes input(stored);
  const Status status = decoder.run({&input, 1}, context, slot);
  EXPECT_TRUE(status.ok()) << status.text();
  return slot.buffer;
}

std::shared_ptr<Gpu> gpu() {
  auto opened = Gpu::open(0);
  EXPECT_TRUE(opened.ok()) << opened.status().text();
  return opened.value();
}

Blob to_host(const Column& column) {
  Blob out(column.values->size());
  if (column.ready) {
    EXPECT_TRUE(column.ready->wait().ok());
  }
  const CudaDriver& d = gpu()->driver();
  const CudaCurrent current(d, gpu()->context());
  EXPECT_EQ(d.copy_to_host(out.data(), reinterpret_cast<CudaAddress>(column.values->data()),
                           out.size(), nullptr),
            0);
  EXPECT_EQ(d.stream_synchronize(nullptr), 0);
  return out;
}

// What the stand-in of the driver tells of itself.
template <typename F>
F standin(const char* name) {
  void* library = dlopen(HEADRACE_STANDINS "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr);
  return reinterpret_cast<F>(dlsym(library, name));
}

// A batch through a stage; the status it ends with.
Status through(const BatchStage& stage, Batch& batch) {
  const auto pool = BufferPool::make(0);
  std::promise<Status> ended;
  stage.start(std::make_unique<Batch>(std::move(batch)), Key(0), *pool,
              [&](Status status, std::unique_ptr<Batch> back) {
                batch = std::move(*back);
                ended.set_value(std::move(status));
              });
  return ended.get_future().get();
}

std::vector<fixture::JpegKind> kinds() {
  return {{"420", 2, 2},
          {"422", 2, 1},
          {"444", 1, 1},
          {"440", 1, 2},
          {.name = "gray", .h = 1, .v = 1, .channels = 1},
          {.name = "420 with restarts", .h = 2, .v = 2, .restart_blocks = 3},
          {.name = "progressive", .h = 2, .v = 2, .progressive = true},
          {.name = "CMYK", .h = 1, .v = 1, .channels = 4},
          {"411", 4, 1}};
}

std::vector<Blob> pictures() {
  std::vector<Blob> out;
  uint64_t seed = 0;
  for (const fixture::JpegKind& kind : kinds())
    for (const auto& [width, height] :
         {std::pair(97, 75), std::pair(64, 48), std::pair(17, 130), std::pair(150, 33)}) {
      ++seed;
      const Blob jpeg = fixture::encode(fixture::make_image(width, height, kind.channels, seed),
                                        kind, 50 + static_cast<int>(seed * 7 % 50));
      out.push_back(fixture::with_orientation(jpeg, static_cast<int>(seed % 10)));
    }
  return out;
}

// Equal bytes from both ways, for every picture, with draws of each.
void expect_equal(const std::vector<Step>& steps, std::map<std::string, Param> options = {}) {
  const auto cpu = make(steps, nullptr, options);
  const auto late = late_work();
  const auto device = make(steps, late, options);
  ASSERT_NE(device->deferred(), nullptr) << late->why_on_cpu;
  const DeferredSpec& spec = *device->deferred();
  DeviceStageOptions asked;
  asked.scratch_bytes = 200'000;  // several parts
  asked.columns = {spec};
  const auto stage = make_device_stage(gpu(), asked).value();
  const std::vector<Blob> all = pictures();
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    Batch batch;
    Column& column = batch.columns.emplace_back();
    Blob wanted;
    column.packing = spec.has_pixels ? Packing::kDense : Packing::kList;
    auto dense =
        std::make_shared<Buffer>(all.size() * device->output().bytes() * (spec.has_pixels ? 1 : 0));
    for (size_t i = 0; i < all.size(); ++i) {
      const uint64_t draw = epoch * 1000 + i;
      const SharedBuffer here = decode(*cpu, all[i], draw);
      wanted.insert(wanted.end(), here->data(), here->data() + here->size());
      const SharedBuffer there = decode(*device, all[i], draw);
      if (spec.has_pixels)
        std::memcpy(dense->data() + i * there->size(), there->data(), there->size());
      else
        column.items.push_back(there);
    }
    if (spec.has_pixels) {
      column.values = dense;
      column.shape = device->output().shape;
      column.shape.insert(column.shape.begin(), static_cast<int64_t>(all.size()));
    }
    const Status status = through(*stage, batch);
    ASSERT_TRUE(status.ok()) << status.text();
    const Blob got = to_host(batch.columns[0]);
    ASSERT_EQ(got.size(), wanted.size());
    size_t different = 0;
    for (size_t k = 0; k < got.size(); ++k) different += got[k] != wanted[k];
    EXPECT_EQ(different, 0u) << "epoch " << epoch;
  }
}

TEST(Device, the_engines_are_checked_against_the_cpu) {
  std::string why;
  EXPECT_EQ(samplings_of(gpu(), why), 31u) << why;
}

TEST(Device, random_crops_are_those_of_the_cpu) {
  expect_equal(
      {step("random_resized_crop", {{"size", std::vector<double>{24}}}), step("random_flip")});
}

TEST(Device, floats_and_layouts_are_those_of_the_cpu) {
  const std::vector<double> mean{0.485, 0.456, 0.406};
  const std::vector<double> deviation{0.229, 0.224, 0.225};
  for (const char* dtype : {"f32", "f16", "bf16"})
    for (const char* order : {"NCHW", "NHWC"})
      expect_equal({step("resize", {{"size", std::vector<double>{19, 23}}}),
                    step("random_vertical_flip"),
                    step("normalize", {{"mean", mean}, {"std", deviation}}),
                    step("cast", {{"dtype", std::string(dtype)}}),
                    step("layout", {{"order", std::string(order)}})});
}

TEST(Device, filters_windows_and_borders_are_those_of_the_cpu) {
  for (const char* filter : {"nearest", "bilinear", "bicubic", "lanczos"})
    expect_equal(
        {step("resize", {{"size", std::vector<double>{40}}, {"filter", std::string(filter)}}),
         step("center_crop", {{"size", std::vector<double>{30, 34}}})});
  for (const char* border : {"constant", "edge", "reflect", "symmetric"})
    expect_equal({step("random_crop", {{"size", std::vector<double>{40}},
                                       {"padding", std::vector<double>{11}},
                                       {"padding_mode", std::string(border)},
                                       {"pad_if_needed", true}})});
}

TEST(Device, gray_results_are_those_of_the_cpu) {
  expect_equal({step("random_resized_crop", {{"size", std::vector<double>{24}}})},
               {{"mode", std::string("L")}});
}

TEST(Device, colours_that_change_are_those_of_the_cpu) {
  const std::vector<Step> steps{
      step("random_resized_crop", {{"size", std::vector<double>{24}}}),
      step("color_jitter", {{"brightness", std::vector<double>{0.4}},
                            {"contrast", std::vector<double>{0.9}},
                            {"saturation", std::vector<double>{0.4}},
                            {"hue", std::vector<double>{0.2}}}),
      step("random_grayscale", {{"p", 0.3}}),
      step("random_erasing", {{"p", 0.6}, {"value", std::string("random")}}),
      step("color_jitter", {{"contrast", std::vector<double>{0.5}}, {"p", 0.5}}),
      step("random_flip"),
      step("random_vertical_flip")};
  expect_equal(steps);
  expect_equal(steps, {{"mode", std::string("L")}});
  expect_equal({steps[0], step("random_erasing", {{"p", 1.0}, {"value", std::vector<double>{9}}}),
                step("random_flip")});
}

TEST(Device, pictures_are_turned_as_on_the_cpu) {
  expect_equal({step("random_resized_crop", {{"size", std::vector<double>{20, 31}}})},
               {{"orient", true}});
}

TEST(Device, steps_that_the_device_has_not_are_named) {
  for (const auto& [steps, wanted] : std::vector<std::pair<std::vector<Step>, std::string>>{
           {{step("resize", {{"size", std::vector<double>{24, 24}}}), step("random_invert")},
            "step 2 random_invert: it changes pixels, and the device does not know how"},
           {{step("resize", {{"size", std::vector<double>{24, 24}}}), step("random_grayscale"),
             step("center_crop", {{"size", std::vector<double>{9}}})},
            "step 3 center_crop: after a change of pixels the device only flips"},
           {{step("resize", {{"size", std::vector<double>{24, 24}}}),
             step("resize", {{"size", std::vector<double>{9, 9}}})},
            "step 2 resize: one step may resample on the device"}}) {
    const auto late = late_work();
    make(steps, late);
    EXPECT_NE(late->why_on_cpu.find(wanted), std::string::npos) << late->why_on_cpu;
  }
}

TEST(Device, what_the_cpu_must_do_is_finished_on_the_device) {
  expect_equal({step("random_resized_crop", {{"size", std::vector<double>{24}}}),
                step("random_invert"),
                step("normalize",
                     {{"mean", std::vector<double>{0.5}}, {"std", std::vector<double>{0.25}}})});
}

TEST(Device, the_cpu_takes_over_where_pictures_wait) {
  const auto late = late_work(~0u, {.least_waiting = 2, .threads = 8});
  const auto decoder =
      make({step("random_resized_crop", {{"size", std::vector<double>{24}}})}, late);
  decode(*decoder, pictures()[0], 1);  // comes to no stage: its batch was given up
  {
    const WaitingPictures one(late->share, 1);
    decode(*decoder, pictures()[0], 1);
    EXPECT_EQ(late->share->on_device(), 2u);
    const WaitingPictures another(late->share, 1);
    for (const Blob& picture : pictures()) decode(*decoder, picture, 1);
    EXPECT_EQ(late->share->on_device(), 2u);
    EXPECT_EQ(late->share->on_cpu(), pictures().size());
  }
  decode(*decoder, pictures()[0], 1);
  EXPECT_EQ(late->share->on_device(), 3u);
}

TEST(Device, a_damaged_picture_ends_the_batch_with_its_error) {
  const auto decoder = make({step("resize", {{"size", std::vector<double>{24, 24}}})}, late_work());
  Blob bad = pictures()[0];
  bad.resize(bad.size() * 3 / 4);  // and a last mark all the same: only decoding tells
  while (bad.back() == std::byte{0xff}) bad.pop_back();
  bad.insert(bad.end(), {std::byte{0xff}, std::byte{0xd9}});
  DeviceStageOptions asked;
  asked.columns = {*decoder->deferred()};
  const auto stage = make_device_stage(gpu(), asked).value();
  Batch batch;
  Column& column = batch.columns.emplace_back();
  column.packing = Packing::kList;
  column.items = {decode(*decoder, pictures()[0], 1), decode(*decoder, bad, 2)};
  const Status status = through(*stage, batch);
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.text();
  EXPECT_TRUE(batch.decode_again);  // the CPU's decoders name it
}

// The same batch, mixed by the CPU and by the device.
TEST(Device, pictures_are_mixed_as_on_the_cpu) {
  const std::vector<Blob> all = pictures();
  for (const char* kind : {"mixup", "cutmix"})
    for (const char* dtype : {"f32", "f16", "bf16", "u8"})
      for (const char* order : {"NCHW", "NHWC"}) {
        if (std::string(kind) == "mixup" && std::string(dtype) == "u8") continue;
        std::vector<Step> steps{step("random_resized_crop", {{"size", std::vector<double>{24}}})};
        if (std::string(dtype) != "u8")
          steps.push_back(step("cast", {{"dtype", std::string(dtype)}}));
        steps.push_back(step("layout", {{"order", std::string(order)}}));
        const auto cpu = make(steps, nullptr);
        const auto device = make(steps, late_work());
        const DeferredSpec& spec = *device->deferred();
        MixOptions how;
        how.kinds = {{kind, 0.8, 1}};
        how.classes = 10;
        how.channels_last = std::string(order) == "NHWC";
        const ColumnSpec columns[] = {{"image", spec.result}, {"label", {DType::kI64, {}}}};
        const auto here = make_mix(how, columns).value();
        how.pictures_later = true;
        const auto later = make_mix(how, columns).value();
        DeviceStageOptions asked;
        asked.columns = {spec, std::nullopt};
        const auto stage = make_device_stage(gpu(), asked).value();
        const auto pool = BufferPool::make(0);
        for (uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{9}}) {
          Batch on_cpu;
          Batch on_device;
          for (Batch* batch : {&on_cpu, &on_device}) {
            batch->columns.resize(2);
            batch->indices.resize(n);
            batch->columns[1].dtype = DType::kI64;
            batch->columns[1].shape = {static_cast<int64_t>(n)};
            batch->columns[1].values = std::make_shared<Buffer>(8 * n);
            for (uint64_t i = 0; i < n; ++i) {
              const auto label = static_cast<int64_t>(i % 10);
              std::memcpy(batch->columns[1].values->data() + 8 * i, &label, 8);
            }
          }
          Column& made = on_cpu.columns[0];
          made.dtype = spec.result.dtype;
          made.shape = spec.result.shape;
          made.shape.insert(made.shape.begin(), static_cast<int64_t>(n));
          made.values = std::make_shared<Buffer>(n * spec.result.bytes());
          on_device.columns[0].packing = Packing::kList;
          for (uint64_t i = 0; i < n; ++i) {
            const SharedBuffer value = decode(*cpu, all[i], 50 * n + i);
            std::memcpy(made.values->data() + i * value->size(), value->data(), value->size());
            on_device.columns[0].items.push_back(decode(*device, all[i], 50 * n + i));
          }
          ASSERT_TRUE(here->apply(on_cpu, Key(n), *pool).ok());
          ASSERT_TRUE(later->apply(on_device, Key(n), *pool).ok());
          const Status status = through(*stage, on_device);
          ASSERT_TRUE(status.ok()) << status.text();
          for (size_t c = 0; c < 2; ++c) {
            const Bytes wanted = on_cpu.columns[c].values->bytes();
            EXPECT_EQ(to_host(on_device.columns[c]), Blob(wanted.begin(), wanted.end()))
                << kind << " " << dtype << " " << order << " " << n;
          }
        }
      }
}

// Every byte of many batches, with a consumer that holds on to some for a while.
TEST(Device, buffers_come_back_only_when_nobody_reads_them) {
  const CudaDriver& d = gpu()->driver();
  const CudaCurrent current(d, gpu()->context());
  DeviceStageOptions asked;
  asked.workers = 3;
  asked.columns = {std::nullopt};
  const auto stage = make_device_stage(gpu(), asked).value();
  const auto pool = BufferPool::make(1 << 20, gpu()->pinned());
  CudaStream consumer = nullptr;
  ASSERT_EQ(d.stream_create(&consumer, 1), 0);
  constexpr size_t kElements = 5000;
  std::vector<Blob> seen(400);
  std::vector<Batch> held;
  for (size_t n = 0; n < seen.size(); ++n) {
    Batch batch;
    Column& column = batch.columns.emplace_back();
    column.values = pool->take(kElements);
    column.shape = {static_cast<int64_t>(kElements)};
    std::memset(column.values->data(), static_cast<int>(n % 251), kElements);
    ASSERT_TRUE(through(*stage, batch).ok());
    // As a framework does it: the stream waits, a kernel reads, the tensor is let go of.
    const auto& event = static_cast<const CudaEvent&>(*batch.columns[0].ready);
    ASSERT_TRUE(event.hold_up(consumer).ok());
    DeviceMemory::consumed_in(batch.columns[0].values, consumer);
    seen[n].resize(kElements);
    held.push_back(std::move(batch));
    d.copy_to_host(seen[n].data(),
                   reinterpret_cast<CudaAddress>(held.back().columns[0].values->data()), kElements,
                   consumer);
    if (n % 7 == 3) held.clear();
  }
  ASSERT_EQ(d.stream_synchronize(consumer), 0);
  for (size_t n = 0; n < seen.size(); ++n)
    ASSERT_EQ(seen[n], Blob(kElements, static_cast<std::byte>(n % 251))) << "batch " << n;
  held.clear();
  d.stream_destroy(consumer);
}

// Batches of both kinds, handed over without waiting for any: their host memory comes from a pool,
// and goes back to it while the device has yet to read it, unless someone keeps it.
TEST(Device, many_batches_are_under_way_at_a_time) {
  const std::vector<Step> steps{step("resize", {{"size", std::vector<double>{24, 24}}}),
                                step("random_invert")};
  const auto pixels = make(steps, late_work());
  const auto bytes = make({steps[0]}, late_work());
  ASSERT_TRUE(pixels->deferred()->has_pixels);
  ASSERT_FALSE(bytes->deferred()->has_pixels);
  DeviceStageOptions asked;
  asked.workers = 1;
  asked.columns = {*pixels->deferred(), *bytes->deferred(), std::nullopt};
  const auto pool = BufferPool::make(16 << 20, gpu()->pinned());
  const std::vector<Blob> all = pictures();
  const auto cpu = make(steps, nullptr);
  const auto plain = make({steps[0]}, nullptr);
  constexpr size_t kBatches = 60, kEach = 4, kAhead = 6;
  const auto pooled = [&](const SharedBuffer& from) {
    SharedBuffer out = pool->take(from->size());
    std::memcpy(out->data(), from->data(), from->size());
    return out;
  };
  const auto batch_of = [&](size_t n) {
    auto batch = std::make_unique<Batch>();
    batch->columns.resize(3);
    const size_t each = pixels->output().bytes();
    batch->columns[0].values = pool->take(kEach * each);
    batch->columns[0].shape = pixels->output().shape;
    batch->columns[0].shape.insert(batch->columns[0].shape.begin(), kEach);
    batch->columns[1].packing = Packing::kList;
    for (size_t i = 0; i < kEach; ++i) {
      const Blob& picture = all[(n * kEach + i) % all.size()];
      const SharedBuffer made = decode(*pixels, picture, n * kEach + i);
      std::memcpy(batch->columns[0].values->data() + i * each, made->data(), each);
      batch->columns[1].items.push_back(pooled(decode(*bytes, picture, n * kEach + i)));
    }
    batch->columns[2].values = pool->take(1000);
    batch->columns[2].shape = {1000};
    std::memset(batch->columns[2].values->data(), static_cast<int>(n), 1000);
    return batch;
  };
  std::vector<std::unique_ptr<Batch>> back(kBatches);
  std::promise<void> ended;
  const auto none = BufferPool::make(0);
  const auto stage = make_device_stage(gpu(), asked).value();
  size_t done = 0;
  // Each that is handed over makes the next: some are always waiting, so that the stage does not.
  std::function<void(size_t)> start = [&](size_t n) {
    stage->start(batch_of(n), Key(0), *none, [&, n](Status status, std::unique_ptr<Batch> batch) {
      EXPECT_TRUE(status.ok()) << status.text();
      back[n] = std::move(batch);
      if (n + kAhead < kBatches) start(n + kAhead);
      if (++done == kBatches) ended.set_value();
    });
  };
  for (size_t n = 0; n < kAhead; ++n) start(n);
  ended.get_future().get();
  for (size_t n = 0; n < kBatches; ++n) {
    Blob wanted[2];
    for (size_t i = 0; i < kEach; ++i) {
      const Blob& picture = all[(n * kEach + i) % all.size()];
      for (const auto& [which, decoder] : {std::pair(0, cpu.get()), std::pair(1, plain.get())}) {
        const SharedBuffer here = decode(*decoder, picture, n * kEach + i);
        wanted[which].insert(wanted[which].end(), here->data(), here->data() + here->size());
      }
    }
    EXPECT_EQ(to_host(back[n]->columns[0]), wanted[0]) << "batch " << n;
    EXPECT_EQ(to_host(back[n]->columns[1]), wanted[1]) << "batch " << n;
    EXPECT_EQ(to_host(back[n]->columns[2]), Blob(1000, static_cast<std::byte>(n)));
  }
}

// A batch may outlive the Loader that made it, and the stream that wrote it.
TEST(Device, a_batch_may_outlive_its_stage) {
  DeviceStageOptions asked;
  asked.columns = {std::nullopt};
  const auto pool = BufferPool::make(1 << 20, gpu()->pinned());
  std::vector<Batch> held;
  {
    const auto stage = make_device_stage(gpu(), asked).value();
    for (int n = 0; n < 8; ++n) {
      Batch batch;
      Column& column = batch.columns.emplace_back();
      column.values = pool->take(3000);
      column.shape = {3000};
      std::memset(column.values->data(), n, 3000);
      ASSERT_TRUE(through(*stage, batch).ok());
      held.push_back(std::move(batch));
    }
  }
  for (int n = 0; n < 8; ++n)
    EXPECT_EQ(to_host(held[static_cast<size_t>(n)].columns[0]),
              Blob(3000, static_cast<std::byte>(n)));
  held.clear();  // none was said to be consumed anywhere: they go back by their own stream
  standin<void (*)()>("standin_check")();
}

// Pictures that the engines refuse among others that they have begun with.
TEST(Device, pictures_that_the_engines_refuse_are_made_by_the_cpu) {
  const std::vector<Step> steps{step("random_resized_crop", {{"size", std::vector<double>{24}}})};
  const auto cpu = make(steps, nullptr);
  const auto decoder = make(steps, late_work());
  DeviceStageOptions asked;
  asked.columns = {*decoder->deferred()};
  const auto stage = make_device_stage(gpu(), asked).value();
  setenv("HEADRACE_STANDIN_REFUSES", "3", 1);  // every third call
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    Batch batch;
    Column& column = batch.columns.emplace_back();
    column.packing = Packing::kList;
    Blob wanted;
    const std::vector<Blob> all = pictures();
    for (size_t i = 0; i < all.size(); ++i) {
      column.items.push_back(decode(*decoder, all[i], epoch * 1000 + i));
      const SharedBuffer here = decode(*cpu, all[i], epoch * 1000 + i);
      wanted.insert(wanted.end(), here->data(), here->data() + here->size());
    }
    const Status status = through(*stage, batch);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(to_host(batch.columns[0]), wanted) << "epoch " << epoch;
  }
  unsetenv("HEADRACE_STANDIN_REFUSES");
}

// The device fails in the middle of a call, with engines at work on some of its pictures; later
// batches are right.
TEST(Device, engines_that_fail_do_not_write_into_later_batches) {
  const std::vector<Step> steps{step("random_resized_crop", {{"size", std::vector<double>{24}}})};
  const auto cpu = make(steps, nullptr);
  const auto decoder = make(steps, late_work());
  DeviceStageOptions asked;
  asked.workers = 1;
  asked.columns = {*decoder->deferred()};
  const auto stage = make_device_stage(gpu(), asked).value();
  const std::vector<Blob> all = pictures();
  int failed = 0;
  setenv("HEADRACE_STANDIN_FAILS", "7", 1);  // every seventh call, of five for a batch
  for (uint64_t n = 0; n < 6; ++n) {
    Batch batch;
    Column& column = batch.columns.emplace_back();
    column.packing = Packing::kList;
    Blob wanted;
    for (size_t i = 0; i < all.size(); ++i) {
      column.items.push_back(decode(*decoder, all[i], n * 1000 + i));
      const SharedBuffer here = decode(*cpu, all[i], n * 1000 + i);
      wanted.insert(wanted.end(), here->data(), here->data() + here->size());
    }
    const Status status = through(*stage, batch);
    if (status.ok()) {
      EXPECT_EQ(to_host(batch.columns[0]), wanted) << "batch " << n;
      continue;
    }
    ++failed;
    EXPECT_EQ(status.code(), Code::kInternal) << status.text();
    EXPECT_FALSE(batch.decode_again);
  }
  unsetenv("HEADRACE_STANDIN_FAILS");
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 6);
}

// A consumer whose streams nobody knows: it lets go of a batch that its work has yet to read.
TEST(Device, memory_of_an_unknown_consumer_is_not_written_too_early) {
  const CudaDriver& d = gpu()->driver();
  const CudaCurrent current(d, gpu()->context());
  DeviceStageOptions asked;
  asked.workers = 1;
  asked.columns = {std::nullopt};
  const auto stage = make_device_stage(gpu(), asked).value();
  CudaStream theirs = nullptr;
  ASSERT_EQ(d.stream_create(&theirs, 1), 0);
  constexpr size_t kElements = 777'777;  // of no other test's size
  std::vector<Blob> seen(30, Blob(kElements));
  for (size_t n = 0; n < seen.size(); ++n) {
    Batch batch;
    Column& column = batch.columns.emplace_back();
    column.values = std::make_shared<Buffer>(kElements);
    column.shape = {static_cast<int64_t>(kElements)};
    std::memset(column.values->data(), static_cast<int>(n), kElements);
    ASSERT_TRUE(through(*stage, batch).ok());
    ASSERT_TRUE(batch.columns[0].ready->wait().ok());  // as for JAX
    DeviceMemory::consumed_anywhere(batch.columns[0].values);
    d.copy_to_host(seen[n].data(), reinterpret_cast<CudaAddress>(batch.columns[0].values->data()),
                   kElements, theirs);
  }
  ASSERT_EQ(d.stream_synchronize(theirs), 0);
  for (size_t n = 0; n < seen.size(); ++n)
    ASSERT_EQ(seen[n], Blob(kElements, static_cast<std::byte>(n))) << "batch " << n;
  d.stream_destroy(theirs);
}

// Someone captures a CUDA graph while batches are made, delivered and let go of.
TEST(Device, a_graph_that_is_captured_is_not_broken) {
  const std::vector<Step> steps{step("random_resized_crop", {{"size", std::vector<double>{24}}})};
  const auto decoder = make(steps, late_work());
  DeviceStageOptions asked;
  asked.columns = {*decoder->deferred()};
  const auto capture = standin<void (*)(bool)>("standin_capture");
  capture(true);
  {
    const auto stage = make_device_stage(gpu(), asked).value();
    for (int n = 0; n < 6; ++n) {
      Batch batch;
      Column& column = batch.columns.emplace_back();
      column.packing = Packing::kList;
      for (const Blob& picture : pictures()) column.items.push_back(decode(*decoder, picture, 1));
      EXPECT_TRUE(through(*stage, batch).ok());
      EXPECT_TRUE(batch.columns[0].ready->wait().ok());
    }
  }
  capture(false);
}

// Many batches of pictures under way at a time, and engines that do not wait for the stream's work.
TEST(Device, engines_that_run_ahead_of_the_stream_change_no_pixel) {
  setenv("HEADRACE_STANDIN_EAGER", "1", 1);
  const std::vector<Step> steps{step("random_resized_crop", {{"size", std::vector<double>{24}}})};
  const auto cpu = make(steps, nullptr);
  const auto device = make(steps, late_work());
  DeviceStageOptions asked;
  asked.columns = {*device->deferred()};
  const auto stage = make_device_stage(gpu(), asked).value();
  const auto pool = BufferPool::make(1 << 20, gpu()->pinned());
  const std::vector<Blob> all = pictures();
  struct Going {
    Blob wanted;
    std::promise<Status> ended;
    std::unique_ptr<Batch> batch;
  };
  std::vector<Going> going(40);
  for (size_t n = 0; n < going.size(); ++n) {
    auto batch = std::make_unique<Batch>();
    Column& column = batch->columns.emplace_back();
    column.packing = Packing::kList;
    for (size_t i = n % 5; i < all.size() - n % 3; ++i) {  // the jobs lie elsewhere each time
      const SharedBuffer here = decode(*cpu, all[i], n * 1000 + i);
      going[n].wanted.insert(going[n].wanted.end(), here->data(), here->data() + here->size());
      column.items.push_back(decode(*device, all[i], n * 1000 + i));
    }
    stage->start(std::move(batch), Key(0), *pool,
                 [&g = going[n]](Status status, std::unique_ptr<Batch> back) {
                   g.batch = std::move(back);
                   g.ended.set_value(std::move(status));
                 });
  }
  for (Going& g : going) {
    const Status status = g.ended.get_future().get();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(to_host(g.batch->columns[0]), g.wanted);
  }
  unsetenv("HEADRACE_STANDIN_EAGER");
}

void run_again(const std::string& settings, const std::string& filter) {
  std::vector<char> self(4096, '\0');
  ASSERT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const std::string command = settings + " '" + self.data() + "' --gtest_filter='" + filter +
                              "' --gtest_brief=1 > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// All of the above with a device that does nothing before it is waited for: whatever is given back
// or written too early is then always seen.
TEST(DeviceThatWaits, does_the_same) {
  run_again("HEADRACE_STANDIN_TEMPER=lazy", "Device.*");
}

// And with every thread of every block, in another order each time.
TEST(DeviceOfManyThreads, does_the_same) {
  run_again("HEADRACE_STANDIN_GRID=1",
            "Device.random_crops_are_those_of_the_cpu:Device.colours_that_change*:"
            "Device.pictures_are_mixed*");
}

// tests/test_device.py finds the library of the package nvidia-cuda-nvrtc.
TEST(RealNvrtc, compiles_the_kernels_for_chips) {
  const char* folder = std::getenv("HEADRACE_NVRTC");
  if (folder == nullptr)
    GTEST_SKIP() << "no NVRTC: pip install nvidia-cuda-nvrtc, and name the folder of libnvrtc.so "
                    "in HEADRACE_NVRTC";
  setenv("HEADRACE_CUDA_PATH", folder, 1);
  for (const int capability : {80, 86, 89, 90}) {
    const auto code = compile_kernels(picture_kernels(), capability, "");
    ASSERT_TRUE(code.ok()) << code.status().text();
    EXPECT_GT(code.value().size(), 10'000u);
    EXPECT_EQ(std::memcmp(code.value().data(),
                          "\x7f"
                          "ELF",
                          4),
              0);
  }
  setenv("HEADRACE_CUDA_PATH", HEADRACE_STANDINS, 1);
}

TEST(Device, kernels_are_compiled_once) {
  const std::string folder = ::testing::TempDir() + "headrace-kernels";
  const auto first = compile_kernels(picture_kernels(), 90, folder);
  ASSERT_TRUE(first.ok()) << first.status().text();
  setenv("HEADRACE_STANDIN_NO_COMPILE", "1", 1);
  EXPECT_TRUE(compile_kernels(picture_kernels(), 90, folder).ok());
  const auto other = compile_kernels(picture_kernels(), 80, folder);
  unsetenv("HEADRACE_STANDIN_NO_COMPILE");
  EXPECT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("compute capability 8.0"), std::string::npos);
}

TEST(Device, a_device_that_is_not_there_is_named) {
  const auto none = Gpu::open(3);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().text().find("cuda:3"), std::string::npos) << none.status().text();
}

}  // namespace
}  // namespace headrace
#endif
