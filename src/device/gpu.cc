// SPDX-License-Identifier: Apache-2.0
#include "device/gpu.h"

#include <fmt/format.h>

#include <map>

#include "device/compiler.h"

namespace headrace {
namespace {

constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;
constexpr uint64_t kKeptBytes = uint64_t{2} << 30;  // of idle device memory

struct Open {
  Mutex mu;
  std::map<int, std::shared_ptr<Gpu>> gpus HEADRACE_GUARDED_BY(mu);
};

}  // namespace

Gpu::Gpu(const CudaDriver& driver, CudaContext context, int index, std::string name, int capability)
    : driver_(driver),
      context_(context),
      index_(index),
      name_(std::move(name)),
      capability_(capability),
      memory_(DeviceMemory::make(driver, context, kKeptBytes)),
      pinned_(pinned_arena_of(driver, context)) {}

Result<std::shared_ptr<Gpu>> Gpu::open(int index) {
  static auto& open = *new Open;  // never destroyed: the driver may be gone before
  HEADRACE_ASSIGN(const CudaDriver* driver, cuda_driver());
  MutexLock lock(open.mu);
  std::shared_ptr<Gpu>& known = open.gpus[index];
  if (known) return known;
  int count = 0;
  HEADRACE_TRY(driver->check(driver->device_count(&count), "cuDeviceGetCount"));
  if (index < 0 || index >= count)
    return invalid(
        fmt::format("there is no device cuda:{}: this process sees {} (CUDA_VISIBLE_DEVICES"
                    " and nvidia-smi tell which)",
                    index, count == 0 ? "none" : fmt::format("{}", count)));
  int device = 0;
  HEADRACE_TRY(driver->check(driver->device_get(&device, index), "cuDeviceGet"));
  std::string name(128, '\0');
  HEADRACE_TRY(driver->check(driver->device_name(name.data(), 128, device), "cuDeviceGetName"));
  name.resize(name.find('\0'));
  int major = 0;
  int minor = 0;
  HEADRACE_TRY(driver->check(driver->device_attribute(&major, kCapabilityMajor, device),
                             "cuDeviceGetAttribute"));
  HEADRACE_TRY(driver->check(driver->device_attribute(&minor, kCapabilityMinor, device),
                             "cuDeviceGetAttribute"));
  CudaContext context = nullptr;
  HEADRACE_TRY(
      driver->check(driver->primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  known.reset(new Gpu(*driver, context, index, std::move(name), 10 * major + minor));
  return known;
}

Result<uint64_t> Gpu::free_bytes() const {
  const CudaCurrent current(driver_, context_);
  size_t free = 0;
  size_t total = 0;
  HEADRACE_TRY(driver_.check(driver_.memory_info(&free, &total), "cuMemGetInfo"));
  return uint64_t{free};
}

Result<Gpu::Kernels> Gpu::load_kernels() const {
  const CudaCurrent current(driver_, context_);
  CudaModule module = nullptr;
  HEADRACE_ASSIGN(std::vector<char> code,
                  compile_kernels(picture_kernels(), capability_, kernel_cache()));
  if (driver_.module_load(&module, code.data()) != 0) {
    // What was kept may be damaged.
    HEADRACE_ASSIGN(code, compile_kernels(picture_kernels(), capability_, ""));
    HEADRACE_TRY(driver_.check(driver_.module_load(&module, code.data()), "cuModuleLoadData"));
  }
  Kernels out;
  const std::pair<const char*, CudaFunction*> wanted[] = {{"weigh", &out.weigh},
                                                          {"colours", &out.colours},
                                                          {"first_pass", &out.first_pass},
                                                          {"gray_sums", &out.gray_sums},
                                                          {"second_pass", &out.second_pass},
                                                          {"mix", &out.mix}};
  for (const auto& [name, function] : wanted)
    HEADRACE_TRY(driver_.check(driver_.module_function(function, module, name), name));
  return out;
}

Result<const Gpu::Kernels*> Gpu::kernels() const {
  MutexLock lock(mu_);
  if (!kernels_) kernels_ = std::make_unique<Result<Kernels>>(load_kernels());
  if (!kernels_->ok()) return kernels_->status();
  return &kernels_->value();
}

Result<std::shared_ptr<JpegEngines>> Gpu::engines() const {
  MutexLock lock(mu_);
  if (!engines_) {
    const CudaCurrent current(driver_, context_);
    engines_ = std::make_unique<Result<std::shared_ptr<JpegEngines>>>(JpegEngines::open());
  }
  if (!engines_->ok()) return engines_->status();
  return engines_->value();
}

}  // namespace headrace
