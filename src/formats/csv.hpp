// SPDX-License-Identifier: MIT
// Tables of comma-separated values (RFC 4180): fields may be quoted, and quoted ones may hold
// separators, line ends and doubled quotes. Lines end with LF or CRLF; empty lines are passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Calls `row` for every row with its fields, which are valid during the call, and the line on
/// which it begins, from 1. `name` is what messages call the file. Throws Error(format) for a quote
/// that is not closed, or text behind a closing quote.
void read_csv(
    std::string_view text, const std::string& name, char separator,
    const std::function<void(const std::vector<std::string_view>& fields, std::int64_t line)>& row);

}  // namespace dlprim
