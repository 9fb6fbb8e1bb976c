// SPDX-License-Identifier: Apache-2.0
//
// The XML that S3 answers with: flat, without attributes that matter.  Text alone; what is missing
// is "".
#pragma once

#include <string>
#include <string_view>

#include "storage/store.h"

namespace headrace {

// The text of the first <name>…</name>, with &amp; and the like resolved.
std::string xml_text(std::string_view xml, std::string_view name);

// A page of ListObjectsV2.  `root` is what comes before the key in a path ("s3://bucket/"); the
// entry of the folder itself is left out.
struct S3List {
  std::vector<FileInfo> entries;
  std::string next;  // a continuation token; "" after the last page
};
Result<S3List> parse_s3_list(std::string_view xml, std::string_view root);

}  // namespace headrace
