// SPDX-License-Identifier: MIT
// See errors.hpp.
#include "device/errors.hpp"

#include "device/devices.hpp"
#include "memory/pinned.hpp"

#include <dlprim/call_names.hpp>
#include <dlprim/log.hpp>

#include <array>
#include <charconv>
#include <string_view>

namespace dlprim_torch {
namespace {

constexpr std::array refusals{
    "probability tensor contains either `inf`, `nan` or element < 0",
    "invalid multinomial distribution (sum of probabilities <= 0)",
};

/// The sentence of the refusal whose index a message names; nullptr if it names another.
const char* sentence_in(std::string_view message) {
    constexpr std::string_view before = "index ";
    const std::size_t at = message.find(before);
    if (at == std::string_view::npos) return nullptr;
    const std::string_view rest = message.substr(at + before.size());
    std::int64_t index = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), index);
    for (std::size_t i = 0; i < refusals.size(); ++i)
        if (index == index_of(static_cast<Refusal>(i))) return refusals[i];
    return nullptr;
}

thread_local std::string_view operator_in_scope;

constexpr std::string_view space = "aten::";

/// The name of the operator in scope without its overload's; empty if there is none.
std::string name_in_scope() {
    std::string_view name = operator_in_scope;
    if (name.empty()) return {};
    if (name.starts_with(space)) name.remove_prefix(space.size());
    return std::string(space).append(name.substr(0, name.find('.')));
}

/// That name and the library's text, which may have the name of an earlier operator.
std::string with_operator(std::string_view text) {
    const std::string name = name_in_scope();
    if (name.empty() || text.starts_with(space)) return std::string(text);
    return name + ": " + std::string(text);
}

}  // namespace

OperatorScope::OperatorScope(std::string_view name) noexcept
    : outermost_(operator_in_scope.empty()) {
    if (outermost_) operator_in_scope = name;
}

OperatorScope::~OperatorScope() {
    if (outermost_) operator_in_scope = {};
}

void throw_translated(const dp::Error& error, bool waited) {
    const std::string text = waited ? error.what() : with_operator(error.what());
    switch (error.kind()) {
        case dp::ErrorKind::out_of_memory:
            TORCH_CHECK_WITH(OutOfMemoryError, false, text);
        case dp::ErrorKind::unsupported:
            TORCH_CHECK_NOT_IMPLEMENTED(false, text);
        case dp::ErrorKind::invalid_argument:
            if (const char* const sentence = waited ? sentence_in(text) : nullptr)
                TORCH_CHECK(false, sentence);
            if (waited) TORCH_CHECK_INDEX(false, text);
            break;
        default:
            break;
    }
    TORCH_CHECK(false, text);
}

void pass_warnings_on() {
    dp::set_log([](dp::LogLevel level, std::string_view line) {
        if (level == dp::LogLevel::warning) TORCH_WARN("ocl: ", with_operator(line));
    });
    dp::set_call_names(name_in_scope);
}

void let_caches_go() noexcept {
    pinned_cache_go();
    for (int i = 0; i < device_count(); ++i) empty_cache(i);
}

}  // namespace dlprim_torch
