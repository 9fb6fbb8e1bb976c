// SPDX-License-Identifier: Apache-2.0
//
// WebStore: files of servers, whatever these speak (protocol.h).  Every answer is checked: status,
// range, length, and that the file is still the one that was first seen.

#include <fmt/format.h>

#include <algorithm>

#include "storage/first_batch.h"
#include "storage/http/client.h"
#include "storage/http/pool_limit.h"
#include "storage/http/protocol.h"
#include "storage/http/split_read.h"
#include "storage/http/web_read.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Before anything was measured.
constexpr uint64_t kUsualLatency = 30'000'000;  // ns
constexpr uint64_t kLeastLatency = 1'000'000;   // a server is never near
constexpr uint32_t kUsefulReads = 64;
constexpr uint64_t kEnoughSeen = 4;
// What the first batch waits for comes in parts of so many bytes, over connections of their own.
constexpr uint64_t kPartBytes = 512 << 10;

Result<HttpTask> task_of(const std::shared_ptr<WebShared>& shared, const std::string& path) {
  HEADRACE_TRY(shared->protocol->prepare(path));
  HEADRACE_ASSIGN(std::string origin, shared->protocol->origin(path));
  return HttpTask{.origin = std::move(origin),
                  .name = path,
                  .follows = shared->protocol->follows_redirects(),
                  .owner = shared.get(),
                  .options = shared->options,
                  .stats = shared->stats,
                  .is_passing = [shared](const HttpAnswer& answer) {
                    return shared->protocol->passes(answer);
                  }};
}

// A read of a range, or of a whole file.
Result<HttpTask> read_task(const std::shared_ptr<WebShared>& shared, ReadRequest& request,
                           MutableBytes room = {}) {
  HEADRACE_ASSIGN(HttpTask made, task_of(shared, request.path));
  made.priority = request.priority;
  made.is_first = is_for_first_batch(request);
  made.group = request.group;
  made.bytes = request.length == kWholeFile ? 0 : request.length;
  made.is_whole_read = true;
  if (request.length != kWholeFile)
    made.name = fmt::format("{} [{} +{}]", request.path, request.offset, request.length);
  auto read = std::make_shared<WebRead>();
  read->shared = shared;
  read->room = room;
  read->request = std::move(request);
  made.make = [read] { return read->make(); };
  made.plan = [read](const HttpHead& head) { return read->plan(head); };
  made.pieces = [read](uint64_t bytes) { return read->pieces(bytes); };
  made.memory = [read](size_t piece) { return read->memory(piece); };
  made.arrived = [read](uint64_t bytes) { read->arrived(bytes); };
  made.read = read;
  made.done = [read](Status status, HttpAnswer&& answer) {
    read->done(std::move(status), std::move(answer));
  };
  return made;
}

class WebStore final : public Store {
 public:
  WebStore(std::unique_ptr<const WebProtocol> protocol, std::shared_ptr<const StoreOptions> options)
      : shared_(std::make_shared<WebShared>()) {
    shared_->protocol = std::move(protocol);
    shared_->options = std::move(options);
  }
  ~WebStore() override { HttpClient::of_process().abandon(shared_.get()); }

  void read(std::span<ReadRequest> requests) const override {
    std::vector<HttpTask> tasks;
    for (ReadRequest& request : requests) {
      if (request.is_cancelled()) {
        complete_cancelled(std::move(request));
        continue;
      }
      mark_sent(request);
      if (Status status = add_read(request, tasks); !status.ok())
        complete(std::move(request), std::move(status));
    }
    HttpClient::of_process().add(std::move(tasks));
  }

  void cancel(const ReadGroup&) const override { HttpClient::of_process().sweep(); }

  StoreCost cost(const std::string&) const override {
    const HistogramStats first = shared_->stats->first_byte_ns.snapshot();
    const HistogramStats rate = shared_->stats->bytes_a_second.snapshot();
    const uint32_t most = shared_->options->connections;
    return {.latency_ns = first.count < kEnoughSeen ? kUsualLatency
                                                    : std::max(kLeastLatency, first.quantile(0.5)),
            .bytes_per_second = rate.count < kEnoughSeen ? 0 : rate.quantile(0.5),
            .parallel_reads = most == 0 ? kUsefulReads : most,
            .in_caller = false};
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

 private:
  using Infos = std::vector<Result<FileInfo>>;

  Result<HttpTask> task(const std::string& path) const { return task_of(shared_, path); }

  Status add_read(ReadRequest& request, std::vector<HttpTask>& tasks) const;
  bool is_better_split(const ReadRequest& request) const;
  Status add_parts(ReadRequest& request, std::vector<HttpTask>& tasks) const;
  // A request of `method` for each, answered or failed.
  std::vector<Result<HttpAnswer>> ask(std::string_view method, std::string_view header,
                                      std::span<const std::string> paths) const;
  Result<HttpTask> list_task(const std::string& folder, const std::string& after) const;
  Result<ListPage> page_of(const std::string& folder, const HttpAnswer& answer) const;
  std::vector<Result<ListPage>> first_pages(std::span<const std::string> folders) const;
  Result<FileInfo> info_of(const std::string& path, const HttpHead& head) const;
  Result<FileInfo> info_of_first_byte(const std::string& path, const HttpAnswer& answer) const;
  template <typename Which, typename Make>
  void look_again(std::span<const std::string> paths, Infos& infos, std::vector<uint8_t>& how,
                  const Which& which, const Make& make) const;

  const std::shared_ptr<WebShared> shared_;
};

// What no server can be asked for, of a length that is known.
Status check_range(const ReadRequest& request) {
  if (request.length == kWholeFile) return {};
  constexpr auto kMost = static_cast<uint64_t>(INT64_MAX);
  if (request.offset > kMost || request.length > kMost - request.offset)
    return corrupt("read past the end of the file").at(request.offset);
  return {};
}

Status WebStore::add_read(ReadRequest& request, std::vector<HttpTask>& tasks) const {
  HEADRACE_TRY(check_range(request));
  HEADRACE_TRY(check_pieces(request));
  if (request.length == 0) {  // no range has no bytes: whether it is there is another question
    HEADRACE_ASSIGN(const FileInfo info, stat(request.path));
    if (!request.version.empty() && request.version != info.version)
      return changed_file(request.version, info.version);
    if (request.offset > info.bytes) return too_short(request, info.bytes);
    request.into.resize(0);
    complete(std::move(request), {});
    return {};
  }
  if (is_better_split(request)) return add_parts(request, tasks);
  HEADRACE_ASSIGN(HttpTask made, read_task(shared_, request));
  tasks.push_back(std::move(made));
  return {};
}

// What the first batch waits for, where a server is far, and a user does not want few connections.
bool WebStore::is_better_split(const ReadRequest& request) const {
  if (!is_for_first_batch(request)) return false;
  if (request.length == kWholeFile || request.length < PoolLimit::kLarge) return false;
  const uint32_t most = shared_->options->connections;
  if (most != 0 && most < PoolLimit::kFirstFar) return false;
  const HistogramStats first = shared_->stats->first_byte_ns.snapshot();
  return first.count >= kEnoughSeen && first.quantile(0.5) >= PoolLimit::kNear;
}

Status WebStore::add_parts(ReadRequest& request, std::vector<HttpTask>& tasks) const {
  HEADRACE_TRY(task(request.path).status());  // what may fail does so before anything is moved
  HEADRACE_ASSIGN(std::vector<ReadPart> parts, split_read(request, kPartBytes));
  for (ReadPart& part : parts) {
    Result<HttpTask> made = read_task(shared_, part.request, part.room);
    if (!made.ok()) {
      complete(std::move(part.request), made.status());
      continue;
    }
    made.value().read = nullptr;  // parts are not joined again
    tasks.push_back(std::move(made).value());
  }
  return {};
}

std::vector<Result<HttpAnswer>> WebStore::ask(std::string_view method, std::string_view header,
                                              std::span<const std::string> paths) const {
  std::vector<Result<HttpAnswer>> out(paths.size(), Result<HttpAnswer>(internal("not asked")));
  std::vector<HttpTask> tasks;
  std::vector<size_t> of;
  for (size_t i = 0; i < paths.size(); ++i) {
    Result<HttpTask> made = task(paths[i]);
    if (!made.ok()) {
      out[i] = made.status();
      continue;
    }
    made.value().make = [shared = shared_, path = paths[i], method = std::string(method),
                         header = std::string(header)]() -> Result<HttpRequest> {
      HEADRACE_ASSIGN(HttpRequest request, shared->protocol->request(method, path));
      if (!header.empty()) request.headers.push_back(header);
      return request;
    };
    tasks.push_back(std::move(made).value());
    of.push_back(i);
  }
  auto answers = HttpClient::of_process().ask(std::move(tasks));
  for (size_t i = 0; i < answers.size(); ++i) out[of[i]] = std::move(answers[i]);
  return out;
}

Result<FileInfo> WebStore::info_of(const std::string& path, const HttpHead& head) const {
  const std::optional<uint64_t> bytes = head.content_length();
  FileInfo info{.path = path,
                .bytes = bytes.value_or(0),
                .modified_ns = parse_web_time_ns(head.find("last-modified")),
                .version = version_from(head, bytes)};
  shared_->versions.set(path, info.version, info.bytes);
  return info;
}

// Of an answer to a GET of its first byte, from a server that answers no HEAD.
Result<FileInfo> WebStore::info_of_first_byte(const std::string& path,
                                              const HttpAnswer& answer) const {
  std::optional<uint64_t> bytes;
  if (const auto range = parse_content_range(answer.head.find("content-range")))
    bytes = range->total;
  else if (answer.head.status == 416 && answer.head.find("content-range") == "bytes */0")
    bytes = 0;
  else if (answer.head.status == 200)
    bytes = answer.head.content_length().value_or(answer.text.size());
  if (!bytes && answer.head.status >= 300) return shared_->protocol->failure(path, answer);
  if (!bytes) return unsupported("the server does not say how long the file is");
  FileInfo info{.path = path,
                .bytes = *bytes,
                .modified_ns = parse_web_time_ns(answer.head.find("last-modified")),
                .version = version_from(answer.head, bytes)};
  shared_->versions.set(path, info.version, info.bytes);
  return info;
}

// What is asked for by these names is a file or not there: no listing, which is a second round
// trip.
bool may_be_folder(std::string_view path) {
  constexpr std::string_view kFiles[] = {".hridx", ".json", ".zarray", ".zgroup", ".zattrs"};
  return std::none_of(std::begin(kFiles), std::end(kFiles),
                      [path](std::string_view suffix) { return path.ends_with(suffix); });
}

bool is_root(std::string_view path) {
  return path.find('/', scheme_of(path).size() + 3) == std::string_view::npos;
}

// What the loop did not follow: a folder, whose address ends with a '/'.
bool wants_slash(const HttpHead& head) {
  const std::string_view to = head.find("location");
  return head.is_redirect() && to.substr(0, to.find('?')).ends_with('/');
}

// HEAD of all at once; then, of those that need it, the first byte or a listing.
std::vector<Result<FileInfo>> WebStore::stat_all(std::span<const std::string> paths) const {
  enum How : uint8_t { kKnown, kFirstByte, kFolder };
  Infos infos(paths.size(), Result<FileInfo>(internal("not asked")));
  std::vector<uint8_t> how(paths.size(), kKnown);
  auto heads = ask("HEAD", "", paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!heads[i].ok()) {
      infos[i] = heads[i].status();
      continue;
    }
    const HttpHead& head = heads[i].value().head;
    if (shared_->protocol->lists_folders() && is_root(paths[i])) {
      how[i] = kFolder;  // whatever is said of a bucket itself, it is no object
    } else if (head.status == 200 && head.content_length()) {
      infos[i] = info_of(paths[i], head);
    } else if (wants_slash(head) && shared_->protocol->follows_redirects()) {
      infos[i] = FileInfo{.path = paths[i], .is_folder = true};  // it wants its slash
    } else if (head.status == 404) {
      infos[i] = shared_->protocol->failure(paths[i], heads[i].value());
      if (shared_->protocol->lists_folders() && may_be_folder(paths[i])) how[i] = kFolder;
    } else {
      how[i] = kFirstByte;
    }
  }
  look_again(
      paths, infos, how, [](uint8_t h) { return h == kFirstByte; },
      [this](const std::string& path, const HttpAnswer& answer) {
        return info_of_first_byte(path, answer);
      });
  std::vector<std::string> folders;
  std::vector<size_t> of;
  for (size_t i = 0; i < paths.size(); ++i)
    if (how[i] == kFolder) folders.push_back(paths[i]), of.push_back(i);
  const std::vector<Result<ListPage>> pages = first_pages(folders);
  for (size_t i = 0; i < of.size(); ++i)  // which know, too, whether there is a bucket
    infos[of[i]] = pages[i].ok() ? FileInfo{.path = folders[i], .is_folder = true}
                                 : Result<FileInfo>(pages[i].status());
  for (size_t i = 0; i < paths.size(); ++i)
    if (!infos[i].ok()) infos[i] = infos[i].status().in_file(paths[i]);
  return infos;
}

template <typename Which, typename Make>
void WebStore::look_again(std::span<const std::string> paths, Infos& infos,
                          std::vector<uint8_t>& how, const Which& which, const Make& make) const {
  std::vector<std::string> chosen;
  std::vector<size_t> of;
  for (size_t i = 0; i < paths.size(); ++i)
    if (which(how[i])) chosen.push_back(paths[i]), of.push_back(i);
  const auto answers = ask("GET", "Range: bytes=0-0", chosen);
  for (size_t i = 0; i < of.size(); ++i)
    infos[of[i]] = answers[i].ok() ? make(chosen[i], answers[i].value())
                                   : Result<FileInfo>(answers[i].status());
}

Result<HttpTask> WebStore::list_task(const std::string& folder, const std::string& after) const {
  std::string plain = folder;
  while (plain.ends_with('/') && !plain.ends_with("://")) plain.pop_back();
  HEADRACE_ASSIGN(HttpTask made, task(plain));
  made.make = [shared = shared_, plain, after] {
    return shared->protocol->list_request(plain, after);
  };
  return made;
}

Result<ListPage> WebStore::page_of(const std::string& folder, const HttpAnswer& answer) const {
  std::string plain = folder;
  while (plain.ends_with('/') && !plain.ends_with("://")) plain.pop_back();
  if (answer.head.status != 200) return shared_->protocol->failure(plain, answer).in_file(folder);
  Result<ListPage> page = shared_->protocol->parse_list(plain, answer);
  if (!page.ok()) return page.status().in_file(folder);
  std::vector<FileInfo>& entries = page.value().entries;
  std::sort(entries.begin(), entries.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
  for (const FileInfo& entry : entries)
    shared_->versions.set(entry.path, entry.version, entry.bytes);
  return page;
}

std::vector<Result<ListPage>> WebStore::first_pages(std::span<const std::string> folders) const {
  std::vector<Result<ListPage>> out(folders.size(), Result<ListPage>(internal("not asked")));
  std::vector<HttpTask> tasks;
  std::vector<size_t> of;
  for (size_t i = 0; i < folders.size(); ++i) {
    Result<HttpTask> made = list_task(folders[i], "");
    if (!made.ok())
      out[i] = made.status();
    else
      tasks.push_back(std::move(made).value()), of.push_back(i);
  }
  const auto answers = HttpClient::of_process().ask(std::move(tasks));
  for (size_t i = 0; i < of.size(); ++i)
    out[of[i]] = answers[i].ok() ? page_of(folders[of[i]], answers[i].value())
                                 : Result<ListPage>(answers[i].status());
  return out;
}

Result<ListPage> WebStore::list_page(const std::string& folder, const std::string& after) const {
  Result<HttpTask> made = list_task(folder, after);
  if (!made.ok()) return made.status().in_file(folder);
  std::vector<HttpTask> one;
  one.push_back(std::move(made).value());
  const Result<HttpAnswer> answer = HttpClient::of_process().ask(std::move(one)).front();
  if (!answer.ok()) return answer.status().in_file(folder);
  return page_of(folder, answer.value());
}

}  // namespace

void read_each(const std::shared_ptr<WebShared>& shared, std::deque<ReadRequest> requests) {
  std::vector<HttpTask> tasks;
  for (ReadRequest& request : requests) {
    Result<HttpTask> made = read_task(shared, request);
    if (!made.ok()) {
      complete(std::move(request), made.status());
      continue;
    }
    made.value().read = nullptr;  // not together again
    tasks.push_back(std::move(made).value());
  }
  HttpClient::of_process().add(std::move(tasks));
}

std::shared_ptr<const Store> web_store(std::unique_ptr<const WebProtocol> protocol,
                                       std::shared_ptr<const StoreOptions> options) {
  return std::make_shared<const WebStore>(std::move(protocol), std::move(options));
}

}  // namespace headrace
