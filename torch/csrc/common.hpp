// SPDX-License-Identifier: MIT
// The headers that every file needs, parsed once for all of them (a precompiled header).
#pragma once

#include <ATen/ATen.h>
#include <ATen/MetaFunctions.h>
#include <torch/library.h>
#include <dlprim/context.hpp>
#include <dlprim/opencl.hpp>
#include <dlprim/ops.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dp = dlprim;
