// SPDX-License-Identifier: Apache-2.0
//
// What the GPU does with decoded pictures:
//
//   weigh: which pixels, with which weights (transform/kernels/taps.cc)
//
//   planes (Y, Cb, Cr) ──► colours ──► pixels ──► first pass ──► pixels ──► second pass ──► batch ──► mix
//                          turns,                 weighs along              weighs along the other
//                          upsamples chroma,      one axis                  axis, pads, flips,
//                          converts colours                                 changes colours, erases,
//                                                                           scales, casts, lays out
//
// Pixels between them are of 4 bytes: r, g, b (or one value in r), and nothing.
//
// gray_sums runs before the second pass where contrast is changed: it needs the mean of a picture.
//
// Every number is the CPU path's: chroma and colours as libjpeg's, weights in doubles rounded to 22
// bits and sums in integers as Pillow's, one fused multiply-add for floats, changes of colours as
// transform/colour and transform/kernels make them, mixing as batch/mix.cc.  So it must be compiled
// without contraction (--fmad=false).
//
// Plain enough for a C++ compiler: the tests build it for the CPU (tests/standin/cuda.cc).
// No kernel waits for another thread of it.

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
  u64 pixels;          // address of the pixels of the box that are needed
  int region_x, region_y, region_width, region_height;  // which
  u64 middle;          // address of what the first pass makes
  int middle_low;      // the first of its rows (columns, down first) in the box
  int middle_extent;   // and how many
  int down_first;
  int slot;  // in the batch
  u64 changes;  // address of what is done to the pixels, in this order
  u64 sums;     // address of a sum of grays for each change of contrast
  int change_count;
  int orientation;  // 1 mirrored across, 2 down, 4 transposed; the box is of the turned picture
};

// codec/deferred.h has the same.
struct Change {
  int kind;  // 1 brightness, 2 contrast, 3 saturation, 4 hue, 5 gray, 6 erase, 7 noise
  int turn;
  double factor;
  int x, y, width, height;
  u32 colour;
  int mirrored;
  u64 noise;
};

// Each picture of a batch with the one before it; device/picture_job.h has the same.
struct Mixing {
  u64 from, to;
  int count;  // pictures
  int first;  // that this launch makes
  int channels;
  int dtype;
  int channels_first;
  int width, height;
  int cuts;           // 1: a box comes from the other; else both are blended
  float share, rest;  // of the picture itself, of the other
  int x0, x1, y0, y1;
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

// grid: (1, 2, pictures).  It clears the sums of grays too.
extern "C" __global__ void weigh(const Job* jobs) {
  const Job& job = jobs[blockIdx.z];
  if (job.kind == 5) return;
  const int across = blockIdx.y == 0;
  if (across && threadIdx.x == 0) {
    u64* sum = (u64*)job.sums;
    for (int i = 0; i < job.change_count; ++i)
      if (((const Change*)job.changes)[i].kind == 2) *sum++ = 0;
  }
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

// A pixel of the picture, turned; with one channel in r.
__device__ static Rgb pixel(const Job& job, int channels, int turned_x, int turned_y) {
  const int u = (job.orientation & 4) ? turned_y : turned_x;
  const int v = (job.orientation & 4) ? turned_x : turned_y;
  const int x = (job.orientation & 1) ? job.width - 1 - u : u;
  const int y = (job.orientation & 2) ? job.height - 1 - v : v;
  const int luma = ((const u8*)job.plane[0])[(u64)y * job.pitch[0] + x];
  Rgb out = {luma, luma, luma};
  if (job.kind == 0) return out;
  out = colours(luma, chroma(job, 1, x, y), chroma(job, 2, x, y));
  if (channels == 1) out.r = (19595 * out.r + 38470 * out.g + 7471 * out.b + 32768) >> 16;
  return out;
}

__device__ static int rounded(int sum) { return level((sum + (1 << 21)) >> 22); }

__device__ static u32 packed(Rgb p) { return (u32)p.r | (u32)p.g << 8 | (u32)p.b << 16; }

// A sum of weighed pixels.
struct Sum {
  int r, g, b;
};

__device__ static void add(Sum& sum, int weight, u32 pixel) {
  sum.r += weight * (int)(pixel & 255);
  sum.g += weight * (int)((pixel >> 8) & 255);
  sum.b += weight * (int)((pixel >> 16) & 255);
}

__device__ static Rgb rounded(const Sum& sum) {
  Rgb out = {rounded(sum.r), rounded(sum.g), rounded(sum.b)};
  return out;
}

// A warp makes a row (or some) at a time: which warp of how many this is, which thread of how many
// of it.
__device__ static int warps_of_block() { return at_least(1, (int)blockDim.x >> 5); }
__device__ static int own_warp() {
  return (int)blockIdx.x * warps_of_block() + ((int)threadIdx.x >> 5);
}
__device__ static int all_warps() { return (int)gridDim.x * warps_of_block(); }
__device__ static int own_lane() { return (int)threadIdx.x & 31; }
__device__ static int all_lanes() { return at_most(32, (int)blockDim.x); }

// grid: (blocks, 1, pictures), threads: one or whole warps.
extern "C" __global__ void colours(const Job* jobs, int channels) {
  const Job& job = jobs[blockIdx.z];
  if (job.kind == 5) return;
  for (int y = own_warp(); y < job.region_height; y += all_warps()) {
    u32* row = (u32*)job.pixels + (u64)y * job.region_width;
    for (int x = own_lane(); x < job.region_width; x += all_lanes())
      row[x] = packed(pixel(job, channels, job.box_x + job.region_x + x,
                            job.box_y + job.region_y + y));
  }
}

// Four rows at a time share what is read of the weights.
enum { kRows = 4 };

// Rows [y, y + rows) of the middle, across: row y of the region to row y.
__device__ static void weigh_across(const Job& job, int y, int rows) {
  const u32* from = (const u32*)job.pixels + (u64)y * job.region_width;
  u32* to = (u32*)job.middle + (u64)y * job.content_width;
  for (int x = own_lane(); x < job.content_width; x += all_lanes()) {
    const int* taps = (const int*)job.taps_x + x * (job.most_x + 2);
    const u32* at = from + (taps[0] - job.region_x);
    Sum sums[kRows] = {};
    for (int k = 0; k < taps[1]; ++k)
      for (int j = 0; j < kRows; ++j)
        if (j < rows) add(sums[j], taps[2 + k], at[(u64)j * job.region_width + k]);
    for (int j = 0; j < kRows; ++j)
      if (j < rows) to[(u64)j * job.content_width + x] = packed(rounded(sums[j]));
  }
}

// Row y of the middle, down: row y of the content.
__device__ static void weigh_down(const Job& job, int y) {
  const int* taps = (const int*)job.taps_y + y * (job.most_y + 2);
  const u32* from = (const u32*)job.pixels + (u64)(taps[0] - job.region_y) * job.region_width;
  u32* to = (u32*)job.middle + (u64)y * job.middle_extent;
  for (int x = own_lane(); x < job.middle_extent; x += all_lanes()) {
    Sum sum = {};
    for (int k = 0; k < taps[1]; ++k) add(sum, taps[2 + k], from[(u64)k * job.region_width + x]);
    to[x] = packed(rounded(sum));
  }
}

// grid: (blocks, 1, pictures), threads: one or whole warps.  Across first, a row of what it makes for each
// row of the region; down first, a row for each row of the content, as wide as the region.
extern "C" __global__ void first_pass(const Job* jobs) {
  const Job& job = jobs[blockIdx.z];
  if (job.kind == 5) return;
  if (job.down_first) {
    for (int y = own_warp(); y < job.content_height; y += all_warps()) weigh_down(job, y);
    return;
  }
  for (int y = kRows * own_warp(); y < job.middle_extent; y += kRows * all_warps())
    weigh_across(job, y, at_most(kRows, job.middle_extent - y));
}

// -- changes of colours ------------------------------------------------------------------------

// transform/colour/gray.h
__device__ static int gray_of(Rgb p) {
  return (int)((2507355u * (u32)p.r + 4924113u * (u32)p.g + 956302u * (u32)p.b) >> 23);
}

// gray.h, blended()
__device__ static int blended(int colour, float factor, double other) {
  const float product = (float)colour * factor;
  float sum = (float)((double)product + other);
  sum = sum < 0.0f ? 0.0f : sum;
  return (int)(sum < 255.0f ? sum : 255.0f);
}

// transform/kernels/saturation.cc
__device__ static int saturated(int colour, int gray, float factor, float rest) {
  return level((int)__fmaf_rn((float)gray, rest, (float)colour * factor));
}

// transform/kernels/hue.cc
__device__ static int hue_fall(int away, int c) { return clamped(away - c, 0, c); }

__device__ static int hue_level(int v) {
  return level((v + (v >> 8) + (v >> 17) + (v >> 18)) >> 16);
}

__device__ static int distance(int a, int b) { return a < b ? b - a : a - b; }

__device__ static Rgb turned(Rgb p, int sixths) {
  const int high = at_least(at_least(p.r, p.g), p.b);
  const int range = high - at_most(at_most(p.r, p.g), p.b);
  int at = 4 * range + p.r - p.g;
  if (high == p.g) at = 2 * range + p.b - p.r;
  if (high == p.r) at = p.g - p.b;
  at = at * 65536 + range * sixths;
  const int c = range * 65536;
  if (at < 0) at += 6 * c;
  if (at >= 6 * c) at -= 6 * c;
  const int top = high * 65536;
  Rgb out;
  out.r = hue_level(top - hue_fall(3 * c - distance(at, 3 * c), c));
  out.g = hue_level(top - hue_fall(distance(at, 2 * c), c));
  out.b = hue_level(top - hue_fall(distance(at, 4 * c), c));
  return out;
}

// transform/colour/change.cc
__device__ static int noise_level(int c, u64 bits) {
  const double mean[3] = {0.485 * 255, 0.456 * 255, 0.406 * 255};
  const double deviation[3] = {0.229 * 255, 0.224 * 255, 0.225 * 255};
  int sum = 0;
  for (int k = 0; k < 4; ++k) sum += (int)((bits >> (16 * k)) & 0xffff);
  const double noise = ((double)sum - 2 * 65535.0) / 65536 * 1.7320508075688772;
  const double v = mean[c] + deviation[c] * noise;
  return (int)(v < 0.0 ? 0.0 : v > 255.0 ? 255.0 : v);
}

// base/rng.h
__device__ static u64 mix64(u64 x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ static Rgb erased(const Change& change, int channels, int x, int y, Rgb p) {
  const int bx = x - change.x, by = y - change.y;
  if (bx < 0 || bx >= change.width || by < 0 || by >= change.height) return p;
  Rgb out;
  if (change.kind == 6) {
    out.r = change.colour & 255, out.g = (change.colour >> 8) & 255;
    out.b = (change.colour >> 16) & 255;
    return out;
  }
  const int column = (change.mirrored & 1) ? change.width - 1 - bx : bx;
  const int row = (change.mirrored & 2) ? change.height - 1 - by : by;
  const u64 first = ((u64)row * change.width + column) * channels + 1;
  const u64 golden = 0x9e3779b97f4a7c15ull;
  out.r = noise_level(0, mix64(change.noise + first * golden));
  out.g = channels == 3 ? noise_level(1, mix64(change.noise + (first + 1) * golden)) : 0;
  out.b = channels == 3 ? noise_level(2, mix64(change.noise + (first + 2) * golden)) : 0;
  return out;
}

// The pixel (x, y) of the result after the first `count` changes; pictures of `pixels` pixels.
__device__ static Rgb changed(const Job& job, int channels, int count, int pixels, int x, int y,
                              Rgb p) {
  const Change* changes = (const Change*)job.changes;
  const u64* sums = (const u64*)job.sums;
  for (int i = 0; i < count; ++i) {
    const Change& change = changes[i];
    const float factor = (float)change.factor;
    const float rest = (float)(1 - change.factor);
    if (change.kind == 1) {
      const float r = (float)p.r * factor, g = (float)p.g * factor, b = (float)p.b * factor;
      p.r = (int)(r < 255.0f ? r : 255.0f);
      p.g = (int)(g < 255.0f ? g : 255.0f);
      p.b = (int)(b < 255.0f ? b : 255.0f);
    } else if (change.kind == 2) {
      const float mean = (float)((double)*sums++ / (double)pixels);
      const double other = (double)mean * (double)rest;
      p.r = blended(p.r, factor, other);
      p.g = blended(p.g, factor, other);
      p.b = blended(p.b, factor, other);
    } else if (change.kind >= 6) {
      p = erased(change, channels, x, y, p);
    } else if (channels == 3) {
      const int gray = gray_of(p);
      if (change.kind == 3) {
        p.r = saturated(p.r, gray, factor, rest);
        p.g = saturated(p.g, gray, factor, rest);
        p.b = saturated(p.b, gray, factor, rest);
      } else if (change.kind == 4) {
        p = turned(p, change.turn);
      } else {
        p.r = p.g = p.b = gray;
      }
    }
  }
  return p;
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
__device__ static Rgb weighed(const Job& job, int x, int y) {
  const int columns = job.down_first ? job.middle_extent : job.content_width;
  const int i = job.down_first ? x : y;
  const int most = job.down_first ? job.most_x : job.most_y;
  const int* taps = (const int*)(job.down_first ? job.taps_x : job.taps_y) + i * (most + 2);
  const u32* from = (const u32*)job.middle;
  Sum sum = {};
  for (int k = 0; k < taps[1]; ++k) {
    const int at = taps[0] + k - job.middle_low;
    add(sum, taps[2 + k], from[(u64)(job.down_first ? y : at) * columns + (job.down_first ? at : x)]);
  }
  return rounded(sum);
}

// The pixel (x, y) of the result, before its changes.
__device__ static Rgb resulting(const Job& job, const Output& out, int x, int y) {
  Rgb p;
  if (job.kind == 5) {
    const u8* from = (const u8*)job.plane[0] + ((u64)y * out.width + x) * out.channels;
    p.r = from[0];
    p.g = out.channels == 3 ? from[1] : 0;
    p.b = out.channels == 3 ? from[2] : 0;
    return p;
  }
  const int wx = job.flip ? out.width - 1 - x : x;
  const int wy = job.flip_down ? out.height - 1 - y : y;
  const int cx = wx - job.content_x, cy = wy - job.content_y;
  if (cx >= 0 && cx < job.content_width && cy >= 0 && cy < job.content_height)
    return weighed(job, cx, cy);
  p.r = job.fill & 255, p.g = (job.fill >> 8) & 255, p.b = (job.fill >> 16) & 255;
  return p;
}

// grid: (blocks, 1, pictures).  The sum for change of contrast number `round` of each picture; the
// sums before it are there.  Whole numbers: the order of adding does not matter.
extern "C" __global__ void gray_sums(const Job* jobs, Output out, int round) {
  const Job& job = jobs[blockIdx.z];
  const Change* changes = (const Change*)job.changes;
  int until = 0, seen = -1;
  for (; until < job.change_count; ++until)
    if (changes[until].kind == 2 && ++seen == round) break;
  if (until == job.change_count) return;
  const int pixels = out.width * out.height;
  u64 sum = 0;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < pixels; at += gridDim.x * blockDim.x) {
    const int x = at % out.width, y = at / out.width;
    const Rgb p = changed(job, out.channels, until, pixels, x, y, resulting(job, out, x, y));
    sum += out.channels == 3 ? gray_of(p) : p.r;
  }
  if (sum != 0) atomicAdd((u64*)job.sums + round, sum);
}

// grid: (blocks, 1, pictures), threads: one or whole warps.
extern "C" __global__ void second_pass(const Job* jobs, Output out) {
  const Job& job = jobs[blockIdx.z];
  const int pixels = out.width * out.height;
  for (int y = own_warp(); y < out.height; y += all_warps()) {
    for (int x = own_lane(); x < out.width; x += all_lanes()) {
      const Rgb p =
          changed(job, out.channels, job.change_count, pixels, x, y, resulting(job, out, x, y));
      put(out, job.slot, x, y, 0, p.r);
      if (out.channels == 3) put(out, job.slot, x, y, 1, p.g), put(out, job.slot, x, y, 2, p.b);
    }
  }
}

// -- mixing ------------------------------------------------------------------------------------

// half.h, from_f16()
__device__ static float from_f16(u16 v) {
  const u32 sign = (u32)(v & 0x8000u) << 16;
  const u32 exponent = (v >> 10) & 31u, mantissa = v & 0x3ffu;
  if (exponent == 0) {
    const float tiny = (float)mantissa * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -tiny : tiny;
  }
  const u32 wide = exponent == 31 ? 255u : exponent + 112u;
  return __uint_as_float(sign | wide << 23 | mantissa << 13);
}

__device__ static float mixed(const Mixing& m, float a, float b) {
  return a * m.share + b * m.rest;
}

__device__ static bool is_cut(const Mixing& m, int at) {
  const int place = m.channels_first ? at % (m.width * m.height) : at / m.channels;
  const int x = place % m.width, y = place / m.width;
  return x >= m.x0 && x < m.x1 && y >= m.y0 && y < m.y1;
}

// grid: (blocks, 1, pictures)
extern "C" __global__ void mix(Mixing m) {
  const int each = m.channels * m.width * m.height;
  const int number = m.first + (int)blockIdx.z;
  const u64 own = (u64)number * each;
  const u64 other = (u64)(number == 0 ? m.count - 1 : number - 1) * each;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < each; at += gridDim.x * blockDim.x) {
    const u64 from = m.cuts && is_cut(m, at) ? other : own;
    if (m.dtype == 0) {
      ((u8*)m.to)[own + at] = ((const u8*)m.from)[from + at];
    } else if (m.dtype == 3) {
      const float* in = (const float*)m.from;
      ((float*)m.to)[own + at] = m.cuts ? in[from + at] : mixed(m, in[own + at], in[other + at]);
    } else {
      const u16* in = (const u16*)m.from;
      u16 v = in[from + at];
      if (!m.cuts && m.dtype == 1)
        v = f16_of(mixed(m, from_f16(in[own + at]), from_f16(in[other + at])));
      if (!m.cuts && m.dtype == 2)
        v = bf16_of(mixed(m, __uint_as_float((u32)in[own + at] << 16),
                          __uint_as_float((u32)in[other + at] << 16)));
      ((u16*)m.to)[own + at] = v;
    }
  }
}
