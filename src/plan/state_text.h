// SPDX-License-Identifier: Apache-2.0
//
// The text form of a state: JSON, the same from Python and from C++.
//
//   {"headrace": 1, "plan_version": 1, "fingerprint": "…", "seed": 7, "mode": 2, "lanes": 64,
//    "pools": [4096], "reassign_every": 1, "epoch": 3, "g": 1024}
//
// A blend adds
//
//    "mixture": {"offsets": [0, 0], "schedule": [[draw, [weight, …]], …]}, "epoch_draws": 9000
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "plan/state.h"

namespace headrace {

// Of the text; the arithmetic has a version of its own (kPlanVersion).
inline constexpr uint64_t kStateVersion = 1;

std::string state_text(const PlanState& state);

// Checks names and types; Plan::resume() checks what the numbers say.
Result<PlanState> read_state(std::string_view text);

}  // namespace headrace
