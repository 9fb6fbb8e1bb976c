// SPDX-License-Identifier: Apache-2.0
//
// For tests: JPEGs of every kind, written through libjpeg, and libjpeg's own full decode to
// compare with.
#pragma once

#include <cstdio>  // jpeglib.h needs FILE and has no include for it

#include <jpeglib.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "codec/image.h"

namespace headrace::fixture {

struct JpegKind {
  std::string name = "420";
  int h = 2;  // sampling factors of luma; chroma has 1 x 1
  int v = 2;
  int channels = 3;  // 1, 3 or 4 (CMYK, written as it is)
  bool progressive = false;
  int restart_blocks = 0;
  bool ycck = false;  // four channels as YCCK with Adobe's marker
};

inline void PrintTo(const JpegKind& kind, std::ostream* out) {
  *out << kind.name;
}

struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<uint8_t> pixels;
};

// Gradients with a grain over them: something at every frequency.
inline Image make_image(int width, int height, int channels, uint64_t seed) {
  Image out{width, height, channels, {}};
  Rng rng{Key(seed)};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        out.pixels.push_back(static_cast<uint8_t>(
            (x * (c + 1) * 3 + y * 5 + static_cast<int>(rng.below(64))) % 256));
  return out;
}

inline std::vector<std::byte> encode(const Image& image, const JpegKind& kind, int quality = 90) {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &data, &size);
  c.image_width = static_cast<JDIMENSION>(image.width);
  c.image_height = static_cast<JDIMENSION>(image.height);
  c.input_components = image.channels;
  c.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&c);
  if (kind.ycck) jpeg_set_colorspace(&c, JCS_YCCK);
  jpeg_set_quality(&c, quality, TRUE);
  c.comp_info[0].h_samp_factor = kind.h;
  c.comp_info[0].v_samp_factor = kind.v;
  if (kind.ycck) c.comp_info[3].h_samp_factor = kind.h, c.comp_info[3].v_samp_factor = kind.v;
  c.restart_interval = static_cast<unsigned>(kind.restart_blocks);
  if (kind.progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    JSAMPROW row =
        const_cast<JSAMPROW>(image.pixels.data()) +
        static_cast<size_t>(c.next_scanline) * static_cast<size_t>(image.width * image.channels);
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  const Bytes bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  std::free(data);
  return out;
}

// With EXIF behind its first mark that says which way up it is (1 to 8).
inline std::vector<std::byte> with_orientation(const std::vector<std::byte>& jpeg, int value) {
  const unsigned char exif[] = {0xff,
                                0xe1,
                                0,
                                34,
                                'E',
                                'x',
                                'i',
                                'f',
                                0,
                                0,
                                'I',
                                'I',
                                42,
                                0,
                                8,
                                0,
                                0,
                                0,
                                1,
                                0,
                                0x12,
                                1,
                                3,
                                0,
                                1,
                                0,
                                0,
                                0,
                                static_cast<unsigned char>(value),
                                0,
                                0,
                                0,
                                0,
                                0,
                                0,
                                0};
  std::vector<std::byte> out(jpeg.begin(), jpeg.begin() + 2);
  for (const unsigned char byte : exif) out.push_back(std::byte{byte});
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

// What libjpeg makes of all of it, straight, as RGB (CMYK as it is stored).
inline Image decode_all(Bytes jpeg) {
  jpeg_decompress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&c, TRUE);
  if (c.num_components < 4) c.out_color_space = JCS_RGB;
  jpeg_start_decompress(&c);
  Image out{
      static_cast<int>(c.output_width), static_cast<int>(c.output_height), c.output_components, {}};
  const size_t stride = c.output_width * static_cast<size_t>(c.output_components);
  out.pixels.resize(stride * c.output_height);
  while (c.output_scanline < c.output_height) {
    JSAMPROW row = out.pixels.data() + stride * c.output_scanline;
    jpeg_read_scanlines(&c, &row, 1);
  }
  jpeg_destroy_decompress(&c);
  return out;
}

// A plane before upsampling, as libjpeg gives it, and as the engines of a chip do.
struct RawPlane {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> samples;  // without gaps
};

inline std::vector<RawPlane> decode_raw(Bytes jpeg) {
  jpeg_decompress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&c, TRUE);
  c.raw_data_out = TRUE;
  c.out_color_space = c.jpeg_color_space;
  jpeg_start_decompress(&c);
  std::vector<RawPlane> planes(static_cast<size_t>(c.num_components));
  std::vector<std::vector<uint8_t>> bands(planes.size());
  std::vector<std::vector<JSAMPROW>> rows(planes.size());
  std::vector<JSAMPARRAY> all;
  const int step = c.max_v_samp_factor * 8;
  for (size_t i = 0; i < planes.size(); ++i) {
    const jpeg_component_info& info = c.comp_info[i];
    planes[i].width = static_cast<int>(info.downsampled_width);
    planes[i].height = static_cast<int>(info.downsampled_height);
    const auto count = static_cast<size_t>(info.v_samp_factor * 8);
    const size_t stride = (static_cast<size_t>(info.width_in_blocks) + 8) * 8;
    bands[i].resize(count * stride);
    for (size_t r = 0; r < count; ++r) rows[i].push_back(bands[i].data() + r * stride);
    all.push_back(rows[i].data());
  }
  while (c.output_scanline < c.output_height) {
    jpeg_read_raw_data(&c, all.data(), static_cast<JDIMENSION>(step));
    for (size_t i = 0; i < planes.size(); ++i)
      for (const JSAMPROW row : rows[i]) {
        RawPlane& plane = planes[i];
        const size_t wanted = static_cast<size_t>(plane.width) * static_cast<size_t>(plane.height);
        if (plane.samples.size() < wanted)
          plane.samples.insert(plane.samples.end(), row, row + plane.width);
      }
  }
  jpeg_destroy_decompress(&c);
  return planes;
}

// The kinds that cameras and tools write, and some that only the standard knows.
inline std::vector<JpegKind> kinds() {
  std::vector<JpegKind> out;
  for (const JpegKind& base :
       {JpegKind{"444", 1, 1}, JpegKind{"422", 2, 1}, JpegKind{"420", 2, 2}, JpegKind{"440", 1, 2},
        JpegKind{"411", 4, 1}, JpegKind{"410", 4, 2}, JpegKind{"gray", 1, 1, 1}})
    for (const bool progressive : {false, true})
      for (const int restart : {0, 3}) {
        JpegKind k = base;
        k.progressive = progressive;
        k.restart_blocks = restart;
        k.name += std::string(progressive ? "_progressive" : "") + (restart > 0 ? "_restart" : "");
        out.push_back(k);
      }
  return out;
}

}  // namespace headrace::fixture
