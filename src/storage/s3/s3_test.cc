// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "storage/open_store.h"
#include "storage/s3/credentials.h"
#include "storage/s3/test_bucket.h"
#include "storage/s3/xml.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

class S3Store : public ::testing::Test {
 protected:
  S3Store() {
    server_.put("/bucket/d/a", "0123456789");
    server_.answer(answers_of_s3(server_, 3));
    options_.endpoint = server_.url("");
    options_.backoff_s = 0.001;
    options_.credentials = {.access_key = "canary-key", .secret_key = "canary-secret"};
  }
  std::shared_ptr<const Store> store() const {
    return open_store("s3://bucket/d", options_).value().store;
  }
  // What is said where the server answers so.
  Status said(int status, const std::string& xml, const std::string& more = "") {
    server_.answer([=](const Asked& asked) -> std::optional<std::string> {
      return "HTTP/1.1 " + std::to_string(status) + " x\r\n" + more +
             "Content-Length: " + std::to_string(asked.method == "HEAD" ? 0 : xml.size()) +
             "\r\n\r\n" + (asked.method == "HEAD" ? "" : xml);
    });
    const Status found = store()->stat("s3://bucket/d/a").status();
    EXPECT_EQ(found.place().file, "s3://bucket/d/a");
    EXPECT_EQ(found.text().find("canary"), std::string::npos) << found.text();
    return found;
  }
  static bool says(const Status& status, std::string_view what) {
    return status.text().find(what) != std::string::npos;
  }
  TestServer server_;
  StoreOptions options_;
};

TEST_F(S3Store, requests_are_signed_and_listings_go_over_pages) {
  for (const char* name : {"b", "sub.txt", "sub/x", "sub/y", "t t+ü&"})
    server_.put("/bucket/d/" + std::string(name), "x");
  const auto entries = store()->list("s3://bucket/d").value();
  std::vector<std::string> paths;
  for (const FileInfo& entry : entries) paths.push_back(entry.path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"s3://bucket/d/a", "s3://bucket/d/b", "s3://bucket/d/sub",
                                      "s3://bucket/d/sub.txt", "s3://bucket/d/t t+ü&"}));
  EXPECT_EQ(entries[0].bytes, 10u);
  EXPECT_EQ(entries[0].version, "\"v1-10\"");
  EXPECT_EQ(server_.requests(), 2u);
  const Asked first = server_.asked().front();
  EXPECT_TRUE(first.field("authorization").starts_with("aws4-hmac-sha256 credential=canary-key/"));
  EXPECT_EQ(first.field("x-amz-content-sha256"), "unsigned-payload");
  EXPECT_EQ(first.head.find("canary-secret"), std::string::npos);
}

TEST_F(S3Store, errors_say_what_to_do) {
  Status s = said(404, "<Error><Code>NoSuchBucket</Code></Error>");
  EXPECT_TRUE(s.code() == Code::kNotFound && says(s, "no bucket 'bucket'")) << s.text();
  s = said(403, "<Error><Code>AccessDenied</Code></Error>");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "AccessDenied")) << s.text();
  s = said(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "secret key is wrong")) << s.text();
  s = said(400, "<Error><Code>ExpiredToken</Code></Error>");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "have expired")) << s.text();
  s = said(301, "<Error><Code>PermanentRedirect</Code></Error>",
           "x-amz-bucket-region: eu-west-1\r\n");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "region='eu-west-1'")) << s.text();
  s = said(400,
           "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "region='eu-north-1'")) << s.text();
  options_.credentials = {};
  options_.anonymous = true;
  s = said(403, "<Error><Code>AccessDenied</Code></Error>");
  EXPECT_TRUE(s.code() == Code::kPermission && says(s, "not public")) << s.text();
}

TEST_F(S3Store, anonymous_is_unsigned_and_requester_pays_is_said) {
  options_.credentials = {};
  options_.anonymous = true;
  options_.requester_pays = true;
  EXPECT_EQ(store()->stat("s3://bucket/d/a").value().bytes, 10u);
  EXPECT_EQ(server_.asked().front().field("authorization"), "");
  EXPECT_EQ(server_.asked().front().field("x-amz-request-payer"), "requester");
}

TEST_F(S3Store, who_has_none_is_asked_and_asked_again_before_they_expire) {
  int asked = 0;
  options_.credentials = {};
  options_.profile = "";
  options_.refresh = [&asked]() -> Result<Credentials> {
    ++asked;
    return Credentials{.access_key = "k" + std::to_string(asked), .secret_key = "s"};
  };
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
  ::setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
  const auto s3 = store();
  EXPECT_TRUE(s3->stat("s3://bucket/d/a").ok());
  EXPECT_TRUE(s3->stat("s3://bucket/d/a").ok());
  EXPECT_EQ(asked, 1);
  options_.refresh = nullptr;
  const Status none = store()->stat("s3://bucket/d/a").status();
  EXPECT_EQ(none.code(), Code::kPermission);
  EXPECT_TRUE(says(none, "anonymous=True")) << none.text();
  ::unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  ::unsetenv("AWS_CONFIG_FILE");
}

TEST_F(S3Store, plain_http_to_others_is_refused) {
  options_.endpoint = "http://minio.example:9000";
  const Status status = store()->stat("s3://bucket/d/a").status();
  EXPECT_EQ(status.code(), Code::kPermission);
  EXPECT_TRUE(says(status, "allow_plain_http")) << status.text();
}

TEST(S3Credentials, come_from_the_files_of_a_profile) {
  const TestFolder folder;
  ::setenv("AWS_SHARED_CREDENTIALS_FILE",
           folder
               .put("credentials",
                    "[default]\naws_access_key_id = a\naws_secret_access_key=b\n"
                    "[other]\n# c\naws_access_key_id=c\naws_secret_access_key = d=e\n"
                    "aws_session_token = t\n")
               .c_str(),
           1);
  ::setenv("AWS_CONFIG_FILE",
           folder
               .put("config",
                    "[profile other]\nregion = eu-west-3\ns3 =\n  endpoint_url = no\n"
                    "endpoint_url = http://127.0.0.1:9\n")
               .c_str(),
           1);
  const S3Settings usual = s3_settings({}).value();
  EXPECT_EQ(usual.credentials.secret_key, "b");
  const S3Settings other = s3_settings({.profile = "other"}).value();
  EXPECT_EQ(other.credentials.secret_key, "d=e");
  EXPECT_EQ(other.credentials.session_token, "t");
  EXPECT_EQ(other.region, "eu-west-3");
  EXPECT_EQ(other.endpoint, "http://127.0.0.1:9");
  EXPECT_EQ(s3_settings({.profile = "none"}).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(s3_settings({.anonymous = true}).value().credentials.empty());
  ::unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  ::unsetenv("AWS_CONFIG_FILE");
}

TEST(S3Xml, is_read_with_its_escapes) {
  EXPECT_EQ(xml_text("<a><Code>x &amp; &lt;y&gt; &#34;&#xfc;</Code></a>", "Code"), "x & <y> \"ü");
  EXPECT_EQ(xml_text("<Code>cut", "Code"), "");
  EXPECT_EQ(parse_s3_list("<html>", "s3://b/").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace headrace
