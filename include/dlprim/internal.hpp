// SPDX-License-Identifier: MIT
// Types behind the private members of public classes. Nothing here is for programs: every type is
// defined in the library's own source, and installed headers only declare its name.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

// The objects that Context, Event, Tensor, Net and Solver point to.
class Buffer;
class ContextImpl;
class Deferred;
class EventImpl;
class NetImpl;
class SolverImpl;

namespace internal {

/// How the library's own source reaches the private parts of public classes. It is a friend of
/// each of them, and their only one.
class Access;

}  // namespace internal
}  // namespace dlprim
