// SPDX-License-Identifier: Apache-2.0
#include "device/compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "device/library.h"

namespace headrace {
namespace {

using Program = void*;

struct Nvrtc {
  int (*version)(int* major, int* minor);
  int (*create)(Program* program, const char* source, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names);
  int (*destroy)(Program* program);
  int (*compile)(Program program, int count, const char* const* options);
  int (*code_size)(Program program, size_t* bytes);
  int (*code)(Program program, char* out);
  int (*log_size)(Program program, size_t* bytes);
  int (*log)(Program program, char* out);
};

Result<Nvrtc> load() {
  HEADRACE_ASSIGN(const SharedLibrary library,
                  SharedLibrary::load({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "NVRTC",
                                      "it compiles headrace's kernels: pip install "
                                      "nvidia-cuda-nvrtc, or name its folder in "
                                      "HEADRACE_CUDA_PATH"));
  Nvrtc n{};
  HEADRACE_TRY(library.find("nvrtcVersion", n.version));
  HEADRACE_TRY(library.find("nvrtcCreateProgram", n.create));
  HEADRACE_TRY(library.find("nvrtcDestroyProgram", n.destroy));
  HEADRACE_TRY(library.find("nvrtcCompileProgram", n.compile));
  HEADRACE_TRY(library.find("nvrtcGetCUBINSize", n.code_size));
  HEADRACE_TRY(library.find("nvrtcGetCUBIN", n.code));
  HEADRACE_TRY(library.find("nvrtcGetProgramLogSize", n.log_size));
  HEADRACE_TRY(library.find("nvrtcGetProgramLog", n.log));
  return n;
}

std::string log_of(const Nvrtc& nvrtc, Program program) {
  size_t bytes = 0;
  if (nvrtc.log_size(program, &bytes) != 0 || bytes == 0) return "no log";
  std::string text(bytes, '\0');
  nvrtc.log(program, text.data());
  text.resize(bytes - 1);
  return text;
}

Result<std::vector<char>> compile(const Nvrtc& nvrtc, const std::string& source, int capability) {
  Program program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "pictures.cu", 0, nullptr, nullptr) != 0)
    return internal("NVRTC takes no program");
  const std::string chip = fmt::format("--gpu-architecture=sm_{}", capability);
  // Doubles must round as the CPU's do.
  const char* options[] = {chip.c_str(), "--fmad=false"};
  const int failed = nvrtc.compile(program, 2, options);
  size_t bytes = 0;
  std::vector<char> code;
  if (failed == 0 && nvrtc.code_size(program, &bytes) == 0) {
    code.resize(bytes);
    if (nvrtc.code(program, code.data()) != 0) code.clear();
  }
  const std::string log = failed == 0 ? "" : log_of(nvrtc, program);
  nvrtc.destroy(&program);
  if (code.empty())
    return unsupported(
        fmt::format("NVRTC cannot compile for a chip of compute capability {}.{}: {}",
                    capability / 10, capability % 10, log));
  return code;
}

std::vector<char> read_kept(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Under a name of its own first: another process may keep the same.
void keep(const std::string& path, const std::vector<char>& code) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string partial = fmt::format("{}.{}", path, getpid());
  {
    std::ofstream out(partial, std::ios::binary);
    out.write(code.data(), static_cast<std::streamsize>(code.size()));
    if (!out.flush()) {
      std::filesystem::remove(partial, ignored);
      return;
    }
  }
  std::filesystem::rename(partial, path, ignored);
}

}  // namespace

const std::string& picture_kernels() {
  static const auto& text = *new std::string(
#include "device/pictures_cu.h"
  );
  return text;
}

Result<std::vector<char>> compile_kernels(const std::string& source, int capability,
                                          const std::string& cache) {
  HEADRACE_ASSIGN(const Nvrtc nvrtc, load());
  int major = 0;
  int minor = 0;
  nvrtc.version(&major, &minor);
  const std::string name =
      Hasher().add(source).add(fmt::format("{} {}.{}", capability, major, minor)).finish().hex();
  const std::string path = cache.empty() ? "" : fmt::format("{}/{}.cubin", cache, name);
  if (!path.empty())
    if (std::vector<char> kept = read_kept(path); !kept.empty()) return kept;
  HEADRACE_ASSIGN(std::vector<char> code, compile(nvrtc, source, capability));
  if (!path.empty()) keep(path, code);
  return code;
}

std::string kernel_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0')
    return std::string(folder) + "/headrace/kernels";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/headrace/kernels";
  return "";
}

}  // namespace headrace
