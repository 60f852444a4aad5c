// SPDX-License-Identifier: MIT
// The work-groups that a program's kernels will be launched with, as far as plans have said so
// before the program is compiled. Drivers that compile a kernel when it is first launched compile
// it for one size of work-groups, which most kernels say in their text. For the others, processes
// that compile ahead (runtime/compile_server.hpp) get it beside the text.
#pragma once

#include "runtime/program.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

class PendingProgram;

/// Notes a launch. Does nothing if the program is compiled already or the driver chooses the size.
void expect_launch(const Program& program, std::string_view kernel, const NDRange& range);
/// What was noted of a program: a line "KERNEL X Y Z" for each kernel and size.
std::string expected_launches(const PendingProgram& program);

using WorkGroup = std::array<std::size_t, 3>;
/// The sizes for a kernel in such lines.
std::vector<WorkGroup> expected_groups(std::string_view launches, std::string_view kernel);

}  // namespace dlprim
