// SPDX-License-Identifier: Apache-2.0
#include "storage/stage/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/shown_url.h"

namespace headrace {
namespace {

constexpr std::string_view kFirst = "headrace stage 1\n";

// The word up to the next blank, which goes too.
std::string_view take_word(std::string_view& line) {
  const size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

template <typename T>
bool parse(std::string_view text, T& out, int base = 10) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && at == text.data() + text.size();
}

}  // namespace

Hash128 StageJournal::version_of(const StageFile& file) {
  return Hasher().add(without_signature(file.path)).add(std::string_view(file.version)).finish();
}

Result<std::unique_ptr<StageJournal>> StageJournal::open(const std::string& folder, bool make) {
  const std::string path = path_of(folder);
  const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0);
  const int fd = ::open(path.c_str(), flags, 0600);
  if (fd < 0) return from_errno(errno, "open").in_file(path);
  OpenFile file = std::make_shared<const Descriptor>(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return unavailable(fmt::format(
        "another process is copying to {}: wait for it, or give another folder", folder));
  std::unique_ptr<StageJournal> out(new StageJournal(path, std::move(file)));
  HEADRACE_TRY(out->load());
  return out;
}

Status StageJournal::load() {
  struct stat info{};
  if (::fstat(file_->fd(), &info) != 0) return from_errno(errno, "stat").in_file(path_);
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (::pread(file_->fd(), text.data(), text.size(), 0) != info.st_size)
    return from_errno(errno, "read").in_file(path_);
  if (text.empty()) return append(std::string(kFirst));
  // Of a process that was killed the last line may be cut.
  const size_t whole = text.rfind('\n') + 1;
  if (whole < text.size() && ::ftruncate(file_->fd(), static_cast<off_t>(whole)) != 0)
    return from_errno(errno, "truncate").in_file(path_);
  std::string_view rest = std::string_view(text).substr(0, whole);
  if (rest.empty()) return append(std::string(kFirst));
  if (!rest.starts_with(kFirst))
    return invalid("is no file of `headrace stage`; give another folder").in_file(path_);
  was_there_ = true;
  rest.remove_prefix(kFirst.size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::string_view word = take_word(line);
    if (word == "plan") planned_.emplace(line);
    Done done;
    if (word != "copied" || !parse(take_word(line), done.checksum, 16) ||
        !parse(take_word(line), done.bytes) || !Hash128::parse(take_word(line), done.version))
      continue;
    done_[std::string(line)] = done;
  }
  return {};
}

Status StageJournal::append(const std::string& lines) const {
  std::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_->fd(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return from_errno(errno, "write").in_file(path_);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

const StageJournal::Done* StageJournal::done(const StageFile& file) const {
  const auto it = done_.find(file.name);
  if (it == done_.end() || it->second.bytes != file.bytes || it->second.version != version_of(file))
    return nullptr;
  return &it->second;
}

Status StageJournal::plan(const StagePlan& plan) {
  std::string lines;
  for (const StageFile& file : plan.files)
    if (planned_.insert(file.name).second) lines += "plan " + file.name + '\n';
  return append(lines);
}

Status StageJournal::add(const StageFile& file, uint32_t checksum) {
  MutexLock lock(mu_);
  return append(fmt::format("copied {:08x} {} {} {}\n", checksum, file.bytes,
                            version_of(file).hex(), file.name));
}

void StageJournal::remove() const {
  ::unlink(path_.c_str());
}

}  // namespace headrace
