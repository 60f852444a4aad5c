// SPDX-License-Identifier: MIT
// Strided views in eager calls: as layouts of operands, as keys of plans, as transposed matrices.
#include "exec/eager_views.hpp"

#include "base/text.hpp"
#include "exec/copy_launches.hpp"
#include "exec/element_overlap.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// Kernels read and write up to four elements, and at least 16 bytes, at once through aligned
/// pointers. Code of the host needs no alignment.
bool is_aligned(const Tensor& tensor) {
    const std::uint64_t alignment = std::max<std::uint64_t>(16, 4 * size_of(tensor.dtype()));
    return tensor.byte_offset() % alignment == 0 || Access::impl(tensor.context()).traits().host;
}

bool lies_channels_last(const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    if (shape.rank() != 4) return false;
    const std::int64_t channels = shape[1], row = channels * shape[3];
    const std::int64_t wanted[] = {row * shape[2], 1, row, channels};
    for (int d = 0; d < 4; ++d)
        if (shape[d] != 1 && tensor.strides()[static_cast<std::size_t>(d)] != wanted[d])
            return false;
    return true;
}

/// The strides, with 0 for dimensions of one element, where they do not matter.
std::vector<std::int64_t> settled_strides(const Tensor& tensor) {
    std::vector<std::int64_t> strides = tensor.strides();
    for (int d = 0; d < tensor.shape().rank(); ++d)
        if (tensor.shape()[d] == 1) strides[static_cast<std::size_t>(d)] = 0;
    return strides;
}

std::uint64_t extent_bytes(const Tensor& tensor) {
    if (tensor.shape().empty()) return 0;
    std::int64_t last = 0;
    for (int d = 0; d < tensor.shape().rank(); ++d)
        last += (tensor.shape()[d] - 1) * tensor.strides()[static_cast<std::size_t>(d)];
    return (static_cast<std::uint64_t>(last) + 1) * size_of(tensor.dtype());
}

Shape turned(const Shape& shape) {
    return shape.with(-2, shape[-1]).with(-1, shape[-2]);
}

/// Whether the layout puts the transposes of the last two dimensions row-major.
bool lies_transposed(const Shape& shape, const Layout& layout) {
    if (!layout.is_strided() || shape.rank() < 2) return false;
    Layout other = layout;
    std::swap(other.strides[other.strides.size() - 2], other.strides.back());
    return same_memory(turned(shape), other, Layout::plain());
}

/// The option of MatMul that transposes input `k`, or nothing for other inputs and operators.
const char* transposing_option(const Node& node, std::size_t k) {
    if (node.op->type() != "MatMul" || k > 1) return nullptr;
    return k == 0 ? "transpose_a" : "transpose_b";
}

/// Whether the node converts its input element by element, wherever the elements lie.
bool is_conversion(const Node& node) {
    return node.op->type() == "Cast";
}

/// Whether only MatMul reads the value, or conversions that only MatMul reads.
bool may_turn(const Graph& graph, ValueId id) {
    for (const auto& output : graph.outputs)
        if (output.first == id) return false;
    for (const auto& gradient : graph.gradients)
        if (gradient.second == id) return false;
    for (const Assignment& assignment : graph.assignments)
        if (assignment.source == id) return false;
    for (const Node& node : graph.nodes) {
        if (node.removed) continue;
        for (std::size_t k = 0; k < node.inputs.size(); ++k)
            if (node.inputs[k] == id && transposing_option(node, k) == nullptr &&
                !(is_conversion(node) && may_turn(graph, node.outputs[0])))
                return false;
    }
    return true;
}

/// Transposes the value and what is converted from it, and has the products read them so.
void turn(Graph& graph, ValueId id) {
    graph.value(id).spec.shape = turned(graph.shape(id));
    for (Node& node : graph.nodes) {
        if (node.removed) continue;
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            if (node.inputs[k] != id) continue;
            if (const char* const option = transposing_option(node, k))
                node.attrs.set(option, !node.attrs.boolean(option));
            else
                turn(graph, node.outputs[0]);
        }
    }
}

}  // namespace

bool is_view(const Tensor& tensor) {
    return !tensor.contiguous() || !is_aligned(tensor);
}

EagerOperand operand_of(const Tensor& tensor) {
    const bool view = is_view(tensor);
    return {Access::buffer(tensor), tensor.byte_offset(), nullptr,
            view ? extent_bytes(tensor) : tensor.bytes(), view ? &tensor : nullptr};
}

Layout layout_of(const Tensor& tensor) {
    const bool aligned = is_aligned(tensor);
    if (aligned && tensor.contiguous()) return Layout::plain();
    if (aligned && lies_channels_last(tensor)) return Layout::channels_last();
    return Layout::strided(settled_strides(tensor), aligned);
}

Layout layout_of(const EagerOperand& operand) {
    if (operand.view != nullptr) return layout_of(*operand.view);
    return operand.layout == nullptr ? Layout::plain() : *operand.layout;
}

void append_view(std::string& key, const Tensor& tensor) {
    key += is_aligned(tensor) ? 'v' : 'u';
    key += static_cast<char>(tensor.shape().rank());
    for (int d = 0; d < tensor.shape().rank(); ++d) {
        const std::int64_t stride =
            tensor.shape()[d] == 1 ? 0 : tensor.strides()[static_cast<std::size_t>(d)];
        key.append(reinterpret_cast<const char*>(&stride), sizeof(stride));
    }
}

std::span<const EagerOperand> gather_written(const Context& context, const EagerEntry& entry,
                                             std::span<const EagerOperand> operands,
                                             std::vector<EagerOperand>& gathered) {
    const auto is_view = [&](std::size_t i) { return operands[i].view != nullptr; };
    if (std::none_of(entry.written.begin(), entry.written.end(), is_view)) return operands;
    gathered.assign(operands.begin(), operands.end());
    for (const std::size_t i : entry.written) {
        if (!is_view(i)) continue;
        const Tensor& view = *operands[i].view;
        EagerOperand copy{Access::impl(context).allocate_cached(view.bytes()), 0, nullptr,
                          view.bytes()};
        enqueue_copy(context, view.shape(), size_of(view.dtype()),
                     {operands[i].buffer, operands[i].byte_offset, view.strides()},
                     {copy.buffer, 0, view.shape().strides()});
        gathered[i] = std::move(copy);
    }
    return gathered;
}

void check_strided_out(const EagerCall& call, std::size_t index) {
    const Tensor& out = call.how.out[index];
    require(!overlaps_itself(out.shape(), out.strides()), call.type, ": out tensor ", index,
            " is a view in which several elements are the same memory");
}

void turn_matrices(Graph& graph, std::map<ValueId, Layout>& layouts) {
    for (auto found = layouts.begin(); found != layouts.end();) {
        const auto [id, layout] = *found;
        if (!lies_transposed(graph.shape(id), layout) || !may_turn(graph, id)) {
            ++found;
            continue;
        }
        turn(graph, id);
        found = layouts.erase(found);
    }
}

}  // namespace dlprim
