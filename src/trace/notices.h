// SPDX-License-Identifier: Apache-2.0
//
// Notices: what the core has to say to the user while it runs.  It prints nothing itself: whoever
// shows messages (the Python face: its logger) takes them from here.
#pragma once

#include <optional>
#include <string>

namespace headrace {

// From any thread; does not wait.  Beyond kMostNotices that nobody took, the oldest go.
inline constexpr size_t kMostNotices = 100;
void tell_user(std::string text);

// The oldest that was not taken; waits for one, at most so long.
std::optional<std::string> next_notice(int timeout_ms);

// From now on nobody waits: the process is about to end.
void end_notices();

}  // namespace headrace
