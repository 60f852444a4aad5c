// SPDX-License-Identifier: MIT
// Copies between tensors of any strides and types, and the members of Tensor that need a launch.
//
// Elements of the same type are moved by one strided copy. Others are converted by the operator
// Cast, which works on memory without gaps: before it, a strided source is gathered, and after it
// the result is scattered.
#include "base/text.hpp"
#include "exec/copy_launches.hpp"
#include "exec/element_overlap.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/launches_later.hpp"
#include "runtime/put_off_calls.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

namespace dlprim {

namespace {

StridedPlace place_of(const Tensor& tensor) {
    return {Access::buffer(tensor), tensor.byte_offset(), tensor.strides()};
}

/// The copy of a tensor in new memory from the pool.
Tensor gathered(const Tensor& from) {
    const Context& context = from.context();
    Tensor made = Access::tensor(context, Access::impl(context).allocate_cached(from.bytes()), 0,
                                 from.shape(), from.dtype());
    enqueue_copy(context, from.shape(), size_of(from.dtype()), place_of(from), place_of(made));
    return made;
}

void copy_through_host(const Tensor& from, const Tensor& to) {
    std::vector<std::byte> read(from.bytes());
    from.copy_to_host(read.data(), read.size());
    Tensor target = to;
    if (from.dtype() == to.dtype()) return target.copy_from_host(read.data(), read.size());
    std::vector<std::byte> converted(to.bytes());
    convert(read.data(), from.dtype(), converted.data(), to.dtype(),
            static_cast<std::size_t>(to.shape().numel()));
    target.copy_from_host(converted.data(), converted.size());
}

/// Copies elements of the same type.
void move_elements(const Tensor& from, const Tensor& to) {
    const std::size_t element = size_of(to.dtype());
    // Asked for before the target's memory: all of that may be about to be overwritten.
    StridedPlace source = place_of(from);
    StridedPlace target{Access::overwritten(to), to.byte_offset(), to.strides()};
    if (may_overlap(source, target, to.shape(), element)) {
        if (first_byte(source) == first_byte(target) && source.strides == target.strides) return;
        source = place_of(gathered(from));
    }
    const LaunchesLater later("copy");
    Queue& queue = Access::impl(to.context()).queue();
    if (!from.contiguous() || !to.contiguous())
        return enqueue_copy(to.context(), to.shape(), element, source, target);
    const auto copy = [&queue, source, target, bytes = to.bytes()] {
        queue.copy({source.buffer.get(), source.byte_offset},
                   {target.buffer.get(), target.byte_offset}, bytes);
    };
    if (!put_off_after_others(queue, "copy", copy)) copy();
}

/// The order of dimensions by descending strides of `tensor`, in which it has no gaps if it has
/// none in any order.
std::vector<int> memory_order(const Tensor& tensor) {
    std::vector<int> order(static_cast<std::size_t>(tensor.shape().rank()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return tensor.strides()[static_cast<std::size_t>(a)] >
               tensor.strides()[static_cast<std::size_t>(b)];
    });
    return order;
}

/// The same elements without repetitions: dimensions of stride 0 have size 1.
Tensor without_repetitions(const Tensor& tensor) {
    Tensor once = tensor;
    for (int d = 0; d < tensor.shape().rank(); ++d)
        if (tensor.strides()[static_cast<std::size_t>(d)] == 0 && tensor.shape()[d] > 1)
            once = once.slice(d, 0, 1);
    return once;
}

void convert_elements(const Tensor& from, const Tensor& to) {
    const std::vector<int> order = memory_order(to);
    const Tensor target = to.permute(order);
    const Tensor once = without_repetitions(from.permute(order)).to_contiguous();
    const ops::Cast cast{.dtype = to.dtype()};
    if (target.contiguous() && once.shape() == target.shape()) {
        ops::call(cast, {once}, {}, {.out = {target}});
        return;
    }
    move_elements(ops::call(cast, {once}).at(0).expand(target.shape()), target);
}

}  // namespace

namespace ops {

void copy(const Tensor& from, const Tensor& to) {
    require(from.defined() && to.defined(), "copy() got an empty tensor");
    const Tensor source = from.shape() == to.shape() ? from : from.expand(to.shape());
    if (overlaps_itself(to.shape(), to.strides()))
        fail(ErrorKind::invalid_argument, "copy() got a view of shape ", to.shape().str(),
             " to write to, in which several elements are the same memory");
    if (to.shape().empty()) return;
    if (source.context() != to.context()) return copy_through_host(source, to);
    if (source.dtype() == to.dtype())
        move_elements(source, to);
    else
        convert_elements(source, to);
    const LaunchesLater later("copy");
    Access::impl(to.context()).queue().flush();
}

}  // namespace ops

Tensor Tensor::to_contiguous() const {
    require(defined(), "an undefined tensor holds no elements");
    return contiguous() ? *this : gathered(*this);
}

void Tensor::fill(double value) {
    require(defined(), "an undefined tensor holds no elements");
    if (shape_.empty()) return;
    std::array<std::byte, 8> pattern{};
    const std::size_t element = size_of(dtype_);
    convert(&value, DType::f64, pattern.data(), dtype_, 1);
    ContextImpl& context = Access::impl(*context_);
    const LaunchesLater later("fill");
    const auto fill = [&](const std::shared_ptr<Buffer>& memory, std::uint64_t offset,
                          std::uint64_t size) {
        const auto call = [&queue = context.queue(), memory, offset, size, pattern, element] {
            queue.fill({memory.get(), offset}, size, pattern.data(), element);
        };
        if (!put_off_after_others(context.queue(), "fill", call)) call();
    };
    if (contiguous()) return fill(overwritten(), byte_offset_, bytes());
    const StridedPlace one{context.allocate_cached(element), 0,
                           std::vector<std::int64_t>(strides_.size(), 0)};
    fill(one.buffer, 0, element);
    enqueue_copy(*context_, shape_, element, one, place_of(*this));
}

}  // namespace dlprim
