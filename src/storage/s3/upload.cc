// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/upload.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/mutex.h"
#include "storage/http/client.h"
#include "storage/paths.h"
#include "storage/s3/s3_protocol.h"
#include "storage/s3/xml.h"

namespace headrace {
namespace {

constexpr size_t kPartBytes = size_t{8} << 20;  // at least 5 MiB, and at most 10,000 parts
constexpr uint64_t kMorePerPart = 1000;         // parts of one size; then they double
constexpr size_t kPartsUnderWay = 4;

// What the requests of one object share; lives as long as one of them.
struct S3Object {
  std::shared_ptr<const StoreOptions> options;
  std::shared_ptr<const S3Protocol> protocol;
  std::string path;
  S3Place place;
  std::shared_ptr<WebStats> stats = std::make_shared<WebStats>();
};

Result<std::shared_ptr<const S3Object>> object_of(const StoreOptions& options,
                                                  const std::string& path) {
  auto out = std::make_shared<S3Object>();
  out->options = std::make_shared<const StoreOptions>(options);
  out->path = path;
  HEADRACE_ASSIGN(out->place, s3_place_of(path));
  if (out->place.key.empty())
    return invalid("an object has a name in its bucket: s3://bucket/name").in_file(path);
  HEADRACE_ASSIGN(out->protocol, S3Protocol::make(out->options, scheme_of(path) == "gs"));
  return std::shared_ptr<const S3Object>(std::move(out));
}

Result<HttpTask> task_of(const std::shared_ptr<const S3Object>& object, std::string method,
                         S3Ask ask) {
  HEADRACE_TRY(object->protocol->prepare(object->path));
  HEADRACE_ASSIGN(std::string origin, object->protocol->origin(object->path));
  return HttpTask{
      .origin = std::move(origin),
      .name = object->path,
      .bytes = ask.body == nullptr ? 0 : ask.body->size(),
      .follows = false,
      .owner = object.get(),
      .options = object->options,
      .stats = object->stats,
      .make = [object, method = std::move(method), ask = std::move(ask)]() -> Result<HttpRequest> {
        return object->protocol->signed_request(method, object->place, ask);
      },
      .is_passing = [object](const HttpAnswer& a) { return object->protocol->passes(a); }};
}

// Good is a 2xx without an error in its text: a server that took long to complete an upload has
// said 200 before it knew.
Status status_of(const S3Object& object, const Result<HttpAnswer>& answer) {
  if (!answer.ok()) return answer.status().in_file(object.path);
  const HttpAnswer& a = answer.value();
  if (a.head.status >= 300) return object.protocol->failure(object.path, a).in_file(object.path);
  const std::string code = xml_text(a.text, "Code");
  if (a.text.find("<Error>") == std::string::npos) return {};
  return unavailable(fmt::format("the server answers {}", code)).in_file(object.path);
}

Result<HttpAnswer> ask(const std::shared_ptr<const S3Object>& object, std::string method,
                       S3Ask what) {
  HEADRACE_ASSIGN(HttpTask task, task_of(object, std::move(method), std::move(what)));
  std::vector<HttpTask> one;
  one.push_back(std::move(task));
  Result<HttpAnswer> answer = std::move(HttpClient::of_process().ask(std::move(one)).front());
  HEADRACE_TRY(status_of(*object, answer));
  return answer;
}

// The parts that are under way and those that are there.  Thread-safe.
class PartTable {
 public:
  Status begin() {  // waits for a place
    MutexLock lock(mu_);
    while (under_way_ >= kPartsUnderWay) changed_.wait(mu_);
    if (status_.ok()) ++under_way_;
    return status_;
  }
  void end(uint64_t number, const Status& status, std::string tag) {
    MutexLock lock(mu_);
    --under_way_;
    if (!status.ok() && status_.ok()) status_ = status;
    tags_[number] = std::move(tag);
    changed_.notify_all();
  }
  Status wait() {
    MutexLock lock(mu_);
    while (under_way_ > 0) changed_.wait(mu_);
    return status_;
  }
  std::string list() const {
    MutexLock lock(mu_);
    std::string xml = "<CompleteMultipartUpload>";
    for (const auto& [number, tag] : tags_)
      xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, tag);
    return xml + "</CompleteMultipartUpload>";
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  size_t under_way_ HEADRACE_GUARDED_BY(mu_) = 0;
  Status status_ HEADRACE_GUARDED_BY(mu_);
  std::map<uint64_t, std::string> tags_ HEADRACE_GUARDED_BY(mu_);
};

class S3Sink final : public Sink {
 public:
  explicit S3Sink(std::shared_ptr<const S3Object> object) : object_(std::move(object)) {}
  ~S3Sink() override {
    if (upload_.empty() || closed_) return;
    (void)parts_->wait();
    (void)ask(object_, "DELETE", {.query = {{"uploadId", upload_}}});
  }

  Status append(Bytes data) override {
    if (closed_) return internal("append after close");
    while (!data.empty()) {
      if (part_.empty()) part_.reserve(part_bytes());
      const size_t room = std::min(data.size(), part_bytes() - part_.size());
      part_.append(as_text(data.first(room)));
      data = data.subspan(room);
      if (part_.size() == part_bytes()) HEADRACE_TRY(send_part());
    }
    return {};
  }

  Status rewrite(uint64_t offset, Bytes data) override {
    return unsupported(fmt::format("{} bytes of an object cannot be written over", data.size()))
        .at(offset)
        .in_file(object_->path);
  }

  Status close() override {
    if (closed_) return internal("closed twice");
    if (upload_.empty()) {
      auto body = std::make_shared<const std::string>(std::move(part_));
      HEADRACE_TRY(ask(object_, "PUT", {.body = std::move(body)}).status());
      closed_ = true;
      return {};
    }
    if (!part_.empty()) HEADRACE_TRY(send_part());
    HEADRACE_TRY(parts_->wait());
    auto list = std::make_shared<const std::string>(parts_->list());
    HEADRACE_TRY(
        ask(object_, "POST", {.query = {{"uploadId", upload_}}, .body = std::move(list)}).status());
    closed_ = true;
    return {};
  }

 private:
  size_t part_bytes() const { return kPartBytes << (numbers_ / kMorePerPart); }

  Status send_part() {
    if (upload_.empty()) {
      auto nothing = std::make_shared<const std::string>();
      HEADRACE_ASSIGN(const HttpAnswer begun,
                      ask(object_, "POST", {.query = {{"uploads", ""}}, .body = nothing}));
      upload_ = xml_text(begun.text, "UploadId");
      if (upload_.empty())
        return unavailable("the server begins no upload in parts").in_file(object_->path);
    }
    const uint64_t number = ++numbers_;
    HEADRACE_TRY(parts_->begin());
    Result<HttpTask> made =
        task_of(object_, "PUT",
                {.query = {{"partNumber", fmt::format("{}", number)}, {"uploadId", upload_}},
                 .body = std::make_shared<const std::string>(std::exchange(part_, {}))});
    if (!made.ok()) {
      parts_->end(number, made.status(), "");
      return made.status();
    }
    made.value().done = [parts = parts_, object = object_, number](Status status,
                                                                   HttpAnswer&& answer) {
      const Result<HttpAnswer> came =
          status.ok() ? Result<HttpAnswer>(std::move(answer)) : Result<HttpAnswer>(status);
      const Status end = status_of(*object, came);
      parts->end(number, end, came.ok() ? std::string(came.value().head.find("etag")) : "");
    };
    std::vector<HttpTask> one;
    one.push_back(std::move(made).value());
    HttpClient::of_process().add(std::move(one));
    return {};
  }

  const std::shared_ptr<const S3Object> object_;
  const std::shared_ptr<PartTable> parts_ = std::make_shared<PartTable>();
  std::string part_;    // that is being filled
  std::string upload_;  // "": none was begun
  uint64_t numbers_ = 0;
  bool closed_ = false;
};

}  // namespace

Result<std::unique_ptr<Sink>> s3_sink(const StoreOptions& options, const std::string& path) {
  HEADRACE_ASSIGN(std::shared_ptr<const S3Object> object, object_of(options, path));
  return std::unique_ptr<Sink>(new S3Sink(std::move(object)));
}

Status s3_remove(const StoreOptions& options, const std::string& path) {
  HEADRACE_ASSIGN(const std::shared_ptr<const S3Object> object, object_of(options, path));
  const Status status = ask(object, "DELETE", {}).status();
  return status.code() == Code::kNotFound ? Status() : status;
}

}  // namespace headrace
