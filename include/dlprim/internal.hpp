// SPDX-License-Identifier: MIT
// What public classes keep to themselves. Nothing here is for programs: every type is defined in
// the library's own source, and no installed header says more of it than its name.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

// What handles point at.
class Buffer;
class ContextImpl;
class Deferred;
class NetImpl;

namespace internal {

/// How the library's own source reaches the private parts of public classes. It is a friend of
/// each of them, and their only one.
class Access;

}  // namespace internal
}  // namespace dlprim
