// SPDX-License-Identifier: MIT
// The short name of the library's namespace. Every public header includes it, so that dp:: is there
// whichever header a program begins with.
#pragma once

namespace dlprim {}
namespace dp = dlprim;
