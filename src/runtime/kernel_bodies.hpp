// SPDX-License-Identifier: MIT
// bodies_apart: kernels whose bodies are functions of their own, for PoCL's compiler.
//
// PoCL makes three functions of a kernel: the kernel, and two launchers into which it puts the
// kernel's code. So it compiles each body three times, although it uses one of them. A function
// that no work-item's id is asked of is compiled once:
//
//     kernel void scale(global float* x, float by) { x[get_global_id(0)] *= by; }
//
//     static noinline void body_scale(ids..., global float* x, float by) { x[id] *= by; }
//     kernel void scale(global float* x, float by) { body_scale(ids..., x, by); }
#pragma once

#include <string>
#include <string_view>

namespace dlprim {

/// The text with a function for the body of each kernel that says that its work-groups are one
/// work-item, that has no barrier, and no local memory but arrays of one dimension that it declares
/// first. Macros give the body its ids. The text is for Clang, and calls get_global_id(),
/// get_group_id() and get_num_groups().
std::string bodies_apart(std::string_view source);

}  // namespace dlprim
