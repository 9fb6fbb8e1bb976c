// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "format/format.h"

namespace headrace {

std::span<const Format* const> all_formats();
Result<const Format*> find_format(std::string_view name);
// By the first bytes, then by the suffix; an error that lists the formats when neither tells.
Result<const Format*> guess_format(Bytes head, std::string_view path);

}  // namespace headrace
