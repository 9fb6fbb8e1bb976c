// SPDX-License-Identifier: Apache-2.0
#include "device/device_stage.h"

#include <fmt/format.h>

#include <deque>
#include <thread>

#include "base/guard.h"
#include "device/picture_work.h"
#include "trace/spans.h"

namespace headrace {
namespace {

// A thread of the stage: it hands batches to the device, in a stream of its own.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> make(std::shared_ptr<Gpu> gpu,
                                              const DeviceStageOptions& options) {
    HEADRACE_ASSIGN(StreamPointer stream, DeviceStream::make(gpu->driver(), gpu->context()));
    return std::unique_ptr<Worker>(new Worker(std::move(gpu), std::move(stream), options));
  }
  // What the device has yet to read or write goes after that.
  ~Worker() {
    const CudaCurrent current(gpu_->driver(), gpu_->context());
    gpu_->driver().stream_synchronize(stream_->handle());
    pictures_.reset();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status run(Batch& batch) {
    const CudaCurrent current(gpu_->driver(), gpu_->context());
    InFlight in_flight;
    HEADRACE_ASSIGN(const std::shared_ptr<CudaEvent> ready,
                    CudaEvent::make(gpu_->driver(), gpu_->context()));
    Status status;
    for (size_t c = 0; c < batch.columns.size() && status.ok(); ++c)
      status = run_column(c, batch.columns[c], in_flight);
    batch.decode_again = status.code() == Code::kCorrupt || status.code() == Code::kUnsupported;
    // Also where something failed: what was handed over reads the buffers.
    const Status recorded = ready->record(stream_->handle());
    under_way_.emplace_back(ready, std::move(in_flight));
    HEADRACE_TRY(status);
    HEADRACE_TRY(recorded);
    for (Column& column : batch.columns)
      if (column.device.kind == DeviceKind::kCuda) column.ready = ready;
    return {};
  }
  // Lets go of what the device has done.
  void retire() {
    while (!under_way_.empty() && under_way_.front().first->is_past()) under_way_.pop_front();
  }
  bool is_under_way() const { return !under_way_.empty(); }
  void wait_for_oldest() {
    (void)under_way_.front().first->wait();
    under_way_.pop_front();
  }

 private:
  Worker(std::shared_ptr<Gpu> gpu, StreamPointer stream, const DeviceStageOptions& options)
      : gpu_(std::move(gpu)),
        stream_(std::move(stream)),
        options_(options),
        pictures_(std::make_unique<PictureWork>(gpu_, stream_, options.scratch_bytes)) {}

  Status run_column(size_t c, Column& column, InFlight& in_flight) {
    if (options_.columns[c]) {
      HEADRACE_TRY(pictures_->run(*options_.columns[c], column, in_flight));
    } else if (column.packing == Packing::kList) {
      return {};  // stays where it is
    } else {
      HEADRACE_ASSIGN(SharedBuffer to, gpu_->memory().take(column.values->size(), stream_));
      if (to->size() > 0)
        HEADRACE_TRY(gpu_->driver().check(
            gpu_->driver().copy_to_device(reinterpret_cast<CudaAddress>(to->data()),
                                          column.values->data(), column.values->size(),
                                          stream_->handle()),
            "cuMemcpyHtoDAsync"));
      in_flight.buffers.push_back(std::move(column.values));
      column.values = std::move(to);
    }
    column.device = {DeviceKind::kCuda, gpu_->index()};
    return {};
  }

  const std::shared_ptr<Gpu> gpu_;
  const StreamPointer stream_;
  const DeviceStageOptions& options_;
  std::unique_ptr<PictureWork> pictures_;
  std::deque<std::pair<std::shared_ptr<CudaEvent>, InFlight>> under_way_;
};

class DeviceStage final : public BatchStage {
 public:
  DeviceStage(std::shared_ptr<Gpu> gpu, DeviceStageOptions options)
      : gpu_(std::move(gpu)), options_(std::move(options)) {}
  Status start_workers() {
    for (int i = 0; i < options_.workers; ++i) {
      HEADRACE_ASSIGN(std::unique_ptr<Worker> worker, Worker::make(gpu_, options_));
      threads_.emplace_back([this, i, w = std::move(worker)] { serve(i, *w); });
    }
    return {};
  }
  ~DeviceStage() override {
    {
      MutexLock lock(mu_);
      ends_ = true;
      wakes_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  void start(std::unique_ptr<Batch> batch, Key, BufferPool&, Done done) const override {
    MutexLock lock(mu_);
    queue_.push_back({std::move(batch), std::move(done)});
    wakes_.notify_one();
  }

 private:
  struct Entry {
    std::unique_ptr<Batch> batch;
    Done done;
  };

  // The next batch; false: there is none now, or the stage ends.
  bool take(Entry& out, bool wait) const {
    MutexLock lock(mu_);
    while (wait && queue_.empty() && !ends_) wakes_.wait(mu_);
    if (queue_.empty()) return false;
    out = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }
  bool ends() const {
    MutexLock lock(mu_);
    return ends_ && queue_.empty();
  }

  void serve(int number, Worker& worker) const {
    name_this_thread(fmt::format("hr-device-{}", number));
    while (!ends()) {
      Entry entry;
      if (take(entry, !worker.is_under_way())) {
        worker.retire();
        Status status = guard([&] { return worker.run(*entry.batch); });
        entry.done(std::move(status), std::move(entry.batch));
      } else if (worker.is_under_way()) {
        worker.wait_for_oldest();
      }
    }
  }

  const std::shared_ptr<Gpu> gpu_;
  const DeviceStageOptions options_;
  std::vector<std::thread> threads_;
  mutable Mutex mu_;
  mutable CondVar wakes_;
  mutable std::deque<Entry> queue_ HEADRACE_GUARDED_BY(mu_);
  bool ends_ HEADRACE_GUARDED_BY(mu_) = false;
};

}  // namespace

Result<std::unique_ptr<BatchStage>> make_device_stage(std::shared_ptr<Gpu> gpu,
                                                      DeviceStageOptions options) {
  bool has_pictures = false;
  for (const auto& column : options.columns) has_pictures = has_pictures || column.has_value();
  if (has_pictures) {
    HEADRACE_TRY(gpu->kernels().status());  // now, not at the first batch
  }
  auto stage = std::make_unique<DeviceStage>(std::move(gpu), std::move(options));
  HEADRACE_TRY(stage->start_workers());
  return std::unique_ptr<BatchStage>(std::move(stage));
}

}  // namespace headrace
