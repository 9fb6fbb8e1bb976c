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
    request.done(Status(*plan.fail, "injected fault").at(request.offset).in_file(request.path));
    return;
  }
  const bool whole = request.length == kWholeFile;
  if (!whole && (request.offset > plan.end || request.length > plan.end - request.offset)) {
    request.done(corrupt("the file ends here").at(plan.end).in_file(request.path));
    return;
  }
  ReadRequest inner = request;
  inner.done = [plan = std::move(plan), whole, offset = request.offset, into = request.into,
                done = std::move(request.done)](Status status) {
    if (status.ok()) {
      if (whole) into->resize(std::min<uint64_t>(into->size(), plan.end));
      for (const auto& [at, mask] : plan.flips) flip(*into, offset, at, mask);
    }
    done(std::move(status));
  };
  inner_->read({&inner, 1});
}

void FaultStore::read(std::span<ReadRequest> requests) const {
  for (ReadRequest& request : requests) read_one(request);
}

Result<FileInfo> FaultStore::stat(const std::string& path) const {
  HEADRACE_ASSIGN(FileInfo info, inner_->stat(path));
  MutexLock lock(mu_);
  for (const Armed& armed : faults_)
    if (path.ends_with(armed.fault.path))
      info.bytes = std::min(info.bytes, armed.fault.truncate_at);
  return info;
}

}  // namespace headrace
