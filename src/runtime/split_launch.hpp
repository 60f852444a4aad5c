// SPDX-License-Identifier: MIT
// Splitting of launches: a device whose display has a watchdog ends a kernel that runs for too
// long. A launch that is expected to take longer becomes several ones, which compute the same
// work-groups with the same bits: each has a part of the range and a global offset.
//
// get_global_id() counts from the offset, get_group_id() does not. So on such devices the text of a
// kernel that asks for its group begins with a macro that adds the offset. Kernels that ask how
// many groups there are (persistent ones) are not split. Devices without a limit compile what they
// did.
#pragma once

#include "runtime/program.hpp"
#include "runtime/queue.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The longest that one launch on the queue may take, in seconds; 0 where no limit is known. It is
/// 0.5 where the driver says that there is a watchdog, and what DLPRIM_TRAITS sets (launch_ms).
double launch_limit(Queue& queue);

/// While it lives, the kernels that its thread makes (Program::kernel()) are expected to take this
/// long for each launch.
class ExpectedSeconds {
  public:
    explicit ExpectedSeconds(double seconds) : before_(now_) { now_ = seconds; }
    ~ExpectedSeconds() { now_ = before_; }
    ExpectedSeconds(const ExpectedSeconds&) = delete;
    ExpectedSeconds& operator=(const ExpectedSeconds&) = delete;
    static double now() noexcept { return now_; }

  private:
    static thread_local double now_;
    double before_;
};

/// Whether launches of this text's kernels can be split.
bool can_be_split(std::string_view text);
/// The text with the macro in front, if it can be split and asks for groups.
std::string with_group_offsets(const std::string& text);
/// Whether it has that macro in front. Then its kernels cannot become functions of other kernels.
bool has_group_offsets(std::string_view text);

/// A range, or a part of one: global ids count from the offset.
struct PartRange : NDRange {
    PartRange() = default;
    PartRange(const NDRange& whole) : NDRange(whole) {}  // NOLINT(google-explicit-constructor)
    std::array<std::size_t, 3> offset{0, 0, 0};
};

/// The parts of a range, in order: at least `parts` ones of nearly equal size, if it has so many
/// work-groups. All but the last along a dimension have whole work-groups.
std::vector<PartRange> split_range(const PartRange& range, std::size_t parts);

}  // namespace dlprim
