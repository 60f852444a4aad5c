// SPDX-License-Identifier: MIT
// Updates at indices, and maxima put back where pooling took them from.
#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

namespace {

/// Of several updates of a place the last one counts, which ONNX leaves open.
void scatter(Call& call, Attrs options) {
    const Ref data = call.in(0), indices = call.in(1), updates = call.in(2);
    const std::string reduction = call.text("reduction", "none");
    call.check(!data->strings || reduction == "none", "strings cannot be reduced");
    options.set("reduction", reduction);
    if (indices->spec.shape.empty() || updates->spec.shape.empty()) return call.set(0, data);
    call.set(0, call.build.add1("Scatter", {data, indices, updates}, options));
}

void scatter_elements(Call& call) {
    const int axis = call.axis(call.integer("axis", 0), call.shape(0).rank());
    scatter(call, {{"mode", "elements"}, {"dim", axis}});
}

void scatter_nd(Call& call) {
    const Shape &data = call.shape(0), &indices = call.shape(1);
    const std::int64_t count = indices.product(0, indices.rank() - 1);
    if (indices.rank() >= 1 && indices[-1] == 0 && count > 0 && !data.empty()) {
        // Each update is of the whole tensor.
        call.supports(call.text("reduction", "none") == "none",
                      "a reduction of whole tensors is not supported");
        Ints sizes = data.to_vector();
        sizes.insert(sizes.begin(), count);
        const Ref all = call.build.reshape(call.in(2), Shape(sizes));
        return call.set(0, call.build.reshape(call.build.slice(all, 0, count - 1, count), data));
    }
    scatter(call, {{"mode", "tuples"}});
}

/// Indices are positions among all elements of the tensor that was pooled. output_shape may add
/// elements behind the last ones of each dimension.
void max_unpool(Call& call) {
    const Ref maxima = call.in(0), indices = call.in(1);
    const Shape& x = maxima->spec.shape;
    call.check(indices->spec.shape == x, "indices have shape ", indices->spec.shape.str(),
               ", the maxima ", x.str());
    const Ints kernel = call.integers("kernel_shape");
    const std::size_t dims = kernel.size();
    call.check(x.rank() >= 3 && static_cast<int>(dims) == x.rank() - 2, "kernel_shape has ", dims,
               " sizes for maxima of shape ", x.str());
    const Ints stride = call.integers("strides", Ints(dims, 1));
    const Ints pads = call.integers("pads", Ints(2 * dims, 0));
    call.check(stride.size() == dims && pads.size() == 2 * dims, "strides and pads have ",
               stride.size(), " and ", pads.size(), " entries for ", dims, " dimensions");
    Ints sizes{x[0], x[1]};
    for (std::size_t i = 0; i < dims; ++i) {
        const std::int64_t most = std::int64_t{1} << 31;
        call.check(kernel[i] >= 1 && kernel[i] < most && stride[i] >= 1 && stride[i] < most &&
                       pads[i] >= 0 && pads[i] < most && pads[i + dims] >= 0 &&
                       pads[i + dims] < most,
                   "a kernel of ", kernel[i], ", a stride of ", stride[i], " and pads of ", pads[i],
                   " and ", pads[i + dims]);
        const std::int64_t in = x[static_cast<int>(i) + 2];
        call.check(in < most, "maxima of shape ", x.str());
        const std::int64_t size = (in - 1) * stride[i] + kernel[i] - pads[i] - pads[i + dims];
        call.check(size >= 1, "pads leave nothing of dimension ", i + 2);
        sizes.push_back(size);
    }
    Builder& build = call.build;
    const Shape pooled(sizes);
    const Shape flat{x.numel()};
    const Ref placed =
        build.add1("Scatter", {build.reshape(indices, flat), build.reshape(maxima, flat)},
                   {{"mode", "elements"}, {"shape", Ints{pooled.numel()}}});
    const Ref whole = build.reshape(placed, pooled);
    if (!call.has(2)) return call.set(0, whole);
    const Ints wanted = call.known_integers(2, "the output's shape");
    call.check(static_cast<int>(wanted.size()) == pooled.rank(), "output_shape has ", wanted.size(),
               " sizes for maxima of shape ", x.str());
    Ints padding;
    for (int i = pooled.rank() - 1; i >= 0; --i) {
        const std::int64_t size = wanted[static_cast<std::size_t>(i)];
        call.check(i < 2 ? size == pooled[i] : size >= pooled[i], "output_shape has ", size,
                   " elements in dimension ", i, ", the maxima need ", pooled[i]);
        padding.push_back(0);
        padding.push_back(size - pooled[i]);
    }
    if (Shape(wanted) == pooled) return call.set(0, whole);
    call.set(0, build.add1("Pad", {whole}, {{"pads", padding}, {"mode", "constant"}}));
}

}  // namespace

std::vector<Rule> scatter_rules() {
    return {
        {"Scatter", 9, scatter_elements, Rule::Strings::moved, 0b101},
        {"ScatterElements", 11, scatter_elements, Rule::Strings::moved, 0b101},
        {"ScatterND", 11, scatter_nd, Rule::Strings::moved, 0b101},
        {"MaxUnpool", 9, max_unpool},
    };
}

}  // namespace dlprim::onnx
