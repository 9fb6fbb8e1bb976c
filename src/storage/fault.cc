// SPDX-License-Identifier: Apache-2.0
#include "storage/fault.h"

#include <algorithm>
#include <thread>

namespace headrace {

void FaultStore::add(Fault fault) {
  MutexLock lock(mu_);
  faults_.push_back({std::move(fault)});
}

void FaultStore::clear() {
  MutexLock lock(mu_);
  faults_.clear();
}

FaultStore::Plan FaultStore::plan(std::string_view path) const {
  Plan plan;
  MutexLock lock(mu_);
  for (Armed& armed : faults_) {
    const Fault& f = armed.fault;
    if (!path.ends_with(f.path)) continue;
    ++armed.seen;
    const bool due = f.and_all_later ? armed.seen >= f.fail_read : armed.seen == f.fail_read;
    if (f.fail_read != 0 && due) plan.fail = f.code;
    plan.end = std::min(plan.end, f.truncate_at);
    plan.delay += f.delay;
    if (f.flip_at != kWholeFile) plan.flips.emplace_back(f.flip_at, f.flip_mask);
  }
  return plan;
}

namespace {

void flip(Buffer& buffer, uint64_t offset, uint64_t at, std::byte mask) {
  if (at >= offset && at - offset < buffer.size()) buffer.data()[at - offset] ^= mask;
}

}  // namespace

void FaultStore::read_one(ReadRequest& request) const {
  reads_.fetch_add(1);
  Plan plan = this->plan(request.path);
  if (plan.delay.count() > 0) std::this_thread::sleep_for(plan.delay);
  if (plan.fail) {
    const Status status = Status(*plan.fail, "injected fault").at(request.offset);
    return complete(std::move(request), status);
  }
  const bool whole = request.length == kWholeFile;
  if (!whole && (request.offset > plan.end || request.length > plan.end - request.offset))
    return complete(std::move(request), corrupt("the file ends here").at(plan.end));
  if (plan.end != kWholeFile || !plan.flips.empty())
    request.done = [plan = std::move(plan), whole,
                    done = std::move(request.done)](ReadRequest&& r) mutable {
      if (r.status.ok()) {
        if (whole) r.into.resize(std::min<uint64_t>(r.into.size(), plan.end));
        for (const auto& [at, mask] : plan.flips) {
          flip(r.into, r.offset, at, mask);
          for (ReadPiece& piece : r.pieces) flip(piece.into, r.offset + piece.begin, at, mask);
        }
      }
      done(std::move(r));
    };
  inner().read({&request, 1});
}

void FaultStore::read(std::span<ReadRequest> requests) const {
  for (ReadRequest& request : requests) read_one(request);
}

bool FaultStore::has_fault(std::string_view path) const {
  MutexLock lock(mu_);
  return std::any_of(faults_.begin(), faults_.end(),
                     [path](const Armed& armed) { return path.ends_with(armed.fault.path); });
}

bool FaultStore::read_if_resident(ReadRequest& request) const {
  if (has_fault(request.path) || !inner().read_if_resident(request)) return false;
  reads_.fetch_add(1);
  return true;
}

std::optional<Pin> FaultStore::pin(std::string_view path, uint64_t offset, uint64_t length) const {
  return has_fault(path) ? std::nullopt : inner().pin(path, offset, length);
}

std::vector<Result<FileInfo>> FaultStore::stat_all(std::span<const std::string> paths) const {
  std::vector<Result<FileInfo>> out = inner().stat_all(paths);
  MutexLock lock(mu_);
  for (size_t i = 0; i < paths.size(); ++i)
    for (const Armed& armed : faults_)
      if (out[i].ok() && paths[i].ends_with(armed.fault.path))
        out[i].value().bytes = std::min(out[i].value().bytes, armed.fault.truncate_at);
  return out;
}

}  // namespace headrace
