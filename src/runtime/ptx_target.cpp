// SPDX-License-Identifier: MIT
// Turns marked PTX lines into instructions.
#include "runtime/ptx_target.hpp"

namespace dlprim {

namespace {
constexpr std::string_view mark = "//@sm_90a ";
constexpr std::string_view resident_mark = "//@resident ";

/// Turns the mark of how many work-groups a compute unit should hold into the directive for it.
void ask_residence(std::string& ptx) {
    const std::size_t at = ptx.find(resident_mark), group = ptx.find(".reqntid");
    if (at == std::string::npos || group == std::string::npos) return;
    const std::string count = ptx.substr(at + resident_mark.size(), 1);
    ptx.insert(group, ".minnctapersm " + count + "\n");
}

}  // namespace

bool wants_ptx_target(std::string_view source) {
    return source.find(mark) != std::string_view::npos;
}

std::optional<std::string> with_ptx_target(std::string ptx) {
    constexpr std::string_view target = ".target sm_90";
    const std::size_t at = ptx.find(target);
    if (at == std::string::npos) return std::nullopt;
    const std::size_t end = at + target.size();
    if (end < ptx.size() && ptx[end] != 'a') ptx.insert(end, 1, 'a');
    ask_residence(ptx);
    std::string result;
    result.reserve(ptx.size());
    std::size_t from = 0;
    for (std::size_t found = ptx.find(mark); found != std::string::npos;
         found = ptx.find(mark, from)) {
        result.append(ptx, from, found - from);
        from = found + mark.size();
    }
    result.append(ptx, from);
    return result;
}

}  // namespace dlprim
