// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/sign.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

namespace headrace {
namespace {

const Credentials kExample{.access_key = "AKIAIOSFODNN7EXAMPLE",
                           .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
const std::string kEmpty = hex_of(sha256(""));

std::string signature(const SignedRequest& request) {
  const std::string line = sign(request, kExample, "us-east-1", "s3", "20130524T000000Z").front();
  return line.substr(line.rfind('=') + 1);
}

// The examples in Amazon's "Signature Calculations for the Authorization Header".
TEST(SignatureV4, gives_the_published_signatures) {
  EXPECT_EQ(signature({.method = "GET",
                       .host = "examplebucket.s3.amazonaws.com",
                       .path = "/test.txt",
                       .headers = {{"range", "bytes=0-9"}},
                       .body_hash = kEmpty}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signature({.method = "PUT",
                       .host = "examplebucket.s3.amazonaws.com",
                       .path = "/test%24file.text",
                       .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                   {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                       .body_hash = hex_of(sha256("Welcome to Amazon S3."))}),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(signature({.method = "GET",
                       .host = "examplebucket.s3.amazonaws.com",
                       .path = "/",
                       .query = {{"lifecycle", ""}},
                       .body_hash = kEmpty}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature({.method = "GET",
                       .host = "examplebucket.s3.amazonaws.com",
                       .path = "/",
                       .query = {{"prefix", "J"}, {"max-keys", "2"}},
                       .body_hash = kEmpty}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SignatureV4, the_secret_is_in_no_line) {
  Credentials with_token = kExample;
  with_token.session_token = "token";
  for (const std::string& line : sign({.method = "GET", .host = "h", .path = "/", .body_hash = ""},
                                      with_token, "r", "s3", "20130524T000000Z"))
    EXPECT_EQ(line.find(kExample.secret_key), std::string::npos);
}

TEST(SignatureV4, times_are_of_universal_time) {
  EXPECT_EQ(amazon_time(1369353600), "20130524T000000Z");
}

}  // namespace
}  // namespace headrace
