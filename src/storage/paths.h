// SPDX-License-Identifier: Apache-2.0
//
// Paths as stores take them: of the local file system, or URLs with a scheme.  Text alone: nothing
// is looked up.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// The "s3" of s3://bucket/key; "" of a path.
std::string_view scheme_of(std::string_view path);

// Whether it says by itself where it is: it begins with '/', or with a scheme.
bool is_absolute(std::string_view path);

// `name` in `folder`.  A name that is absolute stays what it is, and so does one in no folder ("").
std::string join_path(std::string_view folder, std::string_view name);

// What the path lies in: "" of a bare name, "/" of "/a", "s3://" of "s3://bucket".
std::string parent_folder(std::string_view path);

// After the last '/'.
std::string_view base_name(std::string_view path);

}  // namespace headrace
