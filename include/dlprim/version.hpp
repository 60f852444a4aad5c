// SPDX-License-Identifier: MIT
// Version of the library.
#pragma once

#include <dlprim/namespace.hpp>

#define DLPRIM_VERSION "0.1.0"
