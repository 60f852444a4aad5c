// SPDX-License-Identifier: MIT
// Version of the library.
#pragma once

#define DLPRIM_VERSION "0.1.0"
