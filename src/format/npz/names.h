// SPDX-License-Identifier: Apache-2.0
//
// How a sample's values are called in an .npz that holds many: `<key>/<field>`, and
// `<key>/<field>[n]` where a field has several values; `<key>/` of a sample without any.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

struct NpzName {
  std::string_view key;
  std::string field;  // "" of a sample without values
};

// Precondition: there is a '/' in it.
NpzName split_npz_name(std::string_view name);
// What would be taken for something else in a field's name is written as %2F and the like.
std::string npz_field_name(std::string_view field);

}  // namespace headrace
