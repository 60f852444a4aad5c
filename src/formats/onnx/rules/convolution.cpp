// SPDX-License-Identifier: MIT
// Convolutions, with padding that may differ on all sides.
#include "formats/onnx/rules/windows.hpp"

#include <algorithm>

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
    call.check(x[1] % groups == 0 && x[1] / groups == weight[1], "the input has ", x[1],
               " channels, which do not fit a weight of shape ", weight.str(), " and ", groups,
               groups == 1 ? " group" : " groups");
    const Windows windows(call, x, sizes_behind(weight, 2));
    check_dims(call, windows, x, 3);
    const Ref y = call.build.add1("Convolution", {as_image(call, call.in(0))},
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
        const std::size_t k = i + windows.kernel.size() - count;  // of [height, width], or of three
        const std::int64_t size = x[static_cast<int>(i) + 2], stride = windows.stride[k];
        const std::int64_t wanted = sizes.empty() ? size * stride : sizes[sizes.size() - count + i];
        call.check(wanted >= 1 && wanted < (std::int64_t{1} << 31), "an output of size ", wanted);
        std::int64_t all = stride * (size - 1) + output_pad[k] +
                           (windows.kernel[k] - 1) * windows.dilation[k] + 1 - wanted;
        if (all < 0) {  // what no window reaches is behind
            output_pad[k] -= all;
            all = 0;
        }
        call.supports(output_pad[k] < std::max(stride, windows.dilation[k]), "an output of size ",
                      wanted, " needs ", output_pad[k], " elements that no window reaches");
        windows.pad[k] = windows.same_upper ? all / 2 : all - all / 2;
        windows.pad[k + windows.kernel.size()] = all - windows.pad[k];
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
    check_dims(call, windows, x, 3);
    Ints output_pad =
        call.integers("output_padding", Ints(static_cast<std::size_t>(windows.dims), 0));
    call.check(output_pad.size() == static_cast<std::size_t>(windows.dims), "output_padding has ",
               output_pad.size(), " entries");
    for (const std::int64_t pad : output_pad)
        call.check(pad >= 0 && pad < (1 << 24), "an output_padding of ", pad);
    if (windows.dims == 1) output_pad.insert(output_pad.begin(), 0);
    settle_output(call, windows, x, output_pad);
    Attrs all = options(call, windows, x[1], weight[1] * groups, groups);
    all.set("output_pad", output_pad);
    const Ref y = call.build.add1("TransposedConvolution", {as_image(call, call.in(0))}, all,
                                  params(call, windows.dims));
    call.set(0, from_image(call, y, windows.dims));
}

/// Adds the elements of all windows at their places: a transposed convolution of the windows'
/// elements as channels with a weight that is 1 at each channel's own place.
void columns_to_image(Call& call) {
    Builder& build = call.build;
    const Shape& x = call.shape(0);
    const Ints image = call.known_integers(1, "the image's sizes"),
               block = call.known_integers(2, "the windows' sizes");
    const std::size_t dims = image.size();
    call.check(x.rank() == 3 && dims == block.size() && dims >= 1, "columns of shape ", x.str(),
               ", ", dims, " sizes of an image and ", block.size(), " of windows do not fit");
    call.supports(dims <= 3, "images of ", dims, " dimensions are not supported");
    std::int64_t elements = 1, count = 1;
    for (const std::int64_t size : block) {
        call.check(size >= 1 && size <= x[1] && elements <= x[1] / size, "windows of size ", size);
        elements *= size;
    }
    call.check(x[1] % elements == 0, x[1], " channels for windows of ", elements, " elements");
    // The places of windows: as many as fit the image and its padding.
    Ints all{1, 1};
    all.insert(all.end(), image.begin(), image.end());
    Windows windows(call, Shape(all), block, true);
    const std::size_t first = windows.kernel.size() - dims, half = windows.kernel.size();
    Ints columns{x[0] * (x[1] / elements), elements}, output_pad(half, 0);
    if (first == 1) columns.push_back(1);
    for (std::size_t i = first; i < half; ++i) {
        const std::int64_t reach = (windows.kernel[i] - 1) * windows.dilation[i] + 1;
        const std::int64_t room = image[i - first] + windows.pad[i] + windows.pad[i + half] - reach;
        call.check(room >= 0, "a window does not fit an image of ", image[i - first], " elements");
        columns.push_back(room / windows.stride[i] + 1);
        output_pad[i] = room % windows.stride[i];
        count *= columns.back();
    }
    call.check(count == x[2], "there are ", x[2], " columns for ", count, " windows");
    Ints sizes{elements, 1};
    sizes.insert(sizes.end(), windows.kernel.begin(), windows.kernel.end());
    build.claim(Shape(sizes), DType::f64);
    std::vector<double> ones(static_cast<std::size_t>(elements * elements), 0);
    for (std::int64_t i = 0; i < elements; ++i)
        ones[static_cast<std::size_t>(i * elements + i)] = 1;
    const Ref weight = build.constant("", host_numbers(Shape(sizes), ones, DType::f32));
    const Ref value = build.reshape(build.cast(call.in(0), DType::f32), Shape(columns));
    const Attrs options{
        {"channels_in", elements},  {"channels_out", 1},        {"bias", false},
        {"kernel", windows.kernel}, {"stride", windows.stride}, {"dilate", windows.dilation},
        {"pad", windows.pad},       {"output_pad", output_pad}};
    const Ref y = build.add1("TransposedConvolution", {value}, options, {weight});
    Ints result{x[0], x[1] / elements};
    result.insert(result.end(), image.begin(), image.end());
    call.set(0, build.cast(build.reshape(y, Shape(result)), call.dtype(0)));
}

}  // namespace

std::vector<Rule> convolution_rules() {
    return {{"Conv", 1, convolution},
            {"ConvTranspose", 1, transposed_convolution},
            {"Col2Im", 18, columns_to_image}};
}

}  // namespace dlprim::onnx
