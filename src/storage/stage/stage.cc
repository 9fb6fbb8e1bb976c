// SPDX-License-Identifier: Apache-2.0
#include "storage/stage/stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/machine.h"
#include "base/parallel.h"
#include "base/shown_url.h"
#include "storage/descriptors.h"
#include "storage/paths.h"
#include "storage/stage/file_copier.h"
#include "storage/stage/journal.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = "headrace.unfinished";

// The folder that all lie in, without a '/' at its end, unless it is a root ("/", "memory://").
std::string common_parent(const std::vector<std::string>& paths) {
  std::string common = parent_folder(paths.front());
  for (const std::string& path : paths)
    while (!common.empty() && !common.ends_with('/') &&
           !(path.starts_with(common) && path[common.size()] == '/'))
      common = parent_folder(common);
  return common;
}

// The name of a file in the copy; "" where it can have none: keys of a bucket may lead anywhere.
std::string name_in_copy(std::string_view path, std::string_view common) {
  const fs::path relative = fs::path(path.substr(common.size())).relative_path();
  std::string name = relative.lexically_normal().string();
  const bool is_inside = name != ".." && !name.starts_with("../") && !name.ends_with('/');
  return is_inside && name != "." && name.find('\n') == std::string::npos ? name : "";
}

std::string temporary_name(const fs::path& place) {
  return (place.parent_path() / ("." + place.filename().string() + ".hrpart")).string();
}

// It outlives a killed process, which is all that it is for; an fsync would wait for whatever else
// the machine has to write.
Status write_mark(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return from_errno(errno, "open").in_file(path);
  const Descriptor file(fd);
  constexpr std::string_view kText = "files of this folder are being copied by headrace\n";
  if (::write(fd, kText.data(), kText.size()) < 0) return from_errno(errno, "write").in_file(path);
  return {};
}

bool is_memory(const std::string& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 && int64_t{info.f_type} == TMPFS_MAGIC;
}

std::string size_text(uint64_t bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto number = static_cast<double>(bytes);
  if (bytes >= kGiB) return fmt::format("{:.2f} GiB", number / static_cast<double>(kGiB));
  if (bytes >= kMiB) return fmt::format("{:.2f} MiB", number / static_cast<double>(kMiB));
  return fmt::format("{} bytes", bytes);
}

// One call of stage_files().
class Stager {
 public:
  Stager(const Store& from, const StagePlan& plan, std::string folder, const StageOptions& options)
      : from_(from), plan_(plan), folder_(std::move(folder)), options_(options) {}

  Result<StageReport> run() {
    HEADRACE_TRY(prepare());
    HEADRACE_TRY(check_others());
    HEADRACE_TRY(find_done());
    HEADRACE_TRY(check_room());
    HEADRACE_TRY(journal_->plan(plan_));
    const std::string mark = folder_ + '/' + std::string(kUnfinished);
    HEADRACE_TRY(write_mark(mark));
    HEADRACE_TRY(copy());
    if (options_.verify) HEADRACE_TRY(verify());
    ::unlink(mark.c_str());
    return report_;
  }

 private:
  std::string place(const StageFile& file) const { return folder_ + '/' + file.name; }

  Status prepare() {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) return from_errno(error.value(), "make the folder").in_file(folder_);
    const bool is_empty = fs::is_empty(folder_, error);
    const bool had_journal = fs::exists(StageJournal::path_of(folder_), error);
    if (!is_empty && !had_journal)
      return invalid("holds other files; stage into a folder that is empty or not there yet")
          .in_file(folder_);
    HEADRACE_ASSIGN(journal_, StageJournal::open(folder_, true));
    return {};
  }

  // What an earlier call copied and this data set does not have: who opens the folder would read
  // it.
  Status check_others() const {
    std::set<std::string_view> names;
    for (const StageFile& file : plan_.files) names.insert(file.name);
    for (const std::string& name : journal_->planned()) {
      const std::string other = folder_ + '/' + name;
      if (names.contains(name) || name.ends_with(".hridx") || ::access(other.c_str(), F_OK) != 0)
        continue;
      return invalid(
                 fmt::format("was copied before and is no part of this data set: remove it, or the "
                             "whole copy by `headrace stage --remove {}`, or give another folder",
                             folder_))
          .in_file(other);
    }
    return {};
  }

  Status find_done() {
    report_.files = plan_.files.size();
    report_.bytes = plan_.bytes;
    for (size_t i = 0; i < plan_.files.size(); ++i) {
      const StageFile& file = plan_.files[i];
      struct stat info{};
      const bool is_there = ::stat(place(file).c_str(), &info) == 0;
      if (journal_->done(file) != nullptr && is_there &&
          static_cast<uint64_t>(info.st_size) == file.bytes)
        there_ += file.bytes;
      else if (is_there && !journal_->planned().contains(file.name))
        return invalid("is there and was not written by `headrace stage`; give another folder")
            .in_file(place(file));
      else
        missing_.push_back(i);
    }
    tell(0);
    return {};
  }

  Status check_room() {
    uint64_t needed = 0;
    for (const size_t i : missing_) needed += plan_.files[i].bytes;
    struct statvfs info{};
    if (::statvfs(folder_.c_str(), &info) != 0) return from_errno(errno, "stat").in_file(folder_);
    uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
    const bool memory = is_memory(folder_);
    if (memory) free = std::min(free, usable_memory_bytes());
    if (needed > free)
      return exhausted(fmt::format(
          "{}: {} are to be copied and {} are free{}; give another folder, or use cache= instead",
          folder_, size_text(needed), size_text(free), memory ? " in memory" : ""));
    if (memory)
      report_.notice = fmt::format(
          "{} lies in memory: the copy takes {} of what the jobs of this machine may use, until it "
          "is removed",
          folder_, size_text(plan_.bytes));
    return {};
  }

  Status copy() {
    std::vector<const StageFile*> files;
    for (const size_t i : missing_) {
      files.push_back(&plan_.files[i]);
      HEADRACE_TRY(make_folder(plan_.files[i]));
    }
    return copy_files(from_, files,
                      {.streams = options_.streams,
                       .cancel = options_.cancel,
                       .path = [this](const StageFile& f) { return temporary_name(place(f)); },
                       .finish = [this](const StageFile& f, int fd,
                                        uint32_t checksum) { return finish(f, fd, checksum); },
                       .tell = [this](uint64_t bytes) { tell(bytes); }});
  }

  Status make_folder(const StageFile& file) {
    const std::string parent = fs::path(place(file)).parent_path().string();
    if (parent == made_) return {};
    std::error_code error;
    fs::create_directories(parent, error);
    if (error) return from_errno(error.value(), "make the folder").in_file(parent);
    made_ = parent;
    return {};
  }

  Status finish(const StageFile& file, int fd, uint32_t checksum) {
    if (file.modified_ns != 0) {
      const timespec time{file.modified_ns / 1'000'000'000, file.modified_ns % 1'000'000'000};
      const timespec times[2] = {time, time};
      (void)::futimens(fd, times);  // without it an index beside it is built anew
    }
    if (::rename(temporary_name(place(file)).c_str(), place(file).c_str()) != 0)
      return from_errno(errno, "rename");
    return journal_->add(file, checksum);
  }

  // The journal as it is now: what this call copied is in it too.
  Status verify() {
    journal_ = nullptr;
    HEADRACE_ASSIGN(journal_, StageJournal::open(folder_, false));
    return parallel_for(plan_.files.size(), 4, [&](size_t i) -> Status {
      const StageFile& file = plan_.files[i];
      const StageJournal::Done* done = journal_->done(file);
      if (done == nullptr) return internal("copied and not noted").in_file(place(file));
      HEADRACE_ASSIGN(const uint32_t found, checksum_of_copy(place(file), file.bytes));
      if (found == done->checksum) return {};
      ::unlink(place(file).c_str());
      return corrupt("the copy is not what was written; it was removed: run the same again")
          .in_file(place(file));
    });
  }

  void tell(uint64_t bytes) {
    MutexLock lock(mu_);
    report_.copied_bytes += bytes;
    if (options_.progress) options_.progress(there_ + report_.copied_bytes);
  }

  const Store& from_;
  const StagePlan& plan_;
  const std::string folder_;
  const StageOptions& options_;
  std::unique_ptr<StageJournal> journal_;
  std::vector<size_t> missing_;
  std::string made_;
  uint64_t there_ = 0;
  Mutex mu_;
  StageReport report_;
};

}  // namespace

Result<StagePlan> plan_stage(const Store& from, std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty()) return invalid("there is no file to copy");
  std::vector<std::string> plain;  // a signature in a URL is no part of a name
  for (const std::string& file : files) plain.emplace_back(without_query(file));
  const std::string common = common_parent(plain);
  std::set<std::string> names;
  StagePlan out;
  Hasher hasher;
  const std::vector<Result<FileInfo>> infos = from.stat_all(files);
  for (size_t i = 0; i < files.size(); ++i) {
    HEADRACE_TRY(infos[i].status());
    const FileInfo& info = infos[i].value();
    if (info.is_folder) return internal("a folder among the files").in_file(files[i]);
    std::string name = name_in_copy(plain[i], common);
    if (name.empty()) return unsupported("a file of this name cannot be staged").in_file(files[i]);
    if (!names.insert(name).second)
      return unsupported(fmt::format("two files would be '{}' in the copy: stage them one by one, "
                                     "into folders of their own",
                                     name))
          .in_file(files[i]);
    hasher.add(without_signature(files[i])).add(info.bytes).add(std::string_view(info.version));
    out.bytes += info.bytes;
    out.files.push_back({files[i], std::move(name), info.bytes, info.modified_ns, info.version});
  }
  out.id = hasher.finish();
  return out;
}

Result<StageReport> stage_files(const Store& from, const StagePlan& plan, const std::string& folder,
                                const StageOptions& options) {
  return Stager(from, plan, folder, options).run();
}

Result<uint64_t> remove_stage(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(StageJournal::path_of(folder), error))
    return not_found("nothing was staged there by headrace").in_file(folder);
  HEADRACE_ASSIGN(const auto journal, StageJournal::open(folder, false));
  uint64_t removed = 0;
  std::set<std::string, std::greater<>> parents;  // the deepest first
  for (const std::string& name : journal->planned()) {
    const fs::path place = fs::path(folder) / name;
    struct stat info{};
    if (::lstat(place.c_str(), &info) == 0 && ::unlink(place.c_str()) == 0)
      removed += static_cast<uint64_t>(info.st_size);
    ::unlink(temporary_name(place).c_str());
    // What opening the copy has put beside it.
    const std::string index = place.string() + ".hridx";
    if (::lstat(index.c_str(), &info) == 0 && ::unlink(index.c_str()) == 0)
      removed += static_cast<uint64_t>(info.st_size);
    for (fs::path parent = place.parent_path(); parent.string().size() > folder.size();
         parent = parent.parent_path())
      parents.insert(parent.string());
  }
  ::unlink((folder + '/' + std::string(kUnfinished)).c_str());
  for (const std::string& parent : parents) ::rmdir(parent.c_str());
  ::rmdir(folder.c_str());
  ::unlink((folder + ".hridx").c_str());
  journal->remove();
  return removed;
}

}  // namespace headrace
