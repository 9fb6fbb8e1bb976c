// SPDX-License-Identifier: Apache-2.0
#include "device/jpeg_engines.h"

#include <fmt/format.h>

#include "device/library.h"

namespace headrace {

// As in nvjpeg.h, which is not there when headrace is built.
struct NvJpeg {
  int (*create)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags,
                void** handle);
  int (*destroy)(void* handle);
  int (*state_create)(void* handle, void** state);
  int (*state_destroy)(void* state);
  int (*initialize)(void* handle, void* state, int batch, int cpu_threads, int output);
  int (*decode)(void* handle, void* state, const unsigned char* const* data, const size_t* lengths,
                void* planes, CudaStream stream);
};

namespace {

constexpr int kHardware = 3;
constexpr int kPlanes = 1;  // NVJPEG_OUTPUT_YUV

Result<NvJpeg> load() {
  HEADRACE_ASSIGN(
      const SharedLibrary library,
      SharedLibrary::load({"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"}, "nvJPEG",
                          "it decodes JPEG on the GPU: pip install nvidia-nvjpeg, or name its "
                          "folder in HEADRACE_CUDA_PATH, or say decode=\"cpu\""));
  NvJpeg n{};
  HEADRACE_TRY(library.find("nvjpegCreateEx", n.create));
  HEADRACE_TRY(library.find("nvjpegDestroy", n.destroy));
  HEADRACE_TRY(library.find("nvjpegJpegStateCreate", n.state_create));
  HEADRACE_TRY(library.find("nvjpegJpegStateDestroy", n.state_destroy));
  HEADRACE_TRY(library.find("nvjpegDecodeBatchedInitialize", n.initialize));
  HEADRACE_TRY(library.find("nvjpegDecodeBatched", n.decode));
  return n;
}

Result<const NvJpeg*> nvjpeg() {
  static const auto& loaded = *new Result<NvJpeg>(load());
  if (!loaded.ok()) return loaded.status();
  return &loaded.value();
}

std::string_view meaning(int status) {
  switch (status) {
    case 3:
      return "a damaged JPEG";
    case 4:
    case 9:
      return "a kind of JPEG that the engines do not decode";
    case 5:
      return "no memory on the device";
    case 6:
      return "the decoder failed on the device";
    case 7:
      return "a chip without JPEG engines";
    case 10:
      return "a JPEG that ends early";
    default:
      return "an error";
  }
}

Status failure(int status, const char* what) {
  if (status == 0) return {};
  const std::string text = fmt::format("nvJPEG, {}: {} (status {})", what, meaning(status), status);
  if (status == 3 || status == 4 || status == 9 || status == 10) return corrupt(text);
  if (status == 7) return unsupported(text);
  return status == 5 ? exhausted(text) : internal(text);
}

}  // namespace

Result<std::shared_ptr<JpegEngines>> JpegEngines::open() {
  HEADRACE_ASSIGN(const NvJpeg* n, nvjpeg());
  void* handle = nullptr;
  if (const int status = n->create(kHardware, nullptr, nullptr, 0, &handle); status != 0)
    return unsupported(
        fmt::format("this chip decodes no JPEG by itself ({}); decode=\"cpu\" does it on the CPU",
                    failure(status, "hardware backend").message()));
  return std::shared_ptr<JpegEngines>(new JpegEngines(*n, handle));
}

JpegEngines::~JpegEngines() {
  nvjpeg_.destroy(handle_);
}

Result<std::unique_ptr<JpegBatchDecoder>> JpegBatchDecoder::make(
    std::shared_ptr<JpegEngines> engines) {
  void* state = nullptr;
  HEADRACE_TRY(failure(engines->nvjpeg_.state_create(engines->handle_, &state), "a decoder"));
  return std::unique_ptr<JpegBatchDecoder>(new JpegBatchDecoder(std::move(engines), state));
}

JpegBatchDecoder::~JpegBatchDecoder() {
  engines_->nvjpeg_.state_destroy(state_);
}

Status JpegBatchDecoder::decode(const std::vector<Bytes>& pictures, std::vector<JpegPlanes>& planes,
                                CudaStream stream) {
  const NvJpeg& n = engines_->nvjpeg_;
  MutexLock lock(engines_->calls_);
  if (prepared_ != pictures.size()) {
    prepared_ = 0;
    HEADRACE_TRY(failure(
        n.initialize(engines_->handle_, state_, static_cast<int>(pictures.size()), 1, kPlanes),
        "a batch"));
    prepared_ = pictures.size();
  }
  data_.clear();
  lengths_.clear();
  for (const Bytes picture : pictures) {
    data_.push_back(reinterpret_cast<const unsigned char*>(picture.data()));
    lengths_.push_back(picture.size());
  }
  const int status =
      n.decode(engines_->handle_, state_, data_.data(), lengths_.data(), planes.data(), stream);
  if (status != 0) prepared_ = 0;
  return failure(status, "decoding");
}

}  // namespace headrace
