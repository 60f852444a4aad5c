// SPDX-License-Identifier: MIT
// Launches in parts: every work-group runs once and knows its place, and only long ones are split.
#include "runtime/split_launch.hpp"
#include "base/text.hpp"
#include "engine/kernel_function.hpp"
#include "engine/launch.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <cstdint>
#include <vector>

using namespace dlprim;

namespace {

NDRange range_of(std::vector<std::size_t> groups, std::vector<std::size_t> local) {
    NDRange range;
    range.dims = static_cast<int>(groups.size());
    for (std::size_t d = 0; d < groups.size(); ++d) {
        range.local[d] = local[d];
        range.global[d] = groups[d] * local[d];
    }
    return range;
}

/// How often the parts have each work-item, in the order of rows.
std::vector<int> times(const NDRange& range, const std::vector<PartRange>& parts) {
    const auto& all = range.global;
    std::vector<int> counts(all[0] * all[1] * all[2]);
    for (const PartRange& part : parts)
        for (std::size_t z = 0; z < part.global[2]; ++z)
            for (std::size_t y = 0; y < part.global[1]; ++y)
                for (std::size_t x = 0; x < part.global[0]; ++x)
                    ++counts.at(((z + part.offset[2]) * all[1] + y + part.offset[1]) * all[0] + x +
                                part.offset[0]);
    return counts;
}

/// Writes what a work-item knows of its place, and counts how often it ran.
constexpr const char* places = R"(kernel __attribute__((reqd_work_group_size(4, 2, 1)))
void places(global int* x, ulong x_offset, int width) {
    const int column = get_global_id(0), row = get_global_id(1);
    const int own_column = (int)get_group_id(0) * 4 + get_local_id(0);
    const int own_row = (int)get_group_id(1) * 2 + get_local_id(1);
    x[x_offset + row * width + column] += 1000000 + own_row * 1000 + own_column;
})";

/// What the kernel writes on a device with that trait, and with how many launches.
std::pair<std::vector<double>, std::uint64_t> run_places(const Context& device, double seconds) {
    const NDRange range = range_of({5, 7}, {4, 2});
    const Tensor x(device, {14, 20}, DType::i32);
    Tensor(x).fill(0);
    const ExpectedSeconds expected(seconds);
    KernelLaunch launch(
        KernelCall(Access::impl(device).build({"places", places, ""}), "places", range)
            .tensor("x", 0)
            .size("width", 20));
    const std::uint64_t before = device.counters().launches;
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    launch.enqueue(Access::impl(device).queue(), operands);
    const std::uint64_t launches = device.counters().launches - before;
    return {x.to_doubles(), launches};
}

}  // namespace

TEST_CASE("Parts of a range have every work-group once") {
    for (const auto& [groups, local] :
         std::vector<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>>{
             {{1}, {64}}, {{7}, {3}}, {{3, 5}, {2, 4}}, {{2, 2, 9}, {4, 1, 2}}, {{700}, {0}}}) {
        NDRange range = range_of(groups, local);
        if (local[0] == 0) range.global[0] = groups[0];  // the driver chooses
        for (const std::size_t parts : {1, 2, 3, 7, 64, 1000}) {
            const std::vector<PartRange> all = split_range(range, parts);
            INFO(groups.size() << " dimensions, " << parts << " parts");
            for (const int count : times(range, all)) CHECK(count == 1);
            std::size_t most = 1;
            for (std::size_t d = 0; d < groups.size(); ++d)
                most *= local[0] == 0 ? (groups[d] + 255) / 256 : groups[d];
            CHECK(all.size() >= std::min(parts, most));
            CHECK(all.size() <= most);
            for (const PartRange& part : all)
                for (std::size_t d = 0; d < groups.size() && local[0] != 0; ++d)
                    CHECK((part.offset[d] % local[d] == 0 && part.global[d] % local[d] == 0));
        }
    }
}

TEST_CASE("Texts that ask how many groups there are stay as they are") {
    CHECK_FALSE(can_be_split("size_t n = get_num_groups(0);"));
    CHECK_FALSE(can_be_split("size_t n = get_global_size(0), i = get_group_id(0);"));
    CHECK_FALSE(has_group_offsets(with_group_offsets("get_global_size(0) + get_group_id(0)")));
    CHECK_FALSE(has_group_offsets(with_group_offsets("get_global_id(0)")));
    const std::string text = with_group_offsets("int i = get_group_id(0);");
    CHECK(has_group_offsets(text));
    CHECK(with_group_offsets("int i = get_group_id(0);") == text);
}

TEST_CASE("Only launches beyond the limit are split, and their results have the same bits") {
    for (const Context& device : opencl_contexts()) {
        INFO(device.info().name);
        const auto [whole, one] = run_places(device, 100);
        CHECK(one == 1);  // without the trait
        const testing::Variable limit("DLPRIM_TRAITS", "launch_ms=500");
        const Context limited(device.info().id);
        CHECK(launch_limit(Access::impl(limited).queue()) == 0.5);
        for (const auto& [seconds, least] :
             {std::pair{0.4, 1u}, {0.7, 2u}, {3.0, 6u}, {100.0, 35u}}) {
            const auto [values, launches] = run_places(limited, seconds);
            CHECK(values == whole);
            CHECK(launches >= least);
            CHECK((launches == 1 || seconds > 0.5));
        }
        for (std::size_t i = 0; i < whole.size(); ++i)
            REQUIRE(whole[i] == 1000000 + static_cast<double>(i / 20 * 1000 + i % 20));
        // With the macro in front, its kernels are not joined with others.
        const KernelCall call(Access::impl(limited).build({"places", places, ""}), "places",
                              range_of({5, 7}, {4, 2}));
        CHECK_FALSE(kernel_function(call).has_value());
    }
}
