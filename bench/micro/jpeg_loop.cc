// SPDX-License-Identifier: Apache-2.0
//
// The bare kernel loop: JPEGs from memory through decode, random_resized_crop, flip and
// normalise into a batch, by the same kernels as the loader and nothing around them.  What
// the loader is measured against.
//
//   jpeg_loop FOLDER_OR_FILES… [threads=1,2] [seconds=3] [mode=f32,u8]
//   [decode=crop,full,only,only_full] [size=224] [read=0]
//
// decode=full decodes the whole picture and resamples the same crop; only and only_full decode
// the crop or the whole and throw it away.  read=1 first copies each picture out of one open file
// that holds them all, as a loader must.  Prints one line for each combination.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "base/buffer.h"
#include "codec/image.h"
#include "transform/kernels/resample.h"
#include "transform/transform.h"

namespace headrace {
extern const TransformEntry random_resized_crop_transform;

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kBatch = 64;

struct Case {
  std::string mode = "f32";
  std::string decode = "crop";
  int threads = 1;
  double seconds = 3;
  int size = 224;
  bool reads = false;
};

// Decodes a crop (or all of the picture) and resamples the crop into the slot.
class Loop final : public ImageSink {
 public:
  Loop(const Case& c, const Geometric& crop) : case_(c), crop_(crop) {
    if (c.mode != "u8") {
      store_.dtype = c.mode == "f16" ? DType::kF16 : c.mode == "bf16" ? DType::kBF16 : DType::kF32;
      store_.scale = {0.01712475f, 0.017507f, 0.01742919f, 0};
      store_.bias = {-2.117904f, -2.0357144f, -1.8044444f, 0};
    }
    sample_ = static_cast<size_t>(3 * c.size * c.size) * size_of(store_.dtype);
    batch_.resize(sample_ * kBatch);
  }

  Status run(Bytes jpeg, uint64_t index) {
    index_ = index;
    HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(jpeg));
    return codec->decode(jpeg, {}, *this);
  }

  Result<ImageRequest> begin(const ImageInfo& info) override {
    const Size size{info.width, info.height};
    View view = crop_.view(size, Rng(Key(1).with(index_)));
    view.flip = (mix64(index_) & 1) != 0;
    const MutableBytes slot = batch_.span().subspan(index_ % kBatch * sample_, sample_);
    region_ = resampler_.begin(view, 1, 3, store_, slot);
    next_row_ = 0;
    const bool full = case_.decode == "full" || case_.decode == "only_full";
    if (full) return ImageRequest{{0, 0, info.width, info.height}};
    const Box crop = region_;
    region_.x = region_.y = 0;
    return ImageRequest{crop};
  }

  Status rows(const Rows& rows) override {
    if (case_.decode.starts_with("only")) return {};
    // Of a full decode the resampler gets the crop's rows, as it would from a picture in memory.
    const int from = std::clamp(region_.y - next_row_, 0, rows.count);
    const int to = std::clamp(region_.y + region_.height - next_row_, 0, rows.count);
    next_row_ += rows.count;
    if (from < to)
      resampler_.rows({rows.first + static_cast<size_t>(from) * rows.stride +
                           static_cast<size_t>(3 * region_.x),
                       rows.stride, to - from});
    return {};
  }

 private:
  const Case& case_;
  const Geometric& crop_;
  PixelOutput store_;
  size_t sample_ = 0;
  uint64_t index_ = 0;
  int next_row_ = 0;
  Box region_;
  Resampler resampler_;
  Buffer batch_;
};

std::vector<Buffer> read_all(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const auto& p : paths) {
    if (!std::filesystem::is_directory(p)) {
      files.emplace_back(p);
      continue;
    }
    for (const auto& e : std::filesystem::recursive_directory_iterator(p))
      if (e.is_regular_file()) files.push_back(e.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Buffer> out;
  for (const auto& f : files) {
    Buffer b(std::filesystem::file_size(f));
    std::ifstream(f, std::ios::binary)
        .read(reinterpret_cast<char*>(b.data()), static_cast<std::streamsize>(b.size()));
    out.push_back(std::move(b));
  }
  return out;
}

// All pictures one after the other in a file without a name.
class Shard {
 public:
  explicit Shard(const std::vector<Buffer>& pictures) : file_(std::tmpfile()) {
    for (const Buffer& picture : pictures) {
      begins_.push_back(begins_.empty() ? 0 : begins_.back() + last_);
      last_ = picture.size();
      if (file_ != nullptr) std::fwrite(picture.data(), 1, picture.size(), file_.get());
    }
    if (file_ != nullptr) std::fflush(file_.get());
  }

  Bytes read(size_t which, size_t size, Buffer& into) const {
    into.resize(size);
    const auto at = static_cast<off_t>(begins_[which]);
    const auto got = file_ == nullptr ? 0 : ::pread(fileno(file_.get()), into.data(), size, at);
    return into.bytes().first(static_cast<size_t>(std::max<ssize_t>(0, got)));
  }

 private:
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file_;
  std::vector<size_t> begins_;
  size_t last_ = 0;
};

// CPU time of the calling thread: what counts where other programs run beside this one.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Rate {
  double images_per_second;  // of all threads together
  double cpu_ms;             // per image
};

Rate measure(const std::vector<Buffer>& jpegs, const Case& c, const Geometric& crop) {
  std::atomic<uint64_t> done{0};
  std::atomic<double> cpu{0};
  const std::optional<Shard> shard = c.reads ? std::optional<Shard>(jpegs) : std::nullopt;
  // Not counted: fresh memory and cold caches, as for every contender of bench/images.py.
  const auto begin = Clock::now() + std::chrono::duration<double>(std::min(0.5, c.seconds));
  const auto stop = begin + std::chrono::duration<double>(c.seconds);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < c.threads; ++t)
      threads.emplace_back([&, t] {
        Loop loop(c, crop);
        Buffer room;
        auto i = static_cast<uint64_t>(t);
        uint64_t n = 0;
        double cpu_begin = thread_seconds();
        bool counts = false;
        for (; Clock::now() < stop; i += static_cast<uint64_t>(c.threads), ++n) {
          if (!counts && Clock::now() >= begin) {
            counts = true;
            n = 0;
            cpu_begin = thread_seconds();
          }
          const size_t which = i % jpegs.size();
          const Bytes jpeg =
              shard ? shard->read(which, jpegs[which].size(), room) : jpegs[which].bytes();
          const Status s = loop.run(jpeg, i);
          if (!s.ok()) {
            std::fprintf(stderr, "%s\n", s.text().c_str());
            break;
          }
        }
        done += n;
        cpu += thread_seconds() - cpu_begin;
      });
  }
  const auto n = static_cast<double>(done);
  return {n / std::chrono::duration<double>(Clock::now() - begin).count(), 1000 * cpu / n};
}

int main_of(int argc, char** argv) {
  Options options{{"threads", "1,2"},      {"seconds", "3"}, {"mode", "f32,u8"},
                  {"decode", "crop,full"}, {"size", "224"},  {"read", "0"}};
  const std::vector<std::string> paths = read_arguments(argc, argv, options);
  const std::vector<Buffer> jpegs = read_all(paths);
  if (jpegs.empty()) {
    std::fprintf(
        stderr,
        "usage: jpeg_loop FOLDER_OR_FILES... [threads=1,2] [seconds=3] [mode=f32,u8,f16,bf16] "
        "[decode=crop,full,only,only_full] [size=224] [read=0]\n");
    return 2;
  }
  std::printf("%zu pictures, kernels %s\n", jpegs.size(), vector_kernels().name);
  for (const auto& threads : pieces(options["threads"]))
    for (const auto& mode : pieces(options["mode"]))
      for (const auto& decode : pieces(options["decode"])) {
        const Case c{mode,
                     decode,
                     std::stoi(threads),
                     std::stod(options["seconds"]),
                     std::stoi(options["size"]),
                     options["read"] != "0"};
        Params params({{"size", static_cast<int64_t>(c.size)}});
        const auto step = random_resized_crop_transform.make(std::move(params)).value();
        const auto& crop = *std::get<std::unique_ptr<const Geometric>>(step);
        const Rate rate = measure(jpegs, c, crop);
        std::printf("threads %d  mode %-4s  decode %-9s  %8.1f images/s  %.3f ms of CPU an image\n",
                    c.threads, mode.c_str(), decode.c_str(), rate.images_per_second, rate.cpu_ms);
        std::fflush(stdout);
      }
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::main_of(argc, argv);
}
