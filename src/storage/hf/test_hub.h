// SPDX-License-Identifier: Apache-2.0
//
// For tests: listings as Hugging Face's hub gives them, beside the files of a TestServer.
#pragma once

#include "storage/http/test_server.h"

namespace headrace {

// For server.answer(), over files put at /datasets/user/name/resolve/main/…
TestServer::Answer answers_of_hub(const TestServer& server);

}  // namespace headrace
