// SPDX-License-Identifier: Apache-2.0
//
// JPEG through libjpeg's API (libjpeg-turbo).  Of the picture only the region is
// decoded in full; the rest is entropy-decoded as far as it must be and no further:
//
//            ┌───────────────────────────────┐
//            │  skipped: entropy-decoded     │   jpeg_skip_scanlines
//            ├──────┬───────────────┬────────┤
//            │ e.-d.│▒┌───────────┐▒│ e.-d.  │   jpeg_crop_scanline: columns by iMCU, with a margin
//            ▒, │ only │▒│  region   │▒│ only   │   because upsampling looks at the neighbours
//            ├──────┴─┴───────────┴─┴────────┤
//            │  never read                   │   jpeg_abort_decompress
//            └───────────────────────────────┘
//
// One decompressor per thread, reused.  libjpeg reports errors by a callback that must
// not return: it jumps back into Session::call(), over frames of C only.  A warning
// that the data is damaged counts as an error; libjpeg would go on with gray blocks, and does
// where the options are not strict, in the header too.  Warnings that cannot change a pixel
// (is_harmless) are none.
#include <cstdio>  // jpeglib.h needs FILE and has no include for it

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>

#include "base/buffer.h"
#include "codec/exif.h"
#include "codec/image.h"
#include "codec/pixels.h"

namespace headrace {
namespace {

constexpr int kBatch = 16;  // rows decoded between two calls of the sink: an iMCU row of 4:2:0
// Rows begin off every vector boundary: into aligned rows libjpeg-turbo writes past the cache
// (movntdq), and the resampler would fetch them back from memory at twice its own cost.
constexpr size_t kOffset = 8;
constexpr int kMargin = 2;     // columns; one chroma sample of 4:2:0, the reach of fancy upsampling
constexpr int kMinWidth = 32;  // narrower crops make libjpeg choose another upsampler
constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};

int round_up(int a, int b) {
  return (a + b - 1) / b;
}

// One thread at a time.
class Session {
 public:
  Session() = default;
  ~Session() {
    if (created_) jpeg_destroy_decompress(&c_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<ImageInfo> open(Bytes bytes, bool strict);
  Status decode(const ImageOptions& options, ImageSink& sink);
  // Whether the failure was damage that a decode that is not strict lives with.
  bool is_tolerable() const { return tolerable_; }
  // Gives libjpeg's memory for this picture back; the decompressor stays.
  void close() {
    if (created_) jpeg_abort_decompress(&c_);
  }

 private:
  static void on_error(j_common_ptr c);
  static void on_message(j_common_ptr c, int level);
  static void on_progress(j_common_ptr c);
  static boolean on_empty(j_decompress_ptr c);
  static void on_skip(j_decompress_ptr c, long bytes);
  static Session& of(j_common_ptr c) { return *static_cast<Session*>(c->client_data); }

  // Runs calls into libjpeg; false when one failed.  GCC and clang never inline a function
  // that calls setjmp, so no local of the caller is lost to the jump.
  template <typename F>
  bool call(F&& f) {
    if (setjmp(jump_) != 0) return false;
    f();
    return true;
  }
  ImageInfo info() const {
    return {static_cast<int>(c_.image_width), static_cast<int>(c_.image_height), c_.num_components,
            true};
  }
  [[noreturn]] void fail(std::string_view text);
  void create();
  Status failure();
  Status choose_output(PixelMode mode);
  void start(const ImageRequest& request, Box* decoded);
  Status read(const ImageRequest& request, const Box& decoded, ImageSink& sink);
  void convert(uint8_t* row, int pixels, PixelMode mode) const;

  jpeg_decompress_struct c_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX> text_{};
  const JOCTET* begin_ = nullptr;
  size_t size_ = 0;
  int max_scans_ = 0;
  bool strict_ = true;
  bool damaged_ = false;    // not strict: libjpeg warned
  bool tolerable_ = false;  // strict: failed by a warning
  bool created_ = false;
  Buffer rows_;
};

void Session::fail(std::string_view text) {
  const size_t n = std::min(text.size(), text_.size() - 1);
  std::copy_n(text.begin(), n, text_.begin());
  text_[n] = '\0';
  std::longjmp(jump_, 1);
}

void Session::on_error(j_common_ptr c) {
  Session& s = of(c);
  c->err->format_message(c, s.text_.data());
  std::longjmp(s.jump_, 1);
}

// Warnings that leave every pixel as it was meant:
//   JWRN_JFIF_MAJOR       a version of JFIF above 1: the marker holds a density and a thumbnail
//   only JWRN_ADOBE_XFORM      an unknown transform: the usual one of as many components is taken
//   JWRN_NOT_SEQUENTIAL   Ss, Se, Ah, Al of a sequential scan are not 0, 63, 0, 0: the decoder
//   never
//                         uses them, a sequential scan has all coefficients in full
//   JWRN_EXTRANEOUS_DATA  before the end mark: filler behind the last block
// The others tell of coefficients or segments that are missing or were skipped.
bool is_harmless(const jpeg_error_mgr& e) {
  return e.msg_code == JWRN_JFIF_MAJOR || e.msg_code == JWRN_ADOBE_XFORM ||
         e.msg_code == JWRN_NOT_SEQUENTIAL ||
         (e.msg_code == JWRN_EXTRANEOUS_DATA && e.msg_parm.i[1] == JPEG_EOI);
}

void Session::on_message(j_common_ptr c, int level) {
  if (level >= 0 || is_harmless(*c->err)) return;
  of(c).tolerable_ = of(c).strict_;
  if (of(c).strict_) on_error(c);
  of(c).damaged_ = true;
}

void Session::on_progress(j_common_ptr c) {
  Session& s = of(c);
  if (s.c_.input_scan_number > s.max_scans_) s.fail("more scans than a picture needs");
}

boolean Session::on_empty(j_decompress_ptr c) {
  Session& s = of(reinterpret_cast<j_common_ptr>(c));
  s.tolerable_ = s.strict_ && s.max_scans_ > 1;  // without a whole header there is no picture
  if (s.strict_) s.fail("the data ends before the picture does");
  s.damaged_ = true;
  c->src->next_input_byte = kEnd;
  c->src->bytes_in_buffer = sizeof kEnd;
  return TRUE;
}

void Session::on_skip(j_decompress_ptr c, long bytes) {
  if (bytes <= 0) return;
  if (static_cast<size_t>(bytes) > c->src->bytes_in_buffer) {
    c->src->next_input_byte += c->src->bytes_in_buffer;
    c->src->bytes_in_buffer = 0;
    on_empty(c);
    return;
  }
  c->src->next_input_byte += bytes;
  c->src->bytes_in_buffer -= static_cast<size_t>(bytes);
}

void Session::create() {
  c_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  c_.client_data = this;
  jpeg_create_decompress(&c_);
  created_ = true;
  source_.init_source = [](j_decompress_ptr) {};
  source_.fill_input_buffer = on_empty;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = [](j_decompress_ptr) {};
  c_.src = &source_;
  progress_.progress_monitor = on_progress;
  c_.progress = &progress_;
}

Status Session::failure() {
  const JOCTET* next = source_.next_input_byte;
  const bool within = next >= begin_ && next <= begin_ + size_;
  if (errors_.msg_code == JERR_OUT_OF_MEMORY) return exhausted("JPEG: out of memory");
  if (errors_.msg_code == JERR_BAD_PRECISION || errors_.msg_code == JERR_SOF_UNSUPPORTED)
    return unsupported(std::string("JPEG: ") + text_.data());
  return corrupt(std::string("JPEG: ") + text_.data())
      .at(within ? static_cast<uint64_t>(next - begin_) : size_);
}

Result<ImageInfo> Session::open(Bytes bytes, bool strict) {
  if (!created_ && !call([this] { create(); })) return internal("JPEG: no decompressor");
  begin_ = reinterpret_cast<const JOCTET*>(bytes.data());
  source_.next_input_byte = begin_;
  source_.bytes_in_buffer = size_ = bytes.size();
  strict_ = strict;
  damaged_ = tolerable_ = false;
  errors_.msg_code = 0;
  max_scans_ = 1;  // the header lies before the first
  if (!call([this] { jpeg_read_header(&c_, TRUE); })) return failure();
  return info();
}

Status Session::choose_output(PixelMode mode) {
  const J_COLOR_SPACE colours = mode == PixelMode::kRgba ? JCS_EXT_RGBA : JCS_RGB;
  if (mode == PixelMode::kNumbers && c_.jpeg_color_space != JCS_GRAYSCALE)
    return not_numbers("JPEG");
  switch (c_.jpeg_color_space) {
    case JCS_GRAYSCALE:
      if (channels_of(mode) != 1) c_.out_color_space = colours;
      return {};
    case JCS_RGB:
    case JCS_YCbCr:
      c_.out_color_space = colours;
      return {};
    case JCS_CMYK:
    case JCS_YCCK:
      c_.out_color_space = JCS_CMYK;
      return {};
    default:
      return unsupported("JPEG: colours that are neither gray, RGB, YCbCr, CMYK nor YCCK");
  }
}

// Starts the decoder and narrows it to the columns that the region needs.
// `decoded` is what the rows will hold: the region with margins, to its last row.
void Session::start(const ImageRequest& request, Box* decoded) {
  jpeg_start_decompress(&c_);
  const Box& want = request.region;
  const auto full = static_cast<int>(c_.output_width);
  const int left = std::max(0, want.x - kMargin);
  const int right = std::min(full, std::max(want.x + want.width + kMargin, left + kMinWidth));
  auto x = static_cast<JDIMENSION>(left);
  auto width = static_cast<JDIMENSION>(right - left);
  if (right - left < full) jpeg_crop_scanline(&c_, &x, &width);
  *decoded = {static_cast<int>(x), want.y, static_cast<int>(width), want.height};
  if (want.y > 0) jpeg_skip_scanlines(&c_, static_cast<JDIMENSION>(want.y));
}

void Session::convert(uint8_t* row, int pixels, PixelMode mode) const {
  if (c_.out_color_space == JCS_CMYK) {
    inverted_cmyk_to_rgb(row, row, pixels);
    if (mode == PixelMode::kRgba) rgb_to_rgba(row, row, pixels);
  }
  if (mode == PixelMode::kGray && c_.out_color_space != JCS_GRAYSCALE)
    rgb_to_gray(row, row, pixels);
}

Status Session::read(const ImageRequest& request, const Box& decoded, ImageSink& sink) {
  const auto bytes = static_cast<size_t>(decoded.width) * static_cast<size_t>(c_.output_components);
  const size_t stride = (bytes + kRowSlack + kAlignment - 1) / kAlignment * kAlignment;
  rows_.resize(stride * kBatch + kOffset);
  std::array<JSAMPROW, kBatch> row;
  for (size_t i = 0; i < kBatch; ++i)
    row[i] = reinterpret_cast<JSAMPLE*>(rows_.data()) + i * stride + kOffset;
  const size_t lead = static_cast<size_t>(request.region.x - decoded.x) *
                      static_cast<size_t>(channels_of(request.mode));
  for (int done = 0; done < decoded.height;) {
    const auto want = static_cast<JDIMENSION>(std::min(kBatch, decoded.height - done));
    JDIMENSION got = 0;
    const bool good = call([&] {
      while (got < want) got += jpeg_read_scanlines(&c_, row.data() + got, want - got);
    });
    if (!good) return failure();
    for (JDIMENSION i = 0; i < got; ++i) convert(row[i], decoded.width, request.mode);
    HEADRACE_TRY(sink.rows({row[0] + lead, stride, static_cast<int>(got)}));
    done += static_cast<int>(got);
  }
  return {};
}

Status Session::decode(const ImageOptions& options, ImageSink& sink) {
  HEADRACE_TRY(check_size("JPEG", info(), options));
  HEADRACE_ASSIGN(const ImageRequest request, sink.begin(info()));
  const int shrink = request.shrink;
  if (shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8)
    return internal("JPEG: shrink is 1, 2, 4 or 8");
  if (!contains(round_up(info().width, shrink), round_up(info().height, shrink), request.region))
    return internal("JPEG: the region lies outside the picture");
  HEADRACE_TRY(choose_output(request.mode));
  c_.scale_num = 1;
  c_.scale_denom = static_cast<unsigned>(shrink);
  max_scans_ = options.max_scans;
  Box decoded;
  if (!call([&] { start(request, &decoded); })) return failure();
  HEADRACE_TRY(read(request, decoded, sink));
  if (damaged_ && options.damaged != nullptr) ++*options.damaged;
  return {};
}

Session& this_thread() {
  static thread_local Session session;
  return session;
}

bool sniff(Bytes head) {
  return head.size() >= 3 && head[0] == std::byte{0xff} && head[1] == std::byte{0xd8} &&
         head[2] == std::byte{0xff};
}

Result<ImageInfo> probe(Bytes bytes) {
  Session& session = this_thread();
  auto info = session.open(bytes, false);
  session.close();
  return info;
}

Status decode(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  Session& session = this_thread();
  const auto info = session.open(bytes, options.strict);
  Status status = info.ok() ? session.decode(options, sink) : info.status();
  if (options.tolerable != nullptr) *options.tolerable = !status.ok() && session.is_tolerable();
  session.close();
  return status;
}

}  // namespace

extern constinit const ImageCodec jpeg_codec{
    .name = "jpeg",
    .doc = "JPEG, baseline and progressive; only the crop is decoded",
    .library = "libjpeg-turbo",
    .sniff = sniff,
    .probe = probe,
    .decode = decode,
    .exif = exif_of_jpeg,
};

}  // namespace headrace
