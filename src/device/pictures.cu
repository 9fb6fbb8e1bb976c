// SPDX-License-Identifier: Apache-2.0
//
// What the GPU does with decoded pictures, in three kernels:
//
//   planes (Y, Cb, Cr) ──┐ weigh: which pixels, with which weights (transform/kernels/taps.cc)
//                        └─► first pass ──► u8 pixels ──► second pass ──► batch
//                            upsamples chroma,            weighs along the other axis, pads,
//                            converts colours,            flips, scales, casts, lays out
//                            weighs along one axis
//
// Every number is the CPU path's: chroma and colours as libjpeg's, weights in doubles rounded to 22
// bits and sums in integers as Pillow's, one fused multiply-add for floats.  So it must be compiled
// without contraction of doubles (--fmad=false).
//
// Plain enough for a C++ compiler: the tests build it for the CPU (cuda_standin.cc).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// One picture; device/picture_job.h has the same, field by field.
struct Job {
  u64 plane[3];       // addresses of Y, Cb, Cr, or of RGB pixels
  int pitch[2];       // bytes a row, of Y (or pixels) and of chroma
  int width, height;  // of the picture
  int chroma_width, chroma_height;
  int kind;  // 0 gray, 1 4:4:4, 2 4:2:2, 3 4:2:0, 4 4:4:0, 5 pixels
  int box_x, box_y, box_width, box_height;
  int size_width, size_height;
  int window_x, window_y, window_width, window_height;
  int filter, flip, flip_down, border;
  u32 fill;  // a byte a channel
  int content_x, content_y, content_width, content_height;  // of the window, before flips
  int most_x, most_y;                                       // taps, at most
  u64 taps_x, taps_y;  // addresses: {start, used} of each output, then its weights
  u64 middle;          // address of what the first pass makes, 3 (or 1) bytes a pixel
  int middle_low;      // the first of its rows (columns, down first) in the box
  int middle_extent;   // and how many
  int down_first;
  int slot;  // in the batch
};

// The same for all pictures of a column; device/picture_job.h.
struct Output {
  u64 address;
  int channels;
  int dtype;  // 0 u8, 1 f16, 2 bf16, 3 f32
  int channels_first;
  int width, height;
  float scale[4], bias[4];
};

__device__ static int at_most(int a, int b) { return a < b ? a : b; }
__device__ static int at_least(int a, int b) { return a > b ? a : b; }
__device__ static int clamped(int v, int low, int high) { return at_least(low, at_most(v, high)); }

// The pixel of [0, extent) that stands at `at`: geometry.cc, within().
__device__ static int within(int at, int extent, int border) {
  if (at >= 0 && at < extent) return at;
  if (border == 1) return clamped(at, 0, extent - 1);
  if (border == 2) {
    if (extent == 1) return 0;
    const int period = 2 * (extent - 1);
    const int m = ((at % period) + period) % period;
    return m < extent ? m : period - m;
  }
  const int period = 2 * extent;
  const int m = ((at % period) + period) % period;
  return m < extent ? m : period - 1 - m;
}

// -- weights ------------------------------------------------------------------------------------

__device__ static double triangle(double x) {
  x = x < 0 ? -x : x;
  return x < 1.0 ? 1.0 - x : 0.0;
}

__device__ static double cubic(double x) {
  const double a = -0.5;
  x = x < 0 ? -x : x;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

__device__ static int fixed(double w) { return (int)(w * (1 << 22) + (w < 0 ? -0.5 : 0.5)); }

// The taps of output i of one axis: `extent` source pixels become `size`.
__device__ static void weigh_one(int extent, int size, int first, int filter, int border, int most,
                                 int i, int* out) {
  const int wanted = border == 0 ? first + i : within(first + i, size, border);
  const double scale = (double)extent / size;
  int* weights = out + 2;
  if (extent == size || filter == 0) {
    double position = scale * 0.5;
    for (int k = 0; k < wanted; ++k) position += scale;
    out[0] = clamped((int)position, 0, extent - 1);
    out[1] = 1;
    weights[0] = 1 << 22;
    return;
  }
  const double stretch = scale > 1.0 ? scale : 1.0;
  const double support = (filter == 1 ? 1.0 : 2.0) * stretch;
  const double inverse = 1.0 / stretch;
  const double center = (wanted + 0.5) * scale;
  const int begin = at_least((int)(center - support + 0.5), 0);
  const int end = at_most((int)(center + support + 0.5), extent);
  const int n = at_most(end - begin, most);
  double sum = 0;
  for (int k = 0; k < n; ++k) {
    const double x = (k + begin - center + 0.5) * inverse;
    sum += filter == 1 ? triangle(x) : cubic(x);
  }
  for (int k = 0; k < n; ++k) {
    const double x = (k + begin - center + 0.5) * inverse;
    weights[k] = fixed((filter == 1 ? triangle(x) : cubic(x)) / sum);
  }
  out[0] = begin;
  out[1] = n;
}

// grid: (1, 2, pictures)
extern "C" __global__ void weigh(const Job* jobs) {
  const Job& job = jobs[blockIdx.z];
  if (job.kind == 5) return;
  const int across = blockIdx.y == 0;
  const int count = across ? job.content_width : job.content_height;
  const int most = across ? job.most_x : job.most_y;
  const int extent = across ? job.box_width : job.box_height;
  const int size = across ? job.size_width : job.size_height;
  const int first =
      (across ? job.window_x : job.window_y) + (across ? job.content_x : job.content_y);
  int* taps = (int*)(across ? job.taps_x : job.taps_y);
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    weigh_one(extent, size, first, job.filter, job.border, most, i, taps + i * (most + 2));
}

// -- pixels ------------------------------------------------------------------------------------

struct Rgb {
  int r, g, b;
};

__device__ static int level(int v) { return clamped(v, 0, 255); }

// libjpeg's conversion in 16 bits of fixed point.
__device__ static Rgb colours(int y, int cb, int cr) {
  const int u = cb - 128, v = cr - 128;
  Rgb out;
  out.r = level(y + ((91881 * v + 32768) >> 16));
  out.g = level(y + ((-22554 * u - 46802 * v + 32768) >> 16));
  out.b = level(y + ((116130 * u + 32768) >> 16));
  return out;
}

// libjpeg's fancy upsampling: a chroma sample counts three times, its neighbour once, on each axis.
__device__ static int chroma_422(const u8* plane, int pitch, int width, int x, int y) {
  const u8* row = plane + (u64)y * pitch;
  const int i = x >> 1;
  if (x & 1) return i + 1 < width ? (3 * row[i] + row[i + 1] + 2) >> 2 : row[i];
  return i > 0 ? (3 * row[i] + row[i - 1] + 1) >> 2 : row[i];
}

__device__ static int chroma_440(const u8* plane, int pitch, int height, int x, int y) {
  const int i = y >> 1;
  const int near = clamped((y & 1) ? i + 1 : i - 1, 0, height - 1);
  const int sum = 3 * plane[(u64)i * pitch + x] + plane[(u64)near * pitch + x];
  return (sum + ((y & 1) ? 2 : 1)) >> 2;
}

__device__ static int chroma_420(const u8* plane, int pitch, int width, int height, int x, int y) {
  const int i = y >> 1;
  const int near = clamped((y & 1) ? i + 1 : i - 1, 0, height - 1);
  const u8* row0 = plane + (u64)i * pitch;
  const u8* row1 = plane + (u64)near * pitch;
  const int c = x >> 1;
  const int here = 3 * row0[c] + row1[c];
  if (x & 1) {
    if (c + 1 >= width) return (4 * here + 7) >> 4;
    return (3 * here + 3 * row0[c + 1] + row1[c + 1] + 7) >> 4;
  }
  if (c == 0) return (4 * here + 8) >> 4;
  return (3 * here + 3 * row0[c - 1] + row1[c - 1] + 8) >> 4;
}

__device__ static int chroma(const Job& job, int which, int x, int y) {
  const u8* plane = (const u8*)job.plane[which];
  const int pitch = job.pitch[1];
  if (job.kind == 3)
    return chroma_420(plane, pitch, job.chroma_width, job.chroma_height, x, y);
  if (job.kind == 2) return chroma_422(plane, pitch, job.chroma_width, x, y);
  if (job.kind == 4) return chroma_440(plane, pitch, job.chroma_height, x, y);
  return plane[(u64)y * pitch + x];
}

// A pixel of the picture; with one channel in r.
__device__ static Rgb pixel(const Job& job, int channels, int x, int y) {
  const int luma = ((const u8*)job.plane[0])[(u64)y * job.pitch[0] + x];
  Rgb out = {luma, luma, luma};
  if (job.kind == 0) return out;
  out = colours(luma, chroma(job, 1, x, y), chroma(job, 2, x, y));
  if (channels == 1) out.r = (19595 * out.r + 38470 * out.g + 7471 * out.b + 32768) >> 16;
  return out;
}

__device__ static int rounded(int sum) { return level((sum + (1 << 21)) >> 22); }

// grid: (blocks, 1, pictures).  Across first, a row of what it makes for each source row that is
// needed; down first, a row for each row of the content.
extern "C" __global__ void first_pass(const Job* jobs, int channels) {
  const Job& job = jobs[blockIdx.z];
  if (job.kind == 5) return;
  const int columns = job.down_first ? job.middle_extent : job.content_width;
  const int rows = job.down_first ? job.content_height : job.middle_extent;
  u8* out = (u8*)job.middle;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < columns * rows;
       at += gridDim.x * blockDim.x) {
    const int x = at % columns, y = at / columns;
    const int i = job.down_first ? y : x;
    const int most = job.down_first ? job.most_y : job.most_x;
    const int* taps = (const int*)(job.down_first ? job.taps_y : job.taps_x) + i * (most + 2);
    int r = 0, g = 0, b = 0;
    for (int k = 0; k < taps[1]; ++k) {
      const int sx = job.box_x + (job.down_first ? job.middle_low + x : taps[0] + k);
      const int sy = job.box_y + (job.down_first ? taps[0] + k : job.middle_low + y);
      const Rgb p = pixel(job, channels, sx, sy);
      const int w = taps[2 + k];
      r += w * p.r, g += w * p.g, b += w * p.b;
    }
    u8* to = out + (u64)at * channels;
    to[0] = (u8)rounded(r);
    if (channels == 3) to[1] = (u8)rounded(g), to[2] = (u8)rounded(b);
  }
}

// -- the batch ---------------------------------------------------------------------------------

// half.h, to_bf16() and to_f16().
__device__ static u16 bf16_of(float v) {
  const u32 bits = __float_as_uint(v);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ static u16 f16_of(float v) {
  const u32 bits = __float_as_uint(v);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) return (u16)(sign | (u32)rintf(__uint_as_float(magnitude) * 16777216.0f));
  return (u16)(sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13));
}

__device__ static void put(const Output& out, int slot, int x, int y, int c, int v) {
  const u64 pixels = (u64)out.width * out.height;
  const u64 place = (u64)y * out.width + x;
  const u64 at = (u64)slot * pixels * out.channels +
                 (out.channels_first ? c * pixels + place : place * out.channels + c);
  if (out.dtype == 0) {
    ((u8*)out.address)[at] = (u8)v;
    return;
  }
  const float f = __fmaf_rn((float)v, out.scale[c], out.bias[c]);
  if (out.dtype == 1) ((u16*)out.address)[at] = f16_of(f);
  if (out.dtype == 2) ((u16*)out.address)[at] = bf16_of(f);
  if (out.dtype == 3) ((float*)out.address)[at] = f;
}

// The content's pixel (x, y), by weights along the axis that the first pass left.
__device__ static Rgb weighed(const Job& job, int channels, int x, int y) {
  const int columns = job.down_first ? job.middle_extent : job.content_width;
  const int i = job.down_first ? x : y;
  const int most = job.down_first ? job.most_x : job.most_y;
  const int* taps = (const int*)(job.down_first ? job.taps_x : job.taps_y) + i * (most + 2);
  const u8* middle = (const u8*)job.middle;
  int r = 0, g = 0, b = 0;
  for (int k = 0; k < taps[1]; ++k) {
    const int at = taps[0] + k - job.middle_low;
    const u8* p = middle + ((u64)(job.down_first ? y : at) * columns + (job.down_first ? at : x)) * channels;
    const int w = taps[2 + k];
    r += w * p[0];
    if (channels == 3) g += w * p[1], b += w * p[2];
  }
  Rgb out = {rounded(r), rounded(g), rounded(b)};
  return out;
}

// grid: (blocks, 1, pictures)
extern "C" __global__ void second_pass(const Job* jobs, Output out) {
  const Job& job = jobs[blockIdx.z];
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < out.width * out.height;
       at += gridDim.x * blockDim.x) {
    const int x = at % out.width, y = at / out.width;
    Rgb p;
    if (job.kind == 5) {
      const u8* from = (const u8*)job.plane[0] + (u64)at * out.channels;
      p.r = from[0];
      p.g = out.channels == 3 ? from[1] : 0;
      p.b = out.channels == 3 ? from[2] : 0;
    } else {
      const int wx = job.flip ? out.width - 1 - x : x;
      const int wy = job.flip_down ? out.height - 1 - y : y;
      const int cx = wx - job.content_x, cy = wy - job.content_y;
      if (cx < 0 || cx >= job.content_width || cy < 0 || cy >= job.content_height) {
        p.r = job.fill & 255, p.g = (job.fill >> 8) & 255, p.b = (job.fill >> 16) & 255;
      } else {
        p = weighed(job, out.channels, cx, cy);
      }
    }
    put(out, job.slot, x, y, 0, p.r);
    if (out.channels == 3) put(out, job.slot, x, y, 1, p.g), put(out, job.slot, x, y, 2, p.b);
  }
}
