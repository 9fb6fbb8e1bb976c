// SPDX-License-Identifier: Apache-2.0
#include "storage/stage/staged_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/guard.h"
#include "storage/local.h"
#include "storage/sink.h"
#include "storage/stage/journal.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "stage-";
constexpr int kLookAgain_ms = 200;  // whether the process that copies has ended

std::string kept_path(const std::string& folder) {
  return folder + ".kept";
}

bool is_kept(const std::string& folder) {
  return ::access(kept_path(folder).c_str(), F_OK) == 0;
}

// By the last who uses it.
void remove_copy(const std::string& folder) {
  if (!is_kept(folder)) (void)remove_stage(folder);
}

// Null where another process is removing the copy, or there can be no lock.
std::unique_ptr<SharedUse> use_copy(const std::string& folder) {
  return SharedUse::join({.place = folder, .is_whole = {}, .make = {}, .remove = remove_copy});
}

// The folder of stages as an absolute path; made where there is none.
Result<std::string> root_of(const std::string& folder) {
  std::error_code error;
  std::string root = fs::absolute(folder, error).lexically_normal().string();
  fs::create_directories(root, error);
  if (error) return from_errno(error.value(), "make the stage folder").in_file(root);
  return root;
}

std::string place_of(const std::string& root, const StagePlan& plan) {
  return (fs::path(root) / (std::string(kPrefix) + plan.id.hex().substr(0, 16))).string();
}

Status removing(const std::string& folder) {
  return unavailable("another job is removing this copy now; try again").in_file(folder);
}

bool is_being_copied(const std::string& folder) {
  const int fd = ::open(StageJournal::path_of(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const Descriptor journal(fd);
  return ::flock(fd, LOCK_SH | LOCK_NB) != 0;
}

// stage_files(), once no other process copies to the folder; `wait` lets some time pass.  A failure
// of the store is told from another process by the lock: it is tried a second time at most.
Result<StageReport> stage_in_turn(const Store& from, const StagePlan& plan,
                                  const std::string& folder, const StageOptions& options,
                                  const std::function<void()>& wait) {
  bool was_free = false;
  while (true) {
    Result<StageReport> report = stage_files(from, plan, folder, options);
    if (report.ok() || report.status().code() != Code::kUnavailable) return report;
    if (options.cancel != nullptr && options.cancel->load()) return report;
    if (is_being_copied(folder)) {
      was_free = false;
      wait();
    } else if (std::exchange(was_free, true)) {
      return report;
    }
  }
}

}  // namespace

StagedStore::StagedStore(std::shared_ptr<const Store> inner, StagePlan plan, std::string folder,
                         const StagedOptions& options)
    : StoreWrapper(std::move(inner)),
      plan_(std::move(plan)),
      folder_(std::move(folder)),
      options_(options),
      local_(local_store()),
      pid_(::getpid()) {
  for (const StageFile& file : plan_.files) {
    Copy& copy = copies_[file.path];
    copy.path = folder_ + '/' + file.name;
    copy.version = file.version;
    copy.bytes = file.bytes;
  }
}

Result<std::shared_ptr<const StagedStore>> StagedStore::make(std::shared_ptr<const Store> inner,
                                                             std::vector<std::string> files,
                                                             const StagedOptions& options) {
  HEADRACE_ASSIGN(StagePlan plan, plan_stage(*inner, std::move(files)));
  HEADRACE_ASSIGN(const std::string root, root_of(options.folder));
  const std::string folder = place_of(root, plan);
  SharedUse::sweep(root, kPrefix, folder, remove_copy);
  std::shared_ptr<StagedStore> out(
      new StagedStore(std::move(inner), std::move(plan), folder, options));
  out->use_ = use_copy(folder);
  if (out->use_ == nullptr) return removing(folder);
  out->thread_ = std::thread([store = out.get()] { store->copy_all(); });
  return std::shared_ptr<const StagedStore>(out);
}

StagedStore::~StagedStore() {
  if (pid_ != ::getpid()) {
    // A forked child has no such thread, and shares the lock.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    MutexLock lock(mu_);
    cancel_.store(true);
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Copies what is missing, or waits for who does; ends when all is there.
void StagedStore::copy_all() {
  const StageOptions options{.streams = options_.streams,
                             .progress = [this](uint64_t done) { done_bytes_.store(done); },
                             .cancel = &cancel_};
  const Result<StageReport> report = guard([&] {
    return stage_in_turn(inner(), plan_, folder_, options, [this] {
      MutexLock lock(mu_);
      if (!cancel_.load()) (void)changed_.wait_for_ms(mu_, kLookAgain_ms);
    });
  });
  const Status status = cancel_.load() && !report.ok() ? cancelled("ended") : report.status();
  MutexLock lock(mu_);
  if (report.ok() && !report.value().notice.empty()) notices_.push_back(report.value().notice);
  is_over_ = true;
  status_ = status;
  if (!status.ok() && status.code() != Code::kCancelled)
    notices_.push_back(
        fmt::format("stage: not copied, reading from the source: {}", status.text()));
  changed_.notify_all();
}

// Null where there is none, or not yet, or of another version.
const StagedStore::Copy* StagedStore::copy_of(const ReadRequest& request) const {
  const auto it = copies_.find(request.path);
  if (it == copies_.end()) return nullptr;
  const Copy& copy = it->second;
  if (!request.version.empty() && request.version != copy.version) return nullptr;
  if (copy.is_there.load(std::memory_order_relaxed)) return &copy;
  struct stat info{};
  if (::stat(copy.path.c_str(), &info) != 0 || static_cast<uint64_t>(info.st_size) != copy.bytes)
    return nullptr;
  copy.is_there.store(true);
  return &copy;
}

// The local store completes in the calling thread.
bool StagedStore::read_copy(ReadRequest& request, const Copy& copy, bool at_once) const {
  ReadRequest local{.path = copy.path,
                    .offset = request.offset,
                    .length = request.length,
                    .into = std::move(request.into),
                    .pieces = std::move(request.pieces)};
  bool ok = false;
  if (at_once) {
    ok = local_->read_if_resident(local);
    request.into = std::move(local.into);
    request.pieces = std::move(local.pieces);
  } else {
    local.done = [&](ReadRequest&& done) {
      ok = done.status.ok();
      request.into = std::move(done.into);
      request.pieces = std::move(done.pieces);
      request.in_pieces = ok && done.in_pieces;
    };
    local_->read({&local, 1});
  }
  if (ok) {
    request.version = copy.version;
    staged_reads_.fetch_add(1, std::memory_order_relaxed);
  }
  return ok;
}

void StagedStore::read(std::span<ReadRequest> requests) const {
  std::vector<ReadRequest> others;
  for (ReadRequest& request : requests) {
    if (request.is_cancelled()) {
      complete_cancelled(std::move(request));
      continue;
    }
    mark_sent(request);
    const Copy* copy = copy_of(request);
    if (copy != nullptr && read_copy(request, *copy, false))
      complete(std::move(request), {});
    else
      others.push_back(std::move(request));  // who fails here hears why from the store
  }
  source_reads_.fetch_add(others.size(), std::memory_order_relaxed);
  if (!others.empty()) inner().read(others);
}

bool StagedStore::read_if_resident(ReadRequest& request) const {
  const Copy* copy = copy_of(request);
  if (copy == nullptr) return inner().read_if_resident(request);
  return read_copy(request, *copy, true);
}

StoreCost StagedStore::cost(const std::string& path) const {
  for (const auto& [source, copy] : copies_)
    if (copy_of({.path = source}) == nullptr) return inner().cost(path);
  StoreCost cost = local_->cost(folder_);
  cost.in_caller = inner().cost(path).in_caller;  // a copy that goes bad is read from there
  return cost;
}

StagedCounts StagedStore::counts() const {
  uint64_t there = 0;
  for (const auto& [source, copy] : copies_)
    if (copy_of({.path = source}) != nullptr) there += copy.bytes;
  return {.files = plan_.files.size(),
          .bytes = plan_.bytes,
          .bytes_there = std::max(there, std::min(done_bytes_.load(), plan_.bytes)),
          .staged_reads = staged_reads_.load(),
          .source_reads = source_reads_.load()};
}

std::vector<std::string> StagedStore::take_notices() const {
  MutexLock lock(mu_);
  return std::exchange(notices_, {});
}

Result<StageReport> stage_kept(const Store& from, const StagePlan& plan, const std::string& folder,
                               const StageOptions& options) {
  HEADRACE_ASSIGN(const std::string root, root_of(folder));
  const std::string place = place_of(root, plan);
  SharedUse::sweep(root, kPrefix, place, remove_copy);
  const std::unique_ptr<SharedUse> use = use_copy(place);
  if (use == nullptr) return removing(place);
  HEADRACE_TRY(
      write_file(kept_path(place), as_bytes("headrace stage --remove removes this copy\n")));
  Mutex mu;
  CondVar never;
  return stage_in_turn(from, plan, place, options, [&] {
    MutexLock lock(mu);
    (void)never.wait_for_ms(mu, kLookAgain_ms);
  });
}

Result<uint64_t> remove_kept(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> places;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.filename().string().starts_with(kPrefix) && path.extension() == ".kept")
      places.push_back((path.parent_path() / path.stem()).string());
  }
  if (places.empty()) return not_found("nothing was staged there by headrace").in_file(folder);
  uint64_t removed = 0;
  for (const std::string& place : places) {
    uint64_t bytes = 0;
    const auto remove = [&bytes](const std::string& copy) {
      ::unlink(kept_path(copy).c_str());
      const Result<uint64_t> gone = remove_stage(copy);
      if (gone.ok()) bytes = gone.value();
    };
    if (::access(SharedUse::lock_path(place).c_str(), F_OK) != 0) {
      remove(place);  // nobody has read it yet
    } else if (!SharedUse::remove_unused(place, remove)) {
      return unavailable("a job is reading this copy; end it first").in_file(place);
    }
    removed += bytes;
  }
  ::rmdir(folder.c_str());
  return removed;
}

Status StagedStore::wait_until_staged() const {
  MutexLock lock(mu_);
  while (!is_over_) changed_.wait(mu_);
  return status_;
}

}  // namespace headrace
