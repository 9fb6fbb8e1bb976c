// SPDX-License-Identifier: Apache-2.0
#include "pack/sample_reader.h"

#include <algorithm>

#include "base/mutex.h"

namespace headrace {
namespace {

// Counts reads that are under way; keeps the first failure.  Thread-safe.
class Pending {
 public:
  explicit Pending(size_t count) : left_(count) {}
  void done(const Status& status) {
    MutexLock lock(mu_);
    if (!status.ok() && first_.ok()) first_ = status;
    if (--left_ == 0) all_.notify_one();
  }
  Status wait() {
    MutexLock lock(mu_);
    while (left_ > 0) all_.wait(mu_);
    return first_;
  }

 private:
  Mutex mu_;
  CondVar all_;
  size_t left_ HEADRACE_GUARDED_BY(mu_);
  Status first_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Status SampleReader::read_units() {
  const size_t count = request_.units.size();
  if (stored_.size() < count) stored_.resize(count), opened_.resize(count);
  std::vector<std::string> paths(count);
  std::vector<ReadRequest> reads;
  Pending pending(count);
  for (size_t u = 0; u < count; ++u) {
    const Unit& unit = request_.units[u];
    paths[u] = source_.file_path(unit.file);
    reads.push_back({paths[u], unit.offset, unit.stored_bytes, &stored_[u],
                     [&pending](const Status& status) { pending.done(status); }});
  }
  source_.store().read(reads);
  HEADRACE_TRY(pending.wait());
  for (size_t u = 0; u < count; ++u) {
    bytes_read_ += stored_[u].size();
    if (request_.units[u].opening != 0)
      HEADRACE_TRY(source_.open_unit(request_.units[u], stored_[u].bytes(), opened_[u]));
  }
  return {};
}

Bytes SampleReader::bytes_of(const Piece& piece) const {
  if (piece.unit == kInlineUnit)
    return Bytes(request_.inline_bytes).subspan(piece.begin, piece.length);
  const bool opened = request_.units[piece.unit].opening != 0;
  const Bytes all = (opened ? opened_ : stored_)[piece.unit].bytes();
  const Bytes from = all.subspan(std::min<uint64_t>(piece.begin, all.size()));
  return from.first(std::min<uint64_t>(piece.length, from.size()));
}

Result<Record> SampleReader::read(uint64_t sample) {
  HEADRACE_TRY(source_.needs(sample, fields_, Key(0), true, request_));
  if (Status s = read_units(); !s.ok()) return s.of_sample(sample, request_.key);
  values_.clear();
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = source_.schema()[fields_[f]];
    for (uint32_t p = request_.first_piece[f]; p < request_.first_piece[f + 1]; ++p)
      values_.push_back({field.name, field.kind, field.storage, bytes_of(request_.pieces[p])});
  }
  return Record{request_.key, values_};
}

}  // namespace headrace
