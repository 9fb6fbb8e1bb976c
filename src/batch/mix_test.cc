// SPDX-License-Identifier: Apache-2.0
#include "batch/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace headrace {
namespace {

// Mean 1/2, variance 1/(4(2a+1)), and the right share beyond 0.9: 0.1 for a = 1, by symmetry and
// the arcsine law 0.2048 for a = 1/2.
TEST(MixTest, SharesAreDrawnFromBeta) {
  for (const double a : {0.01, 0.2, 0.5, 1.0, 4.0}) {
    constexpr int kDraws = 100000;
    double sum = 0, squares = 0, high = 0;
    for (int i = 0; i < kDraws; ++i) {
      Rng rng{Key(3).with(static_cast<uint64_t>(i))};
      const double x = draw_beta(a, rng);
      ASSERT_TRUE(x >= 0 && x <= 1) << a;
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
      high += x > 0.9 ? 1 : 0;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.006) << a;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * a + 1)), 0.004) << a;
    if (a == 1.0) {
      EXPECT_NEAR(high / kDraws, 0.1, 0.004);
    }
    if (a == 0.5) {
      EXPECT_NEAR(high / kDraws, 1 - 2 / M_PI * std::asin(std::sqrt(0.9)), 0.004);
    }
  }
}

TEST(MixTest, HalvesComeBackAsTheyWere) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7c00u) != 0x7c00u) {
      EXPECT_EQ(to_f16(from_f16(half)), half);
    }
    if ((half & 0x7f80u) != 0x7f80u) {
      EXPECT_EQ(to_bf16(from_bf16(half)), half);
    }
  }
}

Batch batch_of(size_t n) {
  Batch batch;
  Column pictures, labels;
  pictures.dtype = DType::kF32;
  pictures.shape = {static_cast<int64_t>(n), 1, 2, 3};
  pictures.values = std::make_shared<Buffer>(n * 6 * sizeof(float));
  labels.dtype = DType::kI64;
  labels.shape = {static_cast<int64_t>(n)};
  labels.values = std::make_shared<Buffer>(n * sizeof(int64_t));
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < 6; ++k) {
      const auto v = static_cast<float>(i);
      std::memcpy(pictures.values->data() + (6 * i + k) * sizeof(float), &v, sizeof(float));
    }
    const auto label = static_cast<int64_t>(i);
    std::memcpy(labels.values->data() + i * sizeof(int64_t), &label, sizeof(label));
    batch.indices.push_back(label);
  }
  batch.columns = {pictures, labels};
  return batch;
}

const std::vector<ColumnSpec> kColumns{{"image", {DType::kF32, {1, 2, 3}}, Packing::kDense},
                                       {"label", {DType::kI64, {}}, Packing::kDense}};

float number(const Column& column, size_t i) {
  float v = 0;
  std::memcpy(&v, column.values->data() + i * sizeof(float), sizeof(v));
  return v;
}

// Labels are 0, 1, …, and the pixels of picture i are i: so both must tell the same shares.
TEST(MixTest, PicturesAndLabelsAreMixedAlike) {
  const auto pool = BufferPool::make(0);
  for (const char* kind : {"mixup", "cutmix"}) {
    const auto step = make_mix({.kinds = {{kind}}, .classes = 5}, kColumns).value();
    for (uint64_t key = 0; key < 50; ++key) {
      Batch batch = batch_of(5);
      ASSERT_TRUE(step->apply(batch, Key(key), *pool).ok());
      const Column& labels = batch.columns[1];
      ASSERT_EQ(labels.shape, (std::vector<int64_t>{5, 5}));
      for (size_t i = 0; i < 5; ++i) {
        float wanted = 0, mean = 0;
        for (size_t c = 0; c < 5; ++c) wanted += static_cast<float>(c) * number(labels, 5 * i + c);
        for (size_t k = 0; k < 6; ++k) mean += number(batch.columns[0], 6 * i + k) / 6;
        EXPECT_NEAR(mean, wanted, 1e-5) << kind << " " << i;
      }
    }
  }
}

TEST(MixTest, ASampleAloneIsLeftAlone) {
  const auto pool = BufferPool::make(0);
  const auto step = make_mix({.kinds = {{"mixup"}}, .classes = 1}, kColumns).value();
  Batch batch = batch_of(1);
  ASSERT_TRUE(step->apply(batch, Key(1), *pool).ok());
  EXPECT_EQ(number(batch.columns[1], 0), 1.0f);
}

TEST(MixTest, ALabelBeyondTheClassesIsNamed) {
  const auto pool = BufferPool::make(0);
  const auto step = make_mix({.kinds = {{"cutmix"}}, .classes = 3}, kColumns).value();
  Batch batch = batch_of(5);
  EXPECT_EQ(
      step->apply(batch, Key(1), *pool).message(),
      "field 'label': the label 3 of sample 3 is not in 0 to 2, the 3 classes given to cutmix");
}

}  // namespace
}  // namespace headrace
