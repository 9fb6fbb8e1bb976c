// SPDX-License-Identifier: Apache-2.0
//
// For tests: listings and errors of S3, beside the files of a TestServer.
#pragma once

#include "storage/http/test_server.h"

namespace headrace {

// For server.answer(): pages of at most so many keys; the continuation token is the last one's.
TestServer::Answer answers_of_s3(const TestServer& server, size_t page_keys);

}  // namespace headrace
