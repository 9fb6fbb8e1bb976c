// SPDX-License-Identifier: Apache-2.0
//
// PNG through libspng, row by row; what lies below the region is not decoded.  An interlaced
// picture is decoded whole, since its rows come last.
//
//   89 "PNG\r\n" 1a "\n" | u32 length | type | data | u32 CRC of type and data | …   big-endian
//
// The chunks are walked and their checksums compared before a row is decoded: a crop stops in
// the middle of a chunk, whose checksum comes after it.  libspng is told to compare none.
//
// Pixels become what Pillow's convert() makes of them: samples of 16 bits give their upper
// eight, but gray ones of 16 bits are clipped to 255, because Pillow keeps those as numbers.
#include <spng.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "codec/image.h"
#include "codec/pixels.h"
#include "trace/notices.h"

namespace headrace {
namespace {

constexpr int kBatch = 16;           // rows decoded between two calls of the sink
constexpr size_t kSignature = 8;     // the first chunk lies behind it
constexpr size_t kAround = 12;       // of a chunk: length, type, checksum
constexpr size_t kChunk = 32 << 20;  // of what is not pixels: profiles, texts

constexpr const char* kWrongChecksum = "PNG: wrong checksum of a chunk";

uint32_t big_endian(Bytes at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<uint32_t>(at[i]);
  return v;
}

struct Chunk {
  std::string_view type;
  Bytes data;
  bool is_good = false;  // the checksum is right
};

// The chunk at `offset`, which moves behind it.
Result<Chunk> next_chunk(Bytes png, size_t& offset) {
  const Bytes rest = png.subspan(std::min(offset, png.size()));
  if (rest.size() < kAround || big_endian(rest) > rest.size() - kAround)
    return corrupt("PNG: the data ends before the picture does").at(png.size());
  const size_t length = big_endian(rest);
  const Bytes whole = rest.subspan(4, 4 + length);
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size());
  offset += kAround + length;
  return Chunk{as_text(whole.first(4)), whole.subspan(4),
               sum == big_endian(rest.subspan(8 + length))};
}

// kCorrupt for the first wrong checksum, or where the file ends before its end mark.
Status check_chunks(Bytes png) {
  for (size_t offset = kSignature;;) {
    const size_t begin = offset;
    HEADRACE_ASSIGN(const Chunk chunk, next_chunk(png, offset));
    if (!chunk.is_good) return corrupt(kWrongChecksum).at(begin);
    if (chunk.type == "IEND") return {};
  }
}

Bytes exif(Bytes png) {
  for (size_t offset = kSignature;;) {
    const auto chunk = next_chunk(png, offset);
    if (!chunk.ok() || chunk.value().type == "IEND") return {};
    if (chunk.value().type == "eXIf" && chunk.value().is_good) return chunk.value().data;
  }
}

// One picture.  One thread at a time.
class Session {
 public:
  Result<ImageInfo> open(Bytes png);
  Status decode(const ImageOptions& options, ImageSink& sink);

 private:
  struct Free {
    void operator()(spng_ctx* c) const { spng_ctx_free(c); }
  };
  // What libspng is asked for.
  struct Output {
    spng_format format;
    size_t row_bytes;
    int flags = 0;
    bool is_raw = false;  // convert() cannot work in place
  };

  static Status failure(int error) {
    if (error == SPNG_EMEM) return exhausted("PNG: out of memory");
    return corrupt(std::string("PNG: ") + spng_strerror(error));
  }
  bool is_gray16() const {
    return header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header_.bit_depth == 16;
  }
  Output choose_output(PixelMode mode);
  Status convert(const uint8_t* from, uint8_t* to, PixelMode mode) const;
  Status convert_numbers(const uint8_t* from, uint8_t* to) const;
  void convert_gray16(const uint8_t* from, uint8_t* to, PixelMode mode) const;
  Status read_rows(const ImageRequest& request, ImageSink& sink);
  Status read_interlaced(const ImageRequest& request, ImageSink& sink);

  size_t width() const { return header_.width; }
  static uint8_t* bytes_of(Buffer& b) { return reinterpret_cast<uint8_t*>(b.data()); }

  std::unique_ptr<spng_ctx, Free> c_;
  spng_ihdr header_{};
  bool has_trns_ = false;
  spng_trns trns_{};
};

Result<ImageInfo> Session::open(Bytes png) {
  c_.reset(spng_ctx_new(0));
  if (c_ == nullptr) return exhausted("PNG: out of memory");
  spng_set_crc_action(c_.get(), SPNG_CRC_USE, SPNG_CRC_USE);
  spng_set_chunk_limits(c_.get(), kChunk, 2 * kChunk);
  if (const int e = spng_set_png_buffer(c_.get(), png.data(), png.size()); e != 0)
    return failure(e);
  if (const int e = spng_get_ihdr(c_.get(), &header_); e != 0) return failure(e);
  static constexpr int kChannels[] = {1, 0, 3, 3, 2, 0, 4};
  return ImageInfo{static_cast<int>(header_.width), static_cast<int>(header_.height),
                   kChannels[header_.color_type]};
}

// Once in a process: medical pictures and depth maps come out nearly white.
void tell_of_clipping() {
  static std::atomic<bool> told = false;
  if (!told.exchange(true))
    tell_user(
        "gray PNG pictures of 16 bits: levels above 255 become 255, as in Pillow; to keep them, "
        "save "
        "the numbers as .npy and read them with hr.array");
}

Session::Output Session::choose_output(PixelMode mode) {
  if (is_gray16() && mode != PixelMode::kNumbers) tell_of_clipping();
  if (is_gray16() || mode == PixelMode::kNumbers)
    return {SPNG_FMT_PNG, (width() * header_.bit_depth + 7) / 8, 0, true};
  if (mode == PixelMode::kRgba) return {SPNG_FMT_RGBA8, 4 * width(), SPNG_DECODE_TRNS};
  if (mode == PixelMode::kGray && header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE)
    return {SPNG_FMT_G8, width()};
  return {SPNG_FMT_RGB8, 3 * width()};
}

void Session::convert_gray16(const uint8_t* from, uint8_t* to, PixelMode mode) const {
  const auto channels = static_cast<size_t>(channels_of(mode));
  for (size_t i = 0; i < width(); ++i, to += channels) {
    const auto v = load_le<uint16_t>(std::as_bytes(std::span(from + 2 * i, 2)));
    std::fill_n(to, std::min<size_t>(channels, 3), static_cast<uint8_t>(std::min<int>(v, 255)));
    if (channels == 4) to[3] = has_trns_ && v == trns_.gray ? 0 : 255;
  }
}

// Samples as they are stored: of fewer than eight bits several to a byte, the first uppermost.
Status Session::convert_numbers(const uint8_t* from, uint8_t* to) const {
  const size_t depth = header_.bit_depth;
  for (size_t i = 0; i < width(); ++i) {
    if (depth == 16) {
      const auto v = load_le<uint16_t>(std::as_bytes(std::span(from + 2 * i, 2)));
      if (v > 255) return corrupt("PNG: the number " + std::to_string(v) + " is above 255");
      to[i] = static_cast<uint8_t>(v);
    } else {
      const size_t shift = 8 - depth - i * depth % 8;
      to[i] = static_cast<uint8_t>((from[i * depth / 8] >> shift) & ((1u << depth) - 1));
    }
  }
  return {};
}

// A row as libspng gave it; in place unless that is raw.
Status Session::convert(const uint8_t* from, uint8_t* to, PixelMode mode) const {
  if (mode == PixelMode::kNumbers) return convert_numbers(from, to);
  if (is_gray16())
    convert_gray16(from, to, mode);
  else if (mode == PixelMode::kGray && header_.color_type != SPNG_COLOR_TYPE_GRAYSCALE)
    rgb_to_gray(from, to, static_cast<int>(width()));
  return {};
}

Status Session::read_rows(const ImageRequest& request, ImageSink& sink) {
  const Output output = choose_output(request.mode);
  const auto channels = static_cast<size_t>(channels_of(request.mode));
  const size_t stride = std::max(output.row_bytes, width() * channels) + kRowSlack;
  if (const int e = spng_decode_image(c_.get(), nullptr, 0, output.format,
                                      output.flags | SPNG_DECODE_PROGRESSIVE);
      e != 0)
    return failure(e);
  Buffer rows(stride * kBatch);
  Buffer raw(output.is_raw ? output.row_bytes : 0);
  const Box& want = request.region;
  const size_t lead = static_cast<size_t>(want.x) * channels;
  int filled = 0;
  for (int y = 0; y < want.y + want.height; ++y) {
    uint8_t* row = bytes_of(rows) + static_cast<size_t>(filled) * stride;
    uint8_t* to = output.is_raw ? bytes_of(raw) : row;
    // The last row of the picture is reported as the end.
    const int e = spng_decode_row(c_.get(), to, output.row_bytes);
    if (e != 0 && e != SPNG_EOI) return failure(e);
    if (y < want.y) continue;
    HEADRACE_TRY(convert(to, row, request.mode));
    if (++filled < kBatch && y + 1 < want.y + want.height) continue;
    HEADRACE_TRY(sink.rows({bytes_of(rows) + lead, stride, filled}));
    filled = 0;
  }
  return {};
}

Status Session::read_interlaced(const ImageRequest& request, ImageSink& sink) {
  const Output output = choose_output(request.mode);
  const auto channels = static_cast<size_t>(channels_of(request.mode));
  const size_t row_bytes = output.row_bytes;
  Buffer whole(row_bytes * header_.height + kRowSlack);
  // libspng adds samples of less than a byte to what is there.
  if (output.is_raw) std::fill_n(bytes_of(whole), whole.size(), uint8_t{0});
  if (const int e = spng_decode_image(c_.get(), whole.data(), row_bytes * header_.height,
                                      output.format, output.flags);
      e != 0)
    return failure(e);
  const size_t stride = std::max(row_bytes, width() * channels) + kRowSlack;
  Buffer row(stride);
  const Box& want = request.region;
  for (int y = want.y; y < want.y + want.height; ++y) {
    const uint8_t* from = bytes_of(whole) + static_cast<size_t>(y) * row_bytes;
    std::copy_n(from, row_bytes, bytes_of(row));
    HEADRACE_TRY(convert(from, bytes_of(row), request.mode));
    HEADRACE_TRY(sink.rows({bytes_of(row) + static_cast<size_t>(want.x) * channels, stride, 1}));
  }
  return {};
}

Status Session::decode(const ImageOptions& options, ImageSink& sink) {
  const ImageInfo info{static_cast<int>(header_.width), static_cast<int>(header_.height), 0};
  HEADRACE_TRY(check_size("PNG", info, options));
  HEADRACE_ASSIGN(const ImageRequest request, sink.begin(info));
  if (request.shrink != 1) return internal("PNG: shrink is 1");
  if (!contains(info.width, info.height, request.region))
    return internal("PNG: the region lies outside the picture");
  const bool has_numbers = header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                           header_.color_type == SPNG_COLOR_TYPE_INDEXED;
  if (request.mode == PixelMode::kNumbers && !has_numbers) return not_numbers("PNG");
  if (is_gray16() && request.mode == PixelMode::kRgba)
    has_trns_ = spng_get_trns(c_.get(), &trns_) == 0;
  return header_.interlace_method == 0 ? read_rows(request, sink) : read_interlaced(request, sink);
}

bool sniff(Bytes head) {
  return as_text(head).starts_with("\x89PNG\r\n\x1a\n");
}

Result<ImageInfo> probe(Bytes bytes) {
  return Session().open(bytes);
}

Status decode(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  const Status sound = check_chunks(bytes);
  if (!sound.ok() && options.strict) {
    if (options.tolerable != nullptr) *options.tolerable = sound.message() == kWrongChecksum;
    return sound;
  }
  Session session;
  HEADRACE_TRY(session.open(bytes).status());
  HEADRACE_TRY(session.decode(options, sink));
  if (!sound.ok() && options.damaged != nullptr) ++*options.damaged;
  return {};
}

}  // namespace

extern constinit const ImageCodec png_codec{
    .name = "png",
    .doc = "PNG, 1 to 16 bits, palettes, alpha, interlaced; not decoded below the crop",
    .library = "libspng",
    .sniff = sniff,
    .probe = probe,
    .decode = decode,
    .exif = exif,
};

}  // namespace headrace
