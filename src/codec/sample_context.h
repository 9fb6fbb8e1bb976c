// SPDX-License-Identifier: Apache-2.0
//
// SampleContext: one sample on its way through the decoders of its fields, one after the other, on
// one thread.  It names the sample's randomness, and it is where a decoder leaves what a later
// field of the same sample needs: the geometry applied to a picture, a picture already decoded.
//
//   context.begin(draws, epoch, sample, source, key);     // once for each sample
//   for (field …) decoder.run(inputs, context, slot);     // context.part<AppliedGeometry>()
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <typeindex>
#include <vector>

#include "base/rng.h"

namespace headrace {

// What decoders keep in a context.  begin_sample() forgets the last sample and keeps the memory.
template <typename T>
concept SamplePart = std::default_initializable<T> && requires(T& part) { part.begin_sample(); };

// One thread at a time: the thread that decodes keeps one and begins it anew for each sample.
class SampleContext {
 public:
  SampleContext() = default;
  SampleContext(const SampleContext&) = delete;
  SampleContext& operator=(const SampleContext&) = delete;

  // `source` is the number of the source in a mixture.  `key` lives until the next begin(); it is
  // empty where no field asked for it.
  void begin(Key draws, uint64_t epoch, uint64_t sample, uint32_t source, std::string_view key) {
    draws_ = draws;
    epoch_ = epoch;
    sample_ = sample;
    source_ = source;
    key_ = key;
    for (const auto& part : parts_) part->begin_sample();
  }

  // Names the randomness of what is decoded: the sample's, or one value's (ScopedDraws).
  Key draws() const { return draws_; }
  uint64_t epoch() const { return epoch_; }
  uint64_t sample() const { return sample_; }
  uint32_t source() const { return source_; }
  std::string_view key() const { return key_; }

  // Whether its values are made here and now, whatever could be left to a later stage: such a stage
  // found that it cannot make one of them.  Until it is set otherwise.
  bool stays_on_cpu() const { return stays_on_cpu_; }
  void set_stays_on_cpu(bool stays) { stays_on_cpu_ = stays; }

  // The T of this context, made when it is first asked for.
  template <SamplePart T>
  T& part() {
    const std::type_index type(typeid(T));
    for (const auto& held : parts_)  // two or three at most
      if (held->type == type) return static_cast<HeldPart<T>&>(*held).part;
    auto made = std::make_unique<HeldPart<T>>(type);
    T& out = made->part;
    parts_.push_back(std::move(made));
    return out;
  }

 private:
  friend class ScopedDraws;

  struct AnyPart {
    explicit AnyPart(std::type_index t) : type(t) {}
    virtual ~AnyPart() = default;
    virtual void begin_sample() = 0;
    const std::type_index type;
  };
  template <typename T>
  struct HeldPart final : AnyPart {
    using AnyPart::AnyPart;
    void begin_sample() override { part.begin_sample(); }
    T part;
  };

  Key draws_{0};
  uint64_t epoch_ = 0;
  uint64_t sample_ = 0;
  uint32_t source_ = 0;
  std::string_view key_;
  bool stays_on_cpu_ = false;
  std::vector<std::unique_ptr<AnyPart>> parts_;
};

// Other draws for the time it lives: those of one value of a field that has many.
class ScopedDraws {
 public:
  ScopedDraws(SampleContext& context, Key draws) : context_(context), before_(context.draws_) {
    context_.draws_ = draws;
  }
  ~ScopedDraws() { context_.draws_ = before_; }
  ScopedDraws(const ScopedDraws&) = delete;
  ScopedDraws& operator=(const ScopedDraws&) = delete;

 private:
  SampleContext& context_;
  const Key before_;
};

}  // namespace headrace
