// SPDX-License-Identifier: MIT
// Shelf.
#include "collective/devices/shelf.hpp"

#include "collective/devices/places.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

Tensor Shelf::view(const Context& context, std::size_t rank, std::uint64_t byte, std::int64_t count,
                   DType dtype) const {
    return Access::tensor(context, peer_->in(rank), begin_ + byte, Shape{count}, dtype);
}

void Shelf::put(const Context& context, std::size_t rank, const Tensor& from,
                std::uint64_t byte) const {
    Queue& queue = Access::impl(context).queue();
    if (is_reached())
        queue.copy(place_of(from), {peer_->in(rank).get(), begin_ + byte}, from.bytes());
    else
        queue.read(place_of(from), host_.data() + byte, from.bytes(), false);
}

void Shelf::get(const Context& context, std::size_t rank, std::uint64_t byte,
                const Tensor& to) const {
    Queue& queue = Access::impl(context).queue();
    if (is_reached())
        queue.copy({peer_->in(rank).get(), begin_ + byte}, place_of(to), to.bytes());
    else
        queue.write(place_of(to), host_.data() + byte, to.bytes(), false);
}

}  // namespace dlprim
