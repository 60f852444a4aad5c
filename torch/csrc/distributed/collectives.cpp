// SPDX-License-Identifier: MIT
#include "distributed/collectives.hpp"

#include "device/errors.hpp"
#include "memory/pinned.hpp"
#include "memory/view.hpp"

#include <algorithm>
#include <numeric>

namespace dlprim_torch {
namespace {

std::int64_t size_of(const at::Tensor& tensor) {
    return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

/// Copies the tensor's elements, row-major, to as many bytes of the host. Waits for the device.
void to_host(const at::Tensor& tensor, const at::Tensor& bytes) {
    const at::Tensor values = tensor.resolve_conj().resolve_neg();
    if (values.numel() == 0) return;
    if (values.is_cpu()) {
        bytes.copy_(values.contiguous().view({-1}).view(at::kByte));
        return;
    }
    const dp::Tensor source = bits_of(values);
    translated([&] { source.copy_to_host(bytes.mutable_data_ptr(), bytes.nbytes()); }, true);
}

at::Tensor to_host(const at::Tensor& tensor) {
    at::Tensor bytes = pinned_bytes(size_of(tensor));
    to_host(tensor, bytes);
    return bytes;
}

void from_host(const at::Tensor& bytes, const at::Tensor& tensor) {
    if (tensor.numel() > 0) tensor.copy_(bytes.view(tensor.scalar_type()).view(tensor.sizes()));
}

/// All tensors' elements behind each other.
at::Tensor to_host(const Tensors& tensors) {
    std::int64_t all = 0;
    for (const at::Tensor& tensor : tensors) all += size_of(tensor);
    at::Tensor bytes = pinned_bytes(all);
    std::int64_t from = 0;
    for (const at::Tensor& tensor : tensors) {
        to_host(tensor, bytes.narrow(0, from, size_of(tensor)));
        from += size_of(tensor);
    }
    return bytes;
}

void from_host(const at::Tensor& bytes, const Tensors& tensors) {
    std::int64_t from = 0;
    for (const at::Tensor& tensor : tensors) {
        from_host(bytes.narrow(0, from, size_of(tensor)), tensor);
        from += size_of(tensor);
    }
}

/// a = a op b
void combine(at::Tensor& a, const at::Tensor& b, Reduction reduction) {
    switch (reduction) {
        case Reduction::PRODUCT:
            a.mul_(b);
            break;
        case Reduction::MIN:
            at::minimum_out(a, a, b);
            break;
        case Reduction::MAX:
            at::maximum_out(a, a, b);
            break;
        case Reduction::BAND:
            a.bitwise_and_(b);
            break;
        case Reduction::BOR:
            a.bitwise_or_(b);
            break;
        case Reduction::BXOR:
            a.bitwise_xor_(b);
            break;
        default:
            a.add_(b);
    }
}

/// Reduces the rows of `parts`, one for each rank, by a binary tree over their indices.
at::Tensor reduce_rows(const at::Tensor& parts, Reduction reduction) {
    Tensors rows = parts.unbind(0);
    for (std::size_t step = 1; step < rows.size(); step *= 2)
        for (std::size_t i = 0; i + step < rows.size(); i += 2 * step)
            combine(rows[i], rows[i + step], reduction);
    if (reduction == Reduction::AVG) rows[0].div_(static_cast<std::int64_t>(rows.size()));
    return rows[0];
}

/// Reduces rows of `like`'s type that lie on the host: on the device, and complex numbers, for
/// which it has no arithmetic, on the host.
at::Tensor reduce_bytes(const at::Tensor& bytes, std::int64_t ranks, const at::Tensor& like,
                        Reduction reduction) {
    const at::Tensor parts = bytes.view(like.scalar_type()).view({ranks, -1});
    return reduce_rows(like.is_complex() ? parts : parts.to(like.device()), reduction);
}

/// The sums of this rank's slice, as bytes of the host. Slices are equally long: the last ones have
/// zeros behind the tensor's elements.
at::Tensor reduced_slice(Exchange& exchange, const at::Tensor& tensor, Reduction reduction) {
    const auto size = static_cast<std::int64_t>(tensor.element_size());
    const std::int64_t slice = (tensor.numel() + exchange.size() - 1) / exchange.size() * size;
    at::Tensor own = pinned_bytes(slice * exchange.size());
    own.narrow(0, size_of(tensor), own.numel() - size_of(tensor)).zero_();
    to_host(tensor, own.narrow(0, 0, size_of(tensor)));
    const at::Tensor parts = pinned_bytes(own.numel());
    exchange.all_to_all(own, parts);
    return to_host(reduce_bytes(parts, exchange.size(), tensor, reduction));
}

Terms terms_of(const at::Tensor& values, Reduction reduction, int root = -1) {
    return {.reduction = reduction, .root = root, .values = values};
}

}  // namespace

void check_reduction(Reduction reduction, const at::Tensor& tensor) {
    TORCH_CHECK_NOT_IMPLEMENTED(reduction <= Reduction::BXOR,
                                "The backend \"ocl\" has no PREMUL_SUM. Multiply the tensor and "
                                "take ReduceOp.SUM instead.");
    const bool whole = at::isIntegralType(tensor.scalar_type(), true);
    TORCH_CHECK_TYPE(whole || reduction < Reduction::BAND,
                     "ReduceOp.BAND, BOR and BXOR are for integers, not for ", tensor.scalar_type(),
                     ".");
    TORCH_CHECK_TYPE(!whole || reduction != Reduction::AVG,
                     "ReduceOp.AVG is for floating-point numbers, not for ", tensor.scalar_type(),
                     ". Take ReduceOp.SUM and divide.");
    const bool ordered = reduction == Reduction::MIN || reduction == Reduction::MAX;
    TORCH_CHECK_TYPE(!tensor.is_complex() || !ordered,
                     "Complex numbers have no minimum and no maximum.");
}

void all_reduce(Exchange& exchange, const Prepared& prepared, Reduction reduction) {
    const at::Tensor& tensor = prepared.tensor;
    Terms terms = terms_of(tensor, reduction);
    terms.shares = HostWay::can_reduce(tensor, reduction);
    const bool shared = exchange.agree(terms);
    if (tensor.numel() == 0 || exchange.size() == 1) return;
    if (shared) return exchange.all_reduce(prepared, reduction);
    const at::Tensor slice = reduced_slice(exchange, tensor, reduction);
    const at::Tensor all = pinned_bytes(slice.numel() * exchange.size());
    exchange.all_gather(slice, all);
    from_host(all.narrow(0, 0, size_of(tensor)), tensor);
}

void reduce(Exchange& exchange, const at::Tensor& tensor, Reduction reduction, int root) {
    exchange.agree(terms_of(tensor, reduction, root));
    if (tensor.numel() == 0 || exchange.size() == 1) return;
    const at::Tensor slice = reduced_slice(exchange, tensor, reduction);
    const bool here = exchange.rank() == root;
    const at::Tensor all = here ? pinned_bytes(slice.numel() * exchange.size()) : at::Tensor();
    exchange.gather(slice, all, root);
    if (here) from_host(all.narrow(0, 0, size_of(tensor)), tensor);
}

void reduce_scatter(Exchange& exchange, const Tensors& inputs, const at::Tensor& output,
                    Reduction reduction) {
    exchange.agree(terms_of(output, reduction));
    if (output.numel() == 0) return;
    const at::Tensor own = to_host(inputs);
    const at::Tensor parts = pinned_bytes(own.numel());
    exchange.all_to_all(own, parts);
    output.copy_(reduce_bytes(parts, exchange.size(), output, reduction).view(output.sizes()));
}

void broadcast(Exchange& exchange, const Prepared& prepared, int root) {
    const at::Tensor& tensor = prepared.tensor;
    Terms terms = terms_of(tensor, Reduction::UNUSED, root);
    terms.shares = true;
    const bool shared = exchange.agree(terms);
    if (tensor.numel() == 0) return;
    if (shared) return exchange.broadcast(prepared, root);
    const bool here = exchange.rank() == root;
    const at::Tensor bytes = here ? to_host(tensor) : pinned_bytes(size_of(tensor));
    exchange.broadcast(bytes, root);
    if (!here) from_host(bytes, tensor);
}

void all_gather(Exchange& exchange, const Prepared& input, const std::vector<Prepared>& outputs) {
    const at::Tensor& own = input.tensor;
    Terms terms = terms_of(own, Reduction::UNUSED);
    terms.shares = HostWay::can_gather(input, outputs);
    const bool shared = exchange.agree(terms);
    if (own.numel() == 0) return;
    if (shared) return exchange.all_gather(input, outputs);
    const at::Tensor all = pinned_bytes(size_of(own) * exchange.size());
    exchange.all_gather(to_host(own), all);
    Tensors results;
    for (const Prepared& output : outputs) results.push_back(output.tensor);
    from_host(all, results);
}

void gather(Exchange& exchange, const at::Tensor& input, const Tensors& outputs, int root) {
    exchange.agree(terms_of(input, Reduction::UNUSED, root));
    const bool here = exchange.rank() == root;
    const at::Tensor all = here ? pinned_bytes(size_of(input) * exchange.size()) : at::Tensor();
    exchange.gather(to_host(input), all, root);
    if (here) from_host(all, outputs);
}

void scatter(Exchange& exchange, const Tensors& inputs, const at::Tensor& output, int root) {
    exchange.agree(terms_of(output, Reduction::UNUSED, root));
    const at::Tensor own = pinned_bytes(size_of(output));
    exchange.scatter(exchange.rank() == root ? to_host(inputs) : at::Tensor(), own, root);
    from_host(own, output);
}

void all_to_all(Exchange& exchange, const Tensors& inputs, const Tensors& outputs) {
    // Ranks give different numbers of elements, and have to agree on the type alone.
    exchange.agree({.values = inputs.front().new_empty({0})});
    std::vector<std::int64_t> sends;
    std::vector<std::int64_t> receives;
    std::transform(inputs.begin(), inputs.end(), std::back_inserter(sends), size_of);
    std::transform(outputs.begin(), outputs.end(), std::back_inserter(receives), size_of);
    const at::Tensor all =
        pinned_bytes(std::accumulate(receives.begin(), receives.end(), std::int64_t(0)));
    exchange.all_to_all(to_host(inputs), sends, all, receives);
    from_host(all, outputs);
}

void send(Exchange& exchange, const at::Tensor& tensor, int to, int tag) {
    exchange.send(to_host(tensor), tensor, to, tag);
}

int receive(Exchange& exchange, const at::Tensor& tensor, int from, int tag) {
    from_host(exchange.receive(tensor, from, tag), tensor);
    return from;
}

}  // namespace dlprim_torch
