// SPDX-License-Identifier: Apache-2.0
//
// All of headrace's C++ face: open, plan, loader, batches.
#pragma once

#include "headrace/blend.h"
#include "headrace/dataset.h"
#include "headrace/error.h"
#include "headrace/field.h"
#include "headrace/loader.h"
#include "headrace/pack.h"
#include "headrace/plan.h"
#include "headrace/stats.h"
#include "headrace/tokens.h"
