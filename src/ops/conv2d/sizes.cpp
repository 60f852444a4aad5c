// SPDX-License-Identifier: MIT
// Sizes: reads and checks the options of convolutions of images of one to three dimensions.
#include "ops/conv2d/sizes.hpp"

#include "base/text.hpp"
#include "graph/image_options.hpp"

#include <cmath>

namespace dlprim::conv2d {

Sizes::Sizes(const Attrs& attrs, const Shape& x, bool is_transposed)
    : transposed(is_transposed), dims(dims_of_images(x)) {
    batch = x[0];
    in = x[1];
    out = attrs.integer("channels_out");
    groups = attrs.integer("groups");
    bias = attrs.boolean("bias");
    require(in >= 1, "input ", x, " has no channels");
    const std::int64_t wanted = attrs.integer("channels_in");
    require(wanted < 0 || wanted == in, "input ", x, " has ", in, " channels, channels_in says ",
            wanted);
    require(in % groups == 0 && out % groups == 0, in, " input and ", out,
            " output channels do not divide into ", groups, " groups");
    for (int i = 0; i < dims; ++i) {
        require(!transposed || x[2 + i] < (std::int64_t{1} << 31), "input ", x, " is too large");
        Axis& axis = axes[axes.size() - static_cast<std::size_t>(dims - i)];
        (transposed ? axis.small : axis.large) = x[2 + i];
    }
    read(attrs);
}

void Sizes::read(const Attrs& attrs) {
    const Ints kernel = sizes_of_dims(attrs, "kernel", dims),
               stride = sizes_of_dims(attrs, "stride", dims),
               dilate = sizes_of_dims(attrs, "dilate", dims);
    const auto count = static_cast<std::size_t>(dims);
    const bool two_sided = attrs.ints("pad").size() == 2 * count;
    const Ints pad = two_sided ? attrs.ints("pad") : sizes_of_dims(attrs, "pad", dims);
    const Ints added = transposed ? sizes_of_dims(attrs, "output_pad", dims) : Ints(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
        Axis& a = axes[3 - count + i];
        a.kernel = kernel[i];
        a.stride = stride[i];
        a.dilate = dilate[i];
        a.pad = pad[i];
        a.pad_end = pad[two_sided ? i + count : i];
        a.output_pad = added[i];
        const std::int64_t reach = a.dilate * (a.kernel - 1) + 1;
        if (transposed) {
            require(added[i] == 0 || added[i] < std::max(a.stride, a.dilate), "output_pad is ",
                    added[i], "; it must be less than the stride, ", a.stride,
                    ", or the dilation, ", a.dilate);
            a.large = (a.small - 1) * a.stride + reach - a.pad - a.pad_end + added[i];
            require(a.large >= 1, "pad ", a.pad, " leaves nothing of the output");
        } else {
            const std::int64_t room = a.large + a.pad + a.pad_end - reach;
            require(room >= 0, "a kernel that reaches over ", reach,
                    " elements does not fit into an image of ", a.large, " padded by ", a.pad,
                    " and ", a.pad_end);
            a.small = room / a.stride + 1;
        }
    }
}

Ints Sizes::list(std::int64_t Axis::*member, int count) const {
    Ints result;
    for (std::size_t i = static_cast<std::size_t>(3 - count); i < 3; ++i)
        result.push_back(axes[i].*member);
    return result;
}

Shape Sizes::weight() const {
    Ints all{transposed ? in : out, (transposed ? out : in) / groups};
    for (const std::int64_t size : list(&Axis::kernel, dims)) all.push_back(size);
    return Shape(all);
}

Shape Sizes::output() const {
    Ints all{batch, out};
    for (const std::int64_t size : list(transposed ? &Axis::large : &Axis::small, dims))
        all.push_back(size);
    return Shape(all);
}

double Sizes::products() const {
    const std::int64_t of_group = out / groups;
    double result = static_cast<double>(batch * in) * static_cast<double>(of_group);
    for (const Axis& axis : axes) result *= static_cast<double>(axis.small * axis.kernel);
    return result;
}

std::vector<ParamSpec> params(const Sizes& sizes, DType dtype) {
    const Shape weight = sizes.weight();
    const std::int64_t fan_in = weight.product(1, weight.rank());
    const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
    ParamSpec spec{{weight, dtype}, Init::uniform(bound), true};
    spec.init.fan_in = fan_in;
    spec.init.fan_out = weight[0] * weight.product(2, weight.rank());
    std::vector<ParamSpec> all{spec};
    if (sizes.bias) all.push_back({{Shape{sizes.out}, dtype}, Init::uniform(bound), true});
    return all;
}

}  // namespace dlprim::conv2d
