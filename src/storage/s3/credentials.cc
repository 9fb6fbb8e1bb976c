// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/credentials.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

namespace headrace {
namespace {

constexpr int64_t kRefreshBefore = 600;  // seconds before they expire
constexpr int64_t kRefreshEvery = 10;    // seconds, where those that come expire soon

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here sets it
  return value == nullptr ? "" : value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

IniFile read_ini(const char* variable, std::string_view usual) {
  std::string path = environment(variable);
  if (path.empty()) path = fmt::format("{}/.aws/{}", environment("HOME"), usual);
  if (path.starts_with("~/")) path = environment("HOME") + path.substr(1);
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return parse_ini(std::string(std::istreambuf_iterator<char>(in), {}));
}

std::string value_of(const IniFile& file, const std::string& section, const std::string& name) {
  const auto it = file.find(section);
  if (it == file.end()) return {};
  const auto found = it->second.find(name);
  return found == it->second.end() ? "" : found->second;
}

template <typename... Rest>
std::string first_of(std::string one, Rest... rest) {
  if constexpr (sizeof...(rest) == 0)
    return one;
  else
    return one.empty() ? first_of(std::move(rest)...) : one;
}

}  // namespace

IniFile parse_ini(std::string_view text) {
  IniFile out;
  std::string section;
  std::string group;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      std::string_view name = line.substr(1, line.find(']') - 1);
      if (name.starts_with("profile ")) name.remove_prefix(8);
      section = trimmed(name);
      out[section];
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string name(trimmed(line.substr(0, equals)));
    // Lines that are indented belong to the setting above ("s3 ="): they are "s3.name".
    if (raw[0] == ' ' || raw[0] == '\t')
      name = group + '.' + name;
    else
      group = name;
    out[section][name] = std::string(trimmed(line.substr(equals + 1)));
  }
  return out;
}

Result<S3Settings> s3_settings(const StoreOptions& options) {
  const IniFile secrets = read_ini("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const IniFile config = read_ini("AWS_CONFIG_FILE", "config");
  const std::string profile = first_of(options.profile, environment("AWS_PROFILE"),
                                       environment("AWS_DEFAULT_PROFILE"), std::string("default"));
  const bool is_named = profile != "default";
  if (is_named && !secrets.contains(profile) && !config.contains(profile))
    return invalid(
        fmt::format("there is no profile '{}' in ~/.aws/credentials or ~/.aws/config", profile));
  S3Settings out;
  out.endpoint = first_of(
      options.endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"),
      value_of(config, "services " + value_of(config, profile, "services"), "s3.endpoint_url"),
      value_of(config, profile, "endpoint_url"));
  out.region = first_of(options.region, environment("AWS_REGION"),
                        environment("AWS_DEFAULT_REGION"), value_of(config, profile, "region"));
  out.expected = fmt::format(
      "looked for in hr.storage(...), AWS_ACCESS_KEY_ID and profile '{}' of ~/.aws", profile);
  if (options.anonymous) return out;
  out.credentials = options.credentials;
  // A profile that was named goes before the environment, as in Amazon's own tools.
  if (out.credentials.empty() && options.profile.empty())
    out.credentials = {.access_key = environment("AWS_ACCESS_KEY_ID"),
                       .secret_key = environment("AWS_SECRET_ACCESS_KEY"),
                       .session_token = environment("AWS_SESSION_TOKEN")};
  for (const IniFile* file : {&secrets, &config})
    if (out.credentials.empty() || out.credentials.secret_key.empty())
      out.credentials = {.access_key = value_of(*file, profile, "aws_access_key_id"),
                         .secret_key = value_of(*file, profile, "aws_secret_access_key"),
                         .session_token = value_of(*file, profile, "aws_session_token")};
  return out;
}

CredentialSource::CredentialSource(Credentials known, const StoreOptions& options)
    : refresh_(known.empty() ? options.refresh : nullptr),
      anonymous_(options.anonymous),
      held_(std::make_shared<const Credentials>(std::move(known))) {}

Credentials CredentialSource::current() const {
  MutexLock lock(mu_);
  return *held_;
}

void CredentialSource::expire() {
  if (!refresh_) return;
  MutexLock lock(mu_);
  auto old = std::make_shared<Credentials>(*held_);
  old->expires_s = 1;
  held_ = std::move(old);
}

Status CredentialSource::prepare(std::string_view expected) {
  if (anonymous_) return {};
  const int64_t now = std::time(nullptr);
  const auto is_fresh = [this, now](int64_t left_s) {
    MutexLock lock(mu_);
    return !held_->empty() && (held_->expires_s == 0 || held_->expires_s > now + left_s);
  };
  if (is_fresh(kRefreshBefore)) return {};
  if (!refresh_)
    return Status(Code::kPermission,
                  fmt::format("no credentials were found ({}): give them, or say "
                              "hr.storage(anonymous=True) for public data",
                              expected));
  MutexLock one(refreshing_);
  if (is_fresh(kRefreshBefore) || (now < asked_s_ + kRefreshEvery && is_fresh(0))) return {};
  asked_s_ = now;
  Result<Credentials> fresh = refresh_();
  if (!fresh.ok()) return fresh.status();
  if (fresh.value().empty())
    return Status(Code::kPermission,
                  fmt::format("no credentials were found ({}, nor by botocore): give them, or say "
                              "hr.storage(anonymous=True) for public data",
                              expected));
  MutexLock lock(mu_);
  held_ = std::make_shared<const Credentials>(std::move(fresh).value());
  return {};
}

}  // namespace headrace
