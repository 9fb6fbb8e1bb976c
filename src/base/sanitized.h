// SPDX-License-Identifier: Apache-2.0
//
// HEADRACE_SANITIZED: this is compiled for AddressSanitizer or ThreadSanitizer.  They take all
// addresses that there are, so tests that limit a process's addresses cannot run.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADRACE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADRACE_SANITIZED
#endif
#endif
