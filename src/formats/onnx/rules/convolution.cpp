// SPDX-License-Identifier: MIT
// Convolutions, with padding that may differ on all sides.
#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

namespace {

Ints sizes_behind(const Shape& shape, int first) {
    const Ints all = shape.to_vector();
    return {all.begin() + std::min(first, shape.rank()), all.end()};
}

Attrs options(Call& call, const Windows& windows, std::int64_t channels_in,
              std::int64_t channels_out, std::int64_t groups) {
    return {{"channels_in", channels_in}, {"channels_out", channels_out},
            {"groups", groups},           {"bias", call.has(2)},
            {"kernel", windows.kernel},   {"stride", windows.stride},
            {"dilate", windows.dilation}, {"pad", windows.pad}};
}

std::vector<Ref> params(Call& call, int dims) {
    std::vector<Ref> result{dims == 1 ? as_image(call, call.in(1)) : call.in(1)};
    if (call.has(2)) result.push_back(call.in(2));
    return result;
}

void convolution(Call& call) {
    const Shape &x = call.shape(0), &weight = call.shape(1);
    const std::int64_t groups = call.integer("group", 1);
    call.check(x.rank() == weight.rank() && x.rank() >= 3, "an input of shape ", x.str(),
               " and a weight of shape ", weight.str(), " do not fit");
    call.check(groups >= 1 && groups <= x[1], groups, " groups of ", x[1], " channels");
    call.check(x[1] == weight[1] * groups, "the input has ", x[1], " channels, a weight of shape ",
               weight.str(), " and ", groups, groups == 1 ? " group" : " groups", " want ",
               weight[1] * groups);
    const Windows windows(call, x, sizes_behind(weight, 2));
    check_flat(call, windows, x);
    const Ref y = call.build.add1("Convolution2D", {as_image(call, call.in(0))},
                                  options(call, windows, x[1], weight[0], groups),
                                  params(call, windows.dims));
    call.set(0, from_image(call, y, windows.dims));
}

/// Padding of a transposed convolution whose output's size is given: as the definition has it.
void settle_output(Call& call, Windows& windows, const Shape& x, Ints& output_pad) {
    const auto count = static_cast<std::size_t>(windows.dims);
    const Ints sizes = call.integers("output_shape");
    if (sizes.empty() && !windows.same_upper && !windows.same_lower) return;
    call.check(sizes.empty() || sizes.size() >= count, "output_shape has ", sizes.size(),
               " entries");
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t k = i + 2 - count;  // of [height, width]
        const std::int64_t size = x[static_cast<int>(i) + 2], stride = windows.stride[k];
        const std::int64_t wanted = sizes.empty() ? size * stride : sizes[sizes.size() - count + i];
        call.check(wanted >= 1 && wanted < (std::int64_t{1} << 31), "an output of size ", wanted);
        const std::int64_t all = stride * (size - 1) + output_pad[k] +
                                 (windows.kernel[k] - 1) * windows.dilation[k] + 1 - wanted;
        call.supports(all >= 0, "an output of size ", wanted, " needs padding of ", all);
        windows.pad[k] = windows.same_upper ? all / 2 : all - all / 2;
        windows.pad[k + 2] = all - windows.pad[k];
    }
}

void transposed_convolution(Call& call) {
    const Shape &x = call.shape(0), &weight = call.shape(1);
    const std::int64_t groups = call.integer("group", 1);
    call.check(x.rank() == weight.rank() && x.rank() >= 3 && x[1] == weight[0],
               "an input of shape ", x.str(), " and a weight of shape ", weight.str(),
               " do not fit");
    call.check(groups >= 1 && groups <= x[1], groups, " groups of ", x[1], " channels");
    Windows windows(call, x, sizes_behind(weight, 2), true);
    check_flat(call, windows, x);
    Ints output_pad =
        call.integers("output_padding", Ints(static_cast<std::size_t>(windows.dims), 0));
    call.check(output_pad.size() == static_cast<std::size_t>(windows.dims), "output_padding has ",
               output_pad.size(), " entries");
    if (windows.dims == 1) output_pad.insert(output_pad.begin(), 0);
    settle_output(call, windows, x, output_pad);
    Attrs all = options(call, windows, x[1], weight[1] * groups, groups);
    all.set("output_pad", output_pad);
    const Ref y = call.build.add1("TransposedConvolution2D", {as_image(call, call.in(0))}, all,
                                  params(call, windows.dims));
    call.set(0, from_image(call, y, windows.dims));
}

const Rule rules[] = {{"Conv", 1, convolution}, {"ConvTranspose", 1, transposed_convolution}};

}  // namespace

std::span<const Rule> convolution_rules() {
    return rules;
}

}  // namespace dlprim::onnx
