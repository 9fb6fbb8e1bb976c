// SPDX-License-Identifier: Apache-2.0
#include "storage/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/guard.h"
#include "base/interrupt.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// One read that someone waits for.  Notified under the lock: the waiter may destroy it at once.
class Waiter {
 public:
  void set(ReadRequest&& request) {
    MutexLock lock(mu_);
    done_ = std::move(request);
    is_done_.notify_one();
  }
  ReadRequest wait() {
    MutexLock lock(mu_);
    while (!done_) is_done_.wait(mu_);
    return std::move(*done_);
  }
  // False: the flag was set first.
  bool wait_until(const std::atomic<bool>& flag) {
    MutexLock lock(mu_);
    while (!done_ && !flag.load()) is_done_.wait_for_ms(mu_, kInterruptMs);
    return done_.has_value();
  }

 private:
  Mutex mu_;
  CondVar is_done_;
  std::optional<ReadRequest> done_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

void mark_sent(ReadRequest& request) {
  if (request.sent_ns == 0) request.sent_ns = steady_ns();
}

Status check_pieces(const ReadRequest& request) {
  uint64_t end = 0;
  for (const ReadPiece& piece : request.pieces) {
    if (piece.begin < end || piece.begin > request.length ||
        piece.length > request.length - piece.begin)
      return internal("the pieces of a read do not lie in order inside of it").at(request.offset);
    end = piece.begin + piece.length;
  }
  return {};
}

Status fill_request(ReadRequest& request, Bytes range) {
  const auto copy = [](Bytes from, Buffer& to) {
    to.resize(from.size());
    std::copy(from.begin(), from.end(), to.data());
  };
  return guard([&]() -> Status {
    if (request.pieces.empty()) copy(range, request.into);
    for (ReadPiece& piece : request.pieces) {
      if (piece.begin > range.size() || piece.length > range.size() - piece.begin)
        return internal("a piece lies outside of its range").at(request.offset);
      copy(range.subspan(piece.begin, piece.length), piece.into);
    }
    request.in_pieces = !request.pieces.empty();
    return {};
  });
}

namespace {

// What `into` holds is of this read only where the store does not say that it filled the pieces:
// a store around it may have tried to read elsewhere before.
Status move_to_pieces(ReadRequest& request) {
  if (!request.in_pieces) {
    if (request.into.size() != request.length)
      return internal("a store filled neither the range nor its pieces").at(request.offset);
    HEADRACE_TRY(fill_request(request, request.into.bytes()));
  }
  request.into = {};
  for (ReadPiece& piece : request.pieces) {
    if (piece.length == 0) piece.into.resize(0);  // nobody writes there
    if (piece.into.size() != piece.length)
      return internal("a piece of the range was not filled").at(request.offset);
  }
  return {};
}

}  // namespace

void complete(ReadRequest&& request, Status status) {
  if (status.ok() && !request.pieces.empty()) status = move_to_pieces(request);
  request.status = status.ok() ? std::move(status) : status.in_file(request.path);
  request.completed_ns = steady_ns();
  if (request.sent_ns == 0) request.sent_ns = request.completed_ns;
  const std::function<void(ReadRequest&&)> done = std::exchange(request.done, nullptr);
  done(std::move(request));
}

void complete_cancelled(ReadRequest&& request) {
  complete(std::move(request), cancelled("the read was given up"));
}

Status changed_file(std::string_view wanted, std::string_view found) {
  return corrupt(
      fmt::format("the file has changed since it was opened (version {}, now {}): open "
                  "the data set again",
                  wanted, found));
}

std::string version_of(uint64_t bytes, int64_t modified_ns) {
  return fmt::format("{}-{}", bytes, modified_ns);
}

bool Store::read_if_resident(ReadRequest& request) const {
  (void)request;
  return false;
}

std::optional<Pin> Store::pin(std::string_view path, uint64_t offset, uint64_t length) const {
  (void)path, (void)offset, (void)length;
  return std::nullopt;
}

void Store::cancel(const ReadGroup& group) const {
  (void)group;
}

Result<FileInfo> Store::stat(const std::string& path) const {
  return std::move(stat_all({&path, 1}).front());
}

Result<std::vector<FileInfo>> Store::list(const std::string& folder) const {
  std::vector<FileInfo> all;
  std::string after;
  do {
    HEADRACE_ASSIGN(ListPage page, list_page(folder, after));
    if (!after.empty() && page.next == after)
      return internal("a listing does not get on").in_file(folder);
    after = std::move(page.next);
    all.insert(all.end(), std::move_iterator(page.entries.begin()),
               std::move_iterator(page.entries.end()));
  } while (!after.empty());
  // Object stores go by keys: "sub.txt" comes before "sub/x", and may end a page.
  const auto by_path = [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; };
  if (!std::is_sorted(all.begin(), all.end(), by_path)) std::sort(all.begin(), all.end(), by_path);
  return all;
}

Status Store::read_at(const std::string& path, uint64_t offset, uint64_t length,
                      Buffer& into) const {
  Waiter waiter;
  ReadRequest request{.path = path,
                      .offset = offset,
                      .length = length,
                      .into = std::move(into),
                      .done = [&waiter](ReadRequest&& r) { waiter.set(std::move(r)); }};
  const std::atomic<bool>* const interrupt = interrupt_flag();
  const auto group = interrupt == nullptr ? nullptr : std::make_shared<ReadGroup>();
  request.group = group;
  read({&request, 1});
  if (interrupt != nullptr && !waiter.wait_until(*interrupt)) {
    group->cancel();
    cancel(*group);
  }
  ReadRequest done = waiter.wait();
  into = std::move(done.into);
  return done.status;
}

Result<Buffer> Store::read_all(const std::string& path) const {
  Buffer into;
  HEADRACE_TRY(read_at(path, 0, kWholeFile, into));
  return into;
}

void StoreWrapper::read(std::span<ReadRequest> requests) const {
  inner_->read(requests);
}

bool StoreWrapper::read_if_resident(ReadRequest& request) const {
  return inner_->read_if_resident(request);
}

std::optional<Pin> StoreWrapper::pin(std::string_view path, uint64_t offset,
                                     uint64_t length) const {
  return inner_->pin(path, offset, length);
}

void StoreWrapper::cancel(const ReadGroup& group) const {
  inner_->cancel(group);
}

StoreCost StoreWrapper::cost(const std::string& path) const {
  return inner_->cost(path);
}

std::vector<Result<FileInfo>> StoreWrapper::stat_all(std::span<const std::string> paths) const {
  return inner_->stat_all(paths);
}

Result<ListPage> StoreWrapper::list_page(const std::string& folder,
                                         const std::string& after) const {
  return inner_->list_page(folder, after);
}

}  // namespace headrace
