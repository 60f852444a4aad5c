// SPDX-License-Identifier: MIT
// Launches are noted by the program (OpenCLProgram::expect()).
#include "runtime/expected_launches.hpp"

#include "base/text.hpp"
#include "runtime/opencl_program.hpp"

#include <algorithm>
#include <charconv>

namespace dlprim {

void expect_launch(const Program& program, std::string_view kernel, const NDRange& range) {
    const auto* const its = dynamic_cast<const OpenCLProgram*>(&program);
    if (its == nullptr || range.local[0] == 0) return;
    WorkGroup group = range.local;
    for (WorkGroup::size_type i = 0; i < group.size(); ++i)
        if (static_cast<int>(i) >= range.dims) group[i] = 1;
    its->expect(kernel, group);
}

std::string expected_launches(const PendingProgram& program) {
    const auto* const its = dynamic_cast<const OpenCLProgram*>(&program);
    return its == nullptr ? std::string() : its->expected();
}

std::vector<WorkGroup> expected_groups(std::string_view launches, std::string_view kernel) {
    std::vector<WorkGroup> groups;
    while (!launches.empty()) {
        const std::string_view line = launches.substr(0, launches.find('\n'));
        launches.remove_prefix(std::min(launches.size(), line.size() + 1));
        if (!line.starts_with(cat(kernel, ' '))) continue;
        WorkGroup& group = groups.emplace_back();
        const char* at = line.data() + kernel.size();
        const char* const end = line.data() + line.size();
        for (std::size_t& size : group)
            if (at != end) at = std::from_chars(at + 1, end, size).ptr;
    }
    return groups;
}

}  // namespace dlprim
