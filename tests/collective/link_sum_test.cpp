// SPDX-License-Identifier: MIT
// link_sum: sums that go to several vectors, by the kernel for links between GPUs and by Pointwise.
#include "exec/link_sum.hpp"
#include "collective/devices/second_queue.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"

#include <cstdlib>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// `count` floats of a tensor from element `first` on.
Tensor part(const Tensor& whole, std::int64_t first, std::int64_t count) {
    return elements_of(whole.context(), whole, first, count);
}

void check_sums(const Context& context) {
    INFO(context.info().str());
    const AddPair sum = link_sum();
    for (const std::int64_t count : {1, 3, 4, 1030, 40000, 100003})
        for (const std::int64_t first : {0, 64, 65})  // 65: not at a multiple of 16 bytes
            for (const double factor : {1.0, 0.25, 1.0 / 3}) {
                INFO(count << " floats from element " << first << ", factor " << factor);
                const auto size = static_cast<std::size_t>(first + count + 5);
                const std::vector<float> a = random_floats(size, 1), b = random_floats(size, 2);
                Tensor left(context, Shape{first + count + 5}, DType::f32);
                Tensor right(context, left.shape(), DType::f32);
                Tensor third(context, left.shape(), DType::f32);
                left.copy_from(a);
                right.copy_from(b);
                third.fill(7);
                std::vector<float> in_left = a, in_third(size, 7.0f);
                for (auto i = static_cast<std::size_t>(first); i < size - 5; ++i)
                    in_left[i] = in_third[i] = (a[i] + b[i]) * static_cast<float>(factor);
                sum(part(left, first, count), part(right, first, count),
                    {part(left, first, count), part(third, first, count)}, factor);
                Access::impl(context).queue().finish();
                CHECK((left.to_floats() == in_left));
                CHECK((right.to_floats() == b));
                CHECK((third.to_floats() == in_third));
            }
}

}  // namespace

TEST_CASE("sums go to several vectors, and nothing around them changes", "[peer]") {
    ON_EVERY_DEVICE(device) {
        check_sums(device);
        if (device.info().kind == DeviceKind::host) return;
        const Variable as_gpu("DLPRIM_TRAITS", "wide_vectors=0");
        check_sums(contexts_like(device, 1).at(0));
    }
}
