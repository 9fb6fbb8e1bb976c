// SPDX-License-Identifier: Apache-2.0
#include "device/picture_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transform/program/deferred_decoder.h"

namespace headrace {
namespace {

constexpr size_t kMostTogether = 256;  // pictures of one call of the engines
constexpr unsigned kThreads = 256;     // of a block: 8 rows at a time
constexpr unsigned kBlocks = 32;       // for the pixels of a picture
constexpr unsigned kFirstBlocks = 8;   // of the first pass, where a warp makes four rows at a time
constexpr size_t kMostLaunched = 65535;  // pictures of one launch: the grid's third extent
constexpr unsigned kSumBlocks = 8;       // for its sums: each thread adds to one number in the end

int32_t type_of(DType dtype) {
  return dtype == DType::kU8 ? 0 : dtype == DType::kF16 ? 1 : dtype == DType::kBF16 ? 2 : 3;
}

PictureOutput output_of(const DeferredSpec& spec, const SharedBuffer& to) {
  PictureOutput out;
  out.address = reinterpret_cast<CudaAddress>(to->data());
  out.channels = channels_of(spec.mode);
  out.dtype = type_of(spec.result.dtype);
  out.channels_first = spec.channels_first ? 1 : 0;
  const auto& shape = spec.result.shape;
  out.height = static_cast<int32_t>(shape[spec.channels_first ? 1 : 0]);
  out.width = static_cast<int32_t>(shape[spec.channels_first ? 2 : 1]);
  for (size_t c = 0; c < 4; ++c) out.scale[c] = spec.scale[c], out.bias[c] = spec.bias[c];
  return out;
}

uint64_t wanted(const JobMemory& m) {
  constexpr uint64_t kRounding = 8 * 256;
  return m.planes + m.taps_x + m.taps_y + m.pixels + m.middle + m.sums + kRounding;
}

}  // namespace

Status PictureWork::upload(CudaAddress to, const void* from, uint64_t bytes) {
  return gpu_->driver().check(gpu_->driver().copy_to_device(to, from, bytes, stream_),
                              "cuMemcpyHtoDAsync");
}

Status PictureWork::run(const DeferredSpec& spec, Column& column, InFlight& in_flight) {
  const size_t n = spec.has_pixels ? static_cast<size_t>(column.shape[0]) : column.items.size();
  HEADRACE_ASSIGN(SharedBuffer to, gpu_->memory().take(spec.result.bytes() * n, owned_stream_));
  if (column.late_mix && n > 1) {
    HEADRACE_ASSIGN(const SharedBuffer made, gpu_->memory().take(to->size(), owned_stream_));
    const PictureOutput out = output_of(spec, made);
    HEADRACE_TRY(make(spec, column, out, in_flight));
    HEADRACE_TRY(mix(*column.late_mix, n, out, reinterpret_cast<CudaAddress>(to->data())));
  } else {
    HEADRACE_TRY(make(spec, column, output_of(spec, to), in_flight));
  }
  column = Column();
  column.packing = Packing::kDense;
  column.dtype = spec.result.dtype;
  column.shape = spec.result.shape;
  column.shape.insert(column.shape.begin(), static_cast<int64_t>(n));
  column.values = std::move(to);
  return {};
}

Status PictureWork::make(const DeferredSpec& spec, const Column& column, const PictureOutput& out,
                         InFlight& in_flight) {
  if (spec.has_pixels) {
    const Status status = copy_pixels(column, out, in_flight);
    HEADRACE_TRY(end());
    return status;
  }
  HEADRACE_TRY(plan(spec, column, in_flight));
  for (size_t begin = 0; begin < items_.size();) {
    uint64_t bytes = 0;
    uint64_t told = 0;
    size_t end = begin;
    while (end < items_.size() &&
           (end == begin || bytes + wanted(items_[end].memory) <= scratch_bytes_)) {
      bytes += wanted(items_[end].memory);
      told += sizeof(PictureJob) + items_[end].value.changes.size() * sizeof(PixelChange);
      ++end;
    }
    HEADRACE_TRY(this->begin(bytes, told, true));
    const Status status = run_part(spec, begin, end, out, in_flight);
    HEADRACE_TRY(this->end());
    HEADRACE_TRY(status);
    begin = end;
  }
  return {};
}

Status PictureWork::mix(const LateMix& how, size_t pictures, const PictureOutput& made,
                        CudaAddress to) {
  HEADRACE_ASSIGN(const Gpu::Kernels* kernels, gpu_->kernels());
  PictureMixing told;
  told.from = made.address, told.to = to;
  told.count = static_cast<int32_t>(pictures);
  told.channels = made.channels, told.dtype = made.dtype;
  told.channels_first = made.channels_first;
  told.width = made.width, told.height = made.height;
  told.cuts = how.cuts ? 1 : 0;
  told.share = how.share, told.rest = 1 - how.share;
  told.x0 = static_cast<int32_t>(how.x0), told.x1 = static_cast<int32_t>(how.x1);
  told.y0 = static_cast<int32_t>(how.y0), told.y1 = static_cast<int32_t>(how.y1);
  void* parameters[] = {&told};
  for (size_t first = 0; first < pictures; first += kMostLaunched) {
    told.first = static_cast<int32_t>(first);
    const auto n = static_cast<unsigned>(std::min(kMostLaunched, pictures - first));
    HEADRACE_TRY(gpu_->driver().check(gpu_->driver().launch(kernels->mix, kBlocks, 1, n, kThreads,
                                                            1, 1, 0, stream_, parameters, nullptr),
                                      "mix"));
  }
  return {};
}

// nvJPEG is told a stream, but its engines write when the call is made, whatever the stream was
// told before (docs/adr/0017): planes are handed to them only when nothing that was handed over
// before still reads them, and it is this thread that waits.  Meanwhile another worker is in its
// call.
Status PictureWork::begin(uint64_t bytes, uint64_t told_bytes, bool for_engines) {
  if (for_engines && last_) HEADRACE_TRY(last_->wait());
  HEADRACE_TRY(scratch_.begin(bytes));
  return job_memory_.begin(told_bytes);
}

Status PictureWork::end() {
  if (!last_) {
    HEADRACE_ASSIGN(last_, CudaEvent::make(gpu_->driver(), gpu_->context()));
  }
  return last_->record(stream_);
}

// One item a picture; those of one sampling are together, those that are rendered come last.
Status PictureWork::plan(const DeferredSpec& spec, const Column& column, InFlight& in_flight) {
  items_.clear();
  int64_t left = 0;
  for (size_t i = 0; i < column.items.size(); ++i) {
    Item item;
    HEADRACE_ASSIGN(item.value, split_deferred(column.items[i]->bytes()));
    item.is_rendered = item.value.picture.is_rendered != 0;
    if (item.is_rendered) {
      item.job.kind = PictureJob::kPixels;
      item.memory.planes = item.value.stored.size();
    } else {
      item.job = plan_job(item.value, item.memory);
      ++left;
    }
    item.job.slot = static_cast<int32_t>(i);
    items_.push_back(std::move(item));
    in_flight.buffers.push_back(column.items[i]);
  }
  if (spec.share) in_flight.waiting.emplace_back(spec.share, left);
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return std::pair(a.job.kind, a.job.slot) < std::pair(b.job.kind, b.job.slot);
  });
  return {};
}

// Items [begin, end), for which there is scratch memory.
Status PictureWork::run_part(const DeferredSpec& spec, size_t begin, size_t end,
                             const PictureOutput& out, InFlight& in_flight) {
  for (size_t i = begin; i < end; ++i) {
    Item& item = items_[i];
    const CudaAddress planes = scratch_.take(item.memory.planes);
    item.job.plane[0] = planes;
    if (item.is_rendered) {
      HEADRACE_TRY(upload(planes, item.value.stored.data(), item.value.stored.size()));
      continue;
    }
    item.job.plane[1] = planes + item.memory.chroma;
    item.job.plane[2] = item.job.plane[1] + item.memory.chroma_bytes;
    item.job.taps_x = scratch_.take(item.memory.taps_x);
    item.job.taps_y = scratch_.take(item.memory.taps_y);
    item.job.pixels = scratch_.take(item.memory.pixels);
    item.job.middle = scratch_.take(item.memory.middle);
    item.job.sums = scratch_.take(item.memory.sums);
  }
  for (size_t first = begin; first < end && !items_[first].is_rendered;) {
    size_t last = first;
    while (last < end && last - first < kMostTogether &&
           items_[last].job.kind == items_[first].job.kind)
      ++last;
    HEADRACE_TRY(decode(spec, first, last, in_flight));
    first = last;
  }
  Told told;
  for (size_t i = begin; i < end; ++i) {
    PictureJob& job = told.jobs.emplace_back(items_[i].job);
    if (job.kind == PictureJob::kPixels) {
      job.change_count = 0;  // they are made
      continue;
    }
    const std::vector<PixelChange>& changes = items_[i].value.changes;
    job.changes = told.changes.size() * sizeof(PixelChange);  // an address below
    told.changes.insert(told.changes.end(), changes.begin(), changes.end());
    told.contrasts = std::max(told.contrasts, contrasts_of(changes));
    told.resamples = true;
  }
  return launch(told, out, in_flight);
}

// Ready for a call: nvJPEG lets go of the memory of a call that is under way when the next one of
// the same state wants more.
Result<PictureWork::PerSampling*> PictureWork::decoder_for(int sampling) {
  PerSampling& chosen = decoders_[static_cast<size_t>(sampling)];
  if (chosen.decoder) {
    HEADRACE_TRY(chosen.done->wait());
    return &chosen;
  }
  HEADRACE_ASSIGN(auto engines, gpu_->engines());
  HEADRACE_ASSIGN(chosen.done, CudaEvent::make(gpu_->driver(), gpu_->context()));
  HEADRACE_ASSIGN(chosen.decoder, JpegBatchDecoder::make(std::move(engines)));
  return &chosen;
}

// Items of one sampling.
Status PictureWork::decode(const DeferredSpec& spec, size_t begin, size_t end,
                           InFlight& in_flight) {
  HEADRACE_ASSIGN(PerSampling * chosen, decoder_for(items_[begin].job.kind));
  std::vector<Bytes> stored;
  std::vector<JpegPlanes>& planes = chosen->planes;
  planes.clear();
  for (size_t i = begin; i < end; ++i) {
    const PictureJob& job = items_[i].job;
    stored.push_back(items_[i].value.stored);
    JpegPlanes p;
    for (size_t c = 0; c < (job.chroma_width == 0 ? 1u : 3u); ++c) {
      p.data[c] = reinterpret_cast<unsigned char*>(job.plane[c]);
      p.pitch[c] = static_cast<size_t>(job.pitch[c == 0 ? 0 : 1]);
    }
    planes.push_back(p);
  }
  const Status status = chosen->decoder->decode(stored, planes, stream_);
  HEADRACE_TRY(chosen->done->record(stream_));
  if (status.ok()) return {};
  // The engines may be at some of them, in streams of nvJPEG's own, and write their planes.
  HEADRACE_TRY(gpu_->driver().check(gpu_->driver().context_synchronize(), "cuCtxSynchronize"));
  if (status.code() != Code::kCorrupt) return status;
  // One of them is bad, and nobody says which: the CPU tells, and makes the others.
  for (size_t i = begin; i < end; ++i) HEADRACE_TRY(render(spec, items_[i], in_flight));
  return {};
}

// On the CPU, where the engines cannot.
Status PictureWork::render(const DeferredSpec& spec, Item& item, InFlight& in_flight) {
  const DeferredPicture& record = item.value.picture;
  auto pixels = std::make_shared<Buffer>(static_cast<size_t>(record.window_width) *
                                         static_cast<size_t>(record.window_height) *
                                         static_cast<size_t>(channels_of(spec.mode)));
  HEADRACE_TRY(render_deferred(item.value, spec.mode, spec.limits, pixels->span()));
  // Its planes are larger than the result, or there is scratch memory of its own.
  if (pixels->size() > item.memory.planes)
    return internal("the GPU's JPEG decoder refused a picture that the CPU decodes");
  item.job.kind = PictureJob::kPixels;
  HEADRACE_TRY(upload(item.job.plane[0], pixels->data(), pixels->size()));
  in_flight.buffers.push_back(std::move(pixels));
  return {};
}

// Pixels that the CPU made, all of one size.
Status PictureWork::copy_pixels(const Column& column, const PictureOutput& out,
                                InFlight& in_flight) {
  const auto n = static_cast<size_t>(column.shape[0]);
  const uint64_t each = column.values->size() / std::max<size_t>(1, n);
  HEADRACE_TRY(begin(column.values->size(), n * sizeof(PictureJob), false));
  const CudaAddress at = scratch_.take(column.values->size());
  HEADRACE_TRY(upload(at, column.values->data(), column.values->size()));
  in_flight.buffers.push_back(column.values);
  Told told;
  told.jobs.resize(n);
  for (size_t i = 0; i < n; ++i) {
    told.jobs[i].kind = PictureJob::kPixels;
    told.jobs[i].plane[0] = at + i * each;
    told.jobs[i].slot = static_cast<int32_t>(i);
  }
  return launch(told, out, in_flight);
}

Status PictureWork::launch(Told& told, const PictureOutput& out, InFlight& in_flight) {
  HEADRACE_ASSIGN(const Gpu::Kernels* kernels, gpu_->kernels());
  const size_t job_bytes = told.jobs.size() * sizeof(PictureJob);
  const size_t bytes = job_bytes + told.changes.size() * sizeof(PixelChange);
  CudaAddress at = job_memory_.take(bytes);
  for (PictureJob& job : told.jobs) job.changes += at + job_bytes;
  // It is read when its turn comes, which may be after this returns.
  SharedBuffer kept = job_pool_->take(bytes);
  std::memcpy(kept->data(), told.jobs.data(), job_bytes);
  if (!told.changes.empty())
    std::memcpy(kept->data() + job_bytes, told.changes.data(), bytes - job_bytes);
  in_flight.buffers.push_back(kept);
  HEADRACE_TRY(upload(at, kept->data(), bytes));
  for (size_t first = 0; first < told.jobs.size(); first += kMostLaunched)
    HEADRACE_TRY(launch_kernels(*kernels, told, at + first * sizeof(PictureJob),
                                std::min(kMostLaunched, told.jobs.size() - first), out));
  return {};
}

Status PictureWork::launch_kernels(const Gpu::Kernels& kernels, const Told& told, CudaAddress jobs,
                                   size_t pictures, const PictureOutput& out) {
  const auto start = [&](CudaFunction kernel, const char* name, unsigned blocks, unsigned axes,
                         void** parameters) {
    const CudaDriver& driver = gpu_->driver();
    return driver.check(driver.launch(kernel, blocks, axes, static_cast<unsigned>(pictures),
                                      kThreads, 1, 1, 0, stream_, parameters, nullptr),
                        name);
  };
  PictureOutput to = out;
  int round = 0;
  void* jobs_alone[] = {&jobs};
  void* colours[] = {&jobs, &to.channels};
  void* sums[] = {&jobs, &to, &round};
  void* second[] = {&jobs, &to};
  if (told.resamples) {
    HEADRACE_TRY(start(kernels.weigh, "weigh", 1, 2, jobs_alone));
    HEADRACE_TRY(start(kernels.colours, "colours", kBlocks, 1, colours));
    HEADRACE_TRY(start(kernels.first_pass, "first_pass", kFirstBlocks, 1, jobs_alone));
    for (; round < told.contrasts; ++round)
      HEADRACE_TRY(start(kernels.gray_sums, "gray_sums", kSumBlocks, 1, sums));
  }
  return start(kernels.second_pass, "second_pass", kBlocks, 1, second);
}

}  // namespace headrace
