// SPDX-License-Identifier: Apache-2.0
//
//   FFD8 │ FFxx length …│ FFxx length … │ FFDA length … entropy-coded data … │ FFD9
//          segments: tables (C4, DB, DD), frame (C0 … CF), applications (E0 … EF), comments (FE)
#include "codec/jpeg_layout.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "codec/jpeg_marks.h"

namespace headrace {
namespace {

constexpr unsigned kStart = 0xd8, kEnd = 0xd9, kScan = 0xda, kAdobe = 0xee, kJfif = 0xe0,
                   kRestartInterval = 0xdd, kFirstRestart = 0xd0;

struct Component {
  unsigned id = 0;
  unsigned across = 0;
  unsigned down = 0;
};

struct Reader {
  Bytes file;
  unsigned byte(size_t at) const { return std::to_integer<unsigned>(file[at]); }
  unsigned word(size_t at) const { return byte(at) << 8 | byte(at + 1); }
};

struct Frame {
  unsigned kind = 0;  // the marker's second byte
  unsigned precision = 0;
  unsigned height = 0;
  unsigned width = 0;
  unsigned components = 0;
  std::array<Component, 4> component{};
  bool has_jfif = false;
  int adobe = -1;                 // the transform that Adobe's segment names
  unsigned restart_interval = 0;  // in units of the scan; 0: none
};

bool read_frame(const Reader& r, size_t at, size_t length, Frame& frame) {
  if (length < 8) return false;
  frame.precision = r.byte(at + 2);
  frame.height = r.word(at + 3);
  frame.width = r.word(at + 5);
  frame.components = r.byte(at + 7);
  if (frame.components > 4 || length < 8 + 3 * frame.components) return false;
  for (size_t c = 0; c < frame.components; ++c) {
    const size_t p = at + 8 + 3 * c;
    frame.component[c] = {r.byte(p), r.byte(p + 1) >> 4, r.byte(p + 1) & 15};
  }
  return true;
}

bool is_frame(unsigned marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// YCbCr by libjpeg's rules: JFIF's segment, or Adobe's, or the components' numbers.
bool is_ycc(const Frame& f) {
  if (f.has_jfif) return true;
  if (f.adobe >= 0) return f.adobe == 1;
  return f.component[0].id == 1 && f.component[1].id == 2 && f.component[2].id == 3;
}

bool find_sampling(const Frame& f, JpegSampling& out) {
  if (f.components == 1) {
    out = JpegSampling::kGray;
    return true;
  }
  const auto& c = f.component;
  if (f.components != 3 || !is_ycc(f)) return false;
  for (const size_t i : {size_t{1}, size_t{2}})
    if (c[i].across != 1 || c[i].down != 1) return false;
  if (c[0].across == 1 && c[0].down == 1)
    out = JpegSampling::k444;
  else if (c[0].across == 2 && c[0].down == 1)
    out = JpegSampling::k422;
  else if (c[0].across == 2 && c[0].down == 2)
    out = JpegSampling::k420;
  else if (c[0].across == 1 && c[0].down == 2)
    out = JpegSampling::k440;
  else
    return false;
  return true;
}

// Zeros behind the last mark are common filler.
bool ends_well(const Reader& r) {
  size_t n = r.file.size();
  while (n > 2 && r.byte(n - 1) == 0) --n;
  return n >= 2 && r.byte(n - 2) == 0xff && r.byte(n - 1) == kEnd;
}

struct Scan {
  uint64_t units = 0;   // MCUs
  uint64_t blocks = 0;  // of 8 x 8 coefficients
};

Scan scan_of(const Frame& f) {
  const auto over = [](unsigned n, unsigned by) { return uint64_t{n + by - 1} / by; };
  if (f.components == 1) {  // whatever its factors are
    const uint64_t blocks = over(f.width, 8) * over(f.height, 8);
    return {blocks, blocks};
  }
  const Component& luma = f.component[0];
  const uint64_t units = over(f.width, 8 * luma.across) * over(f.height, 8 * luma.down);
  return {units, units * (luma.across * luma.down + 2)};
}

// From `at` on: no mark but restarts, as many as there must be and in their order, then the last
// mark; and not fewer bits than the blocks take at least (two: a code each for the first
// coefficient and for the end).
bool is_unbroken(const Reader& r, size_t at, const Frame& frame) {
  const Scan scan = scan_of(frame);
  const uint64_t every = frame.restart_interval;
  const uint64_t restarts = every == 0 ? 0 : (scan.units - 1) / every;
  uint64_t restart = 0;
  for (size_t p = find_mark(r.file, at); p < r.file.size(); p = find_mark(r.file, p + 2)) {
    const unsigned mark = r.byte(p + 1);
    if (mark == kEnd) {
      const uint64_t bytes = p - at - 2 * restart;
      return restart == restarts && bytes * 4 >= scan.blocks;
    }
    if (mark < kFirstRestart || mark - kFirstRestart >= 8) return false;
    if (mark - kFirstRestart != restart++ % 8) return false;
  }
  return false;
}

void note_application(const Reader& r, size_t at, size_t length, unsigned marker, Frame& frame) {
  const auto says = [&](std::string_view text) {
    if (length < 2 + text.size()) return false;
    for (size_t i = 0; i < text.size(); ++i)
      if (r.byte(at + 2 + i) != static_cast<unsigned char>(text[i])) return false;
    return true;
  };
  if (marker == kJfif && says(std::string_view("JFIF\0", 5))) frame.has_jfif = true;
  if (marker == kAdobe && length >= 14 && says("Adobe"))
    frame.adobe = static_cast<int>(r.byte(at + 13));
}

}  // namespace

bool read_jpeg_layout(Bytes file, JpegLayout& out) {
  const Reader r{file};
  if (file.size() < 4 || r.byte(0) != 0xff || r.byte(1) != kStart) return false;
  Frame frame;
  size_t at = 2;
  while (at + 4 <= file.size()) {
    if (r.byte(at) != 0xff) return false;
    const unsigned marker = r.byte(at + 1);
    if (marker == 0xff) {  // filler
      ++at;
      continue;
    }
    const size_t length = r.word(at + 2);
    if (length < 2 || at + 2 + length > file.size()) return false;
    const size_t body = at + 2;
    if (is_frame(marker)) {
      if (frame.kind != 0 || !read_frame(r, body, length, frame)) return false;
      frame.kind = marker;
    }
    note_application(r, body, length, marker, frame);
    if (marker == kRestartInterval && length >= 4) frame.restart_interval = r.word(body + 2);
    if (marker == kScan) {
      if (frame.kind == 0) return false;
      out.width = static_cast<int>(frame.width);
      out.height = static_cast<int>(frame.height);
      const bool whole_scan = length >= 3 && r.byte(body + 2) == frame.components;
      out.is_plain = frame.kind == 0xc0 && frame.precision == 8 && frame.width > 0 &&
                     frame.height > 0 && whole_scan && find_sampling(frame, out.sampling) &&
                     ends_well(r) && is_unbroken(r, at + 2 + length, frame);
      return true;
    }
    at += 2 + length;
  }
  return false;
}

}  // namespace headrace
