// SPDX-License-Identifier: Apache-2.0
//
// JPEG, baseline, chroma at half the size each way, as libjpeg does by itself.
#include <cstdio>  // jpeglib.h needs FILE and has no include for it

#include <jpeglib.h>

#include <array>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <string>

#include "codec/encode.h"

namespace headrace {
namespace {

// libjpeg's state for one picture; its errors jump back into write().
struct Session {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> text{};
  unsigned char* data = nullptr;
  unsigned long size = 0;

  Session() {
    c.err = jpeg_std_error(&errors);
    errors.emit_message = [](j_common_ptr, int) {};
    errors.error_exit = [](j_common_ptr p) {
      auto& s = *static_cast<Session*>(p->client_data);
      p->err->format_message(p, s.text.data());
      std::longjmp(s.jump, 1);
    };
    c.client_data = this;
  }
  ~Session() {
    jpeg_destroy_compress(&c);
    std::free(data);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Over frames of C alone: nothing here has a destructor.
  bool write(const Picture& picture, int quality, JpegSampling sampling) {
    if (setjmp(jump) != 0) return false;
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = static_cast<JDIMENSION>(picture.width);
    c.image_height = static_cast<JDIMENSION>(picture.height);
    c.input_components = channels_of(picture.mode);
    c.in_color_space = picture.mode == PixelMode::kGray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, quality, TRUE);
    c.optimize_coding = TRUE;
    if (c.num_components == 3) {
      c.comp_info[0].h_samp_factor =
          sampling == JpegSampling::k420 || sampling == JpegSampling::k422 ? 2 : 1;
      c.comp_info[0].v_samp_factor =
          sampling == JpegSampling::k420 || sampling == JpegSampling::k440 ? 2 : 1;
    }
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(picture.row(static_cast<int>(c.next_scanline)));
      jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    return true;
  }
};

Result<Buffer> encode(const Picture& picture, const EncodeOptions& options) {
  HEADRACE_TRY(check_picture(picture, options));
  if (picture.mode == PixelMode::kRgba) return invalid("JPEG has no alpha: take RGB, PNG or WebP");
  Session session;
  if (!session.write(picture, options.quality, options.sampling))
    return invalid(std::string("JPEG: ") + session.text.data());
  Buffer out(session.size);
  std::memcpy(out.data(), session.data, session.size);
  return out;
}

}  // namespace

extern constinit const ImageEncoder encode_jpeg_row{"jpeg", "jpg", encode};

}  // namespace headrace
