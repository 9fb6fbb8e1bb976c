// SPDX-License-Identifier: Apache-2.0
#include "base/zlib.h"

#include "base/have.h"

#if HEADRACE_HAVE_ZLIB

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <climits>

namespace headrace {
namespace {

constexpr int kZlibOrGzip = 15 + 32;

class ZlibInflater final : public Inflater {
 public:
  ZlibInflater() = default;
  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;
  ~ZlibInflater() override {
    if (begun_) inflateEnd(&stream_);
  }

  Status begin() {
    if (inflateInit2(&stream_, kZlibOrGzip) != Z_OK) return exhausted("no memory for inflating");
    begun_ = true;
    return {};
  }

  Status step(Bytes& packed, MutableBytes& out) override {
    while (!out.empty()) {
      if (ended_ && packed.empty()) break;
      if (ended_ && inflateReset(&stream_) != Z_OK) return internal("inflateReset");
      ended_ = false;
      const auto in_size = static_cast<uInt>(std::min<size_t>(packed.size(), UINT_MAX));
      const auto out_size = static_cast<uInt>(std::min<size_t>(out.size(), UINT_MAX));
      // zlib does not write to its input; its type is from before const.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
      stream_.avail_in = in_size;
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = out_size;
      const int got = inflate(&stream_, Z_NO_FLUSH);
      const bool moved = stream_.avail_in != in_size || stream_.avail_out != out_size;
      packed = packed.subspan(in_size - stream_.avail_in);
      out = out.subspan(out_size - stream_.avail_out);
      ended_ = got == Z_STREAM_END;
      const bool wants_more = packed.empty() && (got == Z_OK || got == Z_BUF_ERROR);
      if (!ended_ && got != Z_OK && !wants_more)
        return corrupt(fmt::format("packed data do not inflate: {}",
                                   stream_.msg != nullptr ? stream_.msg : "bad stream"));
      if (!moved && !ended_) break;
    }
    return {};
  }

  bool at_end() const override { return ended_; }

 private:
  z_stream stream_ = {};
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Inflater>> zlib_inflater() {
  auto inflater = std::make_unique<ZlibInflater>();
  HEADRACE_TRY(inflater->begin());
  return std::unique_ptr<Inflater>(std::move(inflater));
}

Result<size_t> unpack_zlib(Bytes packed, MutableBytes out) {
  HEADRACE_ASSIGN(const std::unique_ptr<Inflater> inflater, zlib_inflater());
  MutableBytes rest = out;
  HEADRACE_TRY(inflater->step(packed, rest));
  // Full to the brim, the stream's checksum is not read yet: one byte more must not come.
  std::byte more{};
  MutableBytes none(&more, 1);
  if (!inflater->at_end()) HEADRACE_TRY(inflater->step(packed, none));
  if (none.empty()) return corrupt("packed data are more than was said");
  if (!inflater->at_end()) return corrupt("packed data end too early");
  return out.size() - rest.size();
}

}  // namespace headrace

#else

namespace headrace {
namespace {

Status missing() {
  return unsupported("this build cannot inflate: install zlib1g-dev and build again");
}

}  // namespace

Result<std::unique_ptr<Inflater>> zlib_inflater() {
  return missing();
}

Result<size_t> unpack_zlib(Bytes, MutableBytes) {
  return missing();
}

}  // namespace headrace

#endif
