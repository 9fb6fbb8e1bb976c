// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for nvJPEG's hardware backend: libjpeg's planes before upsampling, as the engines give
// them.  A picture that it does not take fails its whole batch, as there.  The bytes of a picture
// and the list of where its planes go are read when the stream comes to it, and not before.  It is
// as greedy as engines may be: it writes whole units (MCUs) of the planes, and 0xee where they
// reach past the picture, and reads some bytes past the end of a picture.
//
// HEADRACE_STANDIN_NO_ENGINES: a chip without engines.  _OTHER_PLANES: engines that round
// otherwise.  _REFUSES: every so many calls it takes the first half of the pictures and says then
// that it cannot decode one; the engines go on with that half.  _FAILS: every so many calls it does
// so and says that the device failed (status 6).  _EAGER: engines that write at once,
// and do not wait for what the stream was told before.
#include <cstdio>

#include <jpeglib.h>

#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
extern "C" void standin_add(void* stream, const std::function<void()>& work);
extern "C" void standin_add_apart(const std::function<void()>& work);
extern "C" bool standin_has_context();
extern "C" bool standin_holds(const void* address, size_t bytes);

namespace {

struct Planes {
  unsigned char* data[4];
  size_t pitch[4];
};

struct Plane {
  std::vector<unsigned char> samples;
  size_t width = 0, height = 0, stride = 0;
  size_t whole_width = 0, whole_height = 0;  // in whole units
};

struct Fault {
  jpeg_error_mgr errors;
  std::jmp_buf jump;
};

// 0, or nvJPEG's status.
int decode(const unsigned char* data, size_t length, std::vector<Plane>& planes) {
  jpeg_decompress_struct c{};
  Fault fault{};
  c.err = jpeg_std_error(&fault.errors);
  c.client_data = &fault;
  fault.errors.error_exit = [](j_common_ptr p) {
    std::longjmp(static_cast<Fault*>(p->client_data)->jump, 1);
  };
  fault.errors.emit_message = [](j_common_ptr p, int level) {
    if (level < 0) std::longjmp(static_cast<Fault*>(p->client_data)->jump, 1);
  };
  // Before the jump: what it leaves is not destroyed.
  std::vector<std::vector<JSAMPROW>> rows;
  std::vector<JSAMPARRAY> all;
  if (setjmp(fault.jump) != 0) {
    jpeg_destroy_decompress(&c);
    return 3;
  }
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, data, length);
  jpeg_read_header(&c, TRUE);
  if (c.progressive_mode || c.num_components == 4) {
    jpeg_destroy_decompress(&c);
    return 4;
  }
  c.raw_data_out = TRUE;
  c.out_color_space = c.jpeg_color_space;
  jpeg_start_decompress(&c);
  planes.resize(static_cast<size_t>(c.num_components));
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& info = c.comp_info[i];
    Plane& plane = planes[static_cast<size_t>(i)];
    plane.width = info.downsampled_width;
    plane.height = info.downsampled_height;
    plane.stride = info.width_in_blocks * 8 + 64;
    const auto whole = [](size_t n, int most, int own) {
      const auto unit = static_cast<size_t>(8 * most);
      return (n + unit - 1) / unit * static_cast<size_t>(8 * own);
    };
    plane.whole_width = whole(c.image_width, c.max_h_samp_factor, info.h_samp_factor);
    plane.whole_height = whole(c.image_height, c.max_v_samp_factor, info.v_samp_factor);
    plane.samples.resize(plane.stride * (info.height_in_blocks * 8 + 64));
  }
  const int step = c.max_v_samp_factor * 8;
  while (c.output_scanline < c.output_height) {
    rows.assign(planes.size(), {});
    all.clear();
    for (size_t i = 0; i < planes.size(); ++i) {
      const int count = c.comp_info[i].v_samp_factor * 8;
      const size_t first =
          c.output_scanline / static_cast<size_t>(step) * static_cast<size_t>(count);
      for (int r = 0; r < count; ++r)
        rows[i].push_back(planes[i].samples.data() +
                          (first + static_cast<size_t>(r)) * planes[i].stride);
      all.push_back(rows[i].data());
    }
    jpeg_read_raw_data(&c, all.data(), static_cast<JDIMENSION>(step));
  }
  jpeg_finish_decompress(&c);
  jpeg_destroy_decompress(&c);
  if (std::getenv("HEADRACE_STANDIN_OTHER_PLANES") != nullptr)
    planes[0].samples[0] ^= 64, planes[0].samples[planes[0].stride * 40 + 40] ^= 64;
  return 0;
}

[[noreturn]] void fault(const char* what) {
  std::fprintf(stderr, "stand-in of nvJPEG: %s\n", what);
  std::abort();
}

void write(const Plane& plane, unsigned char* to, size_t pitch) {
  if (pitch < plane.whole_width) fault("rows of a plane are closer than the units are wide");
  if (!standin_holds(to, (plane.whole_height - 1) * pitch + plane.whole_width))
    fault("the engines write past the memory of a plane");
  for (size_t y = 0; y < plane.whole_height; ++y, to += pitch) {
    const size_t inside = y < plane.height ? plane.width : 0;
    std::memcpy(to, plane.samples.data() + y * plane.stride, inside);
    std::memset(to + inside, 0xee, plane.whole_width - inside);
  }
}

// As the copy of a picture to the engines does.
void read_past(const unsigned char* data, size_t length) {
  volatile unsigned char seen = 0;
  for (size_t i = 0; i < 64; ++i) seen = data[length + i];
  (void)seen;
}

}  // namespace

EXPORT int nvjpegCreateEx(int backend, void*, void*, unsigned, void** handle) {
  static int one;
  *handle = &one;
  return backend != 3 || std::getenv("HEADRACE_STANDIN_NO_ENGINES") != nullptr ? 7 : 0;
}
EXPORT int nvjpegDestroy(void*) {
  return 0;
}
EXPORT int nvjpegGetHardwareDecoderInfo(void*, unsigned* engines, unsigned* cores) {
  *engines = 7;
  *cores = 1;
  return 0;
}
EXPORT int nvjpegJpegStateCreate(void*, void** state) {
  *state = new int(0);
  return 0;
}
EXPORT int nvjpegJpegStateDestroy(void* state) {
  delete static_cast<int*>(state);
  return 0;
}
EXPORT int nvjpegDecodeBatchedInitialize(void*, void* state, int batch, int, int output) {
  *static_cast<int*>(state) = batch;
  return output == 1 && batch > 0 ? 0 : 2;
}
EXPORT int nvjpegDecodeBatched(void*, void* state, const unsigned char* const* data,
                               const size_t* lengths, void* planes, void* stream) {
  const auto* to = static_cast<const Planes*>(planes);
  const auto batch = static_cast<size_t>(*static_cast<int*>(state));
  if (batch == 0) return 2;
  if (!standin_has_context()) return 1;
  static std::atomic<int> calls{0};
  const char* refuses = std::getenv("HEADRACE_STANDIN_REFUSES");
  const char* fails = std::getenv("HEADRACE_STANDIN_FAILS");
  const int call = ++calls;
  const bool failed = fails != nullptr && call % std::atoi(fails) == 0;
  const bool refused = failed || (refuses != nullptr && call % std::atoi(refuses) == 0);
  const size_t taken = refused ? batch / 2 : batch;
  std::vector<Plane> tried;
  for (size_t i = 0; i < batch; ++i)
    if (const int status = decode(data[i], lengths[i], tried); status != 0) return status;
  const std::function<void()> work = [=] {
    std::vector<Plane> decoded;
    for (size_t i = 0; i < taken; ++i) {
      if (decode(data[i], lengths[i], decoded) != 0)
        fault("a picture was written before it was decoded");
      read_past(data[i], lengths[i]);
      for (size_t p = 0; p < decoded.size(); ++p) write(decoded[p], to[i].data[p], to[i].pitch[p]);
    }
  };
  if (refused) {
    standin_add_apart(work);  // nothing of the caller's waits for it
    return failed ? 6 : 9;
  }
  if (std::getenv("HEADRACE_STANDIN_EAGER") != nullptr)
    work();
  else
    standin_add(stream, work);
  return 0;
}
