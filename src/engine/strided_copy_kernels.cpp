// SPDX-License-Identifier: MIT
// Strided and padded copies on OpenCL: chooses among the kernels of kernels/engine/strided_copy.cl.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/strided_copy.hpp"
#include "engine/strided_copy_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace dlprim {

namespace {

constexpr int rank = Shape::max_rank;

/// The values padded to eight entries with `fill` in front.
Ints padded(const Ints& values, std::int64_t fill) {
    Ints result(static_cast<std::size_t>(rank) - values.size(), fill);
    result.insert(result.end(), values.begin(), values.end());
    return result;
}

struct KernelOptions {
    std::size_t element_bytes = 4;
    std::size_t dims = 1;
    std::int64_t count = 0;
    int vector = 1, tile = 16, mode = 0;
    bool wide = false;
};

std::shared_ptr<Program> program(ContextImpl& context, const KernelOptions& o) {
    // Only a few variants exist. A rank in between uses the next one, with further dimensions of
    // size 1.
    const int dims = o.dims <= 2 ? 2 : o.dims <= 4 ? 4 : rank;
    ProgramSource source;
    source.name = strided_copy_source;
    source.source = kernel_source(strided_copy_source);
    source.options = cat("-DT=", raw_type(o.element_bytes), " -DRANK=", dims,
                         " -DINDEX=", o.count < (std::int64_t{1} << 31) ? "uint" : "ulong",
                         " -DVECTOR=", o.vector, " -DWIDE=", o.wide ? 1 : 0, " -DTILE=", o.tile,
                         " -DMODE=", o.mode);
    return context.build(source);
}

void set_sizes(KernelCall& call, char letter, const Ints& values, std::int64_t fill) {
    const Ints all = padded(values, fill);
    for (int d = 0; d < rank; ++d)
        call.scalar(cat(letter, d), std::int64_t{all[static_cast<std::size_t>(d)]});
}

/// A work-group of at most 256 items, limited by the device.
std::size_t group_size(const Traits& traits) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(traits.max_work_group, 1, 256));
}

}  // namespace

void add_copy(KernelLaunch& launch, ContextImpl& context, const StridedCopy& whole, int x, int y) {
    StridedCopy copy = merged(whole);
    const Traits& traits = context.traits();
    const std::int64_t elements = product_of(copy.sizes, copy.sizes.size());
    if (elements == 0) return;
    std::optional<Transposition> tiles;
    if (traits.wide_vectors || group_size(traits) >= 16)
        tiles = transposition(copy, !traits.wide_vectors);
    if (tiles) copy = tiles->copy;
    const std::size_t n = copy.sizes.size();
    KernelOptions options;
    options.element_bytes = copy.element_bytes;
    options.dims = n;
    options.wide = traits.wide_vectors;
    options.count = elements;

    std::string_view kernel;
    NDRange range;
    std::int64_t count = options.count, rows = 1;
    if (tiles) {
        kernel = "copy_tiles";
        // The tile with its extra column must fit into local memory, and edge x 4 items into a
        // work-group.
        const std::size_t group = group_size(traits);
        options.tile =
            traits.wide_vectors || group < 128 || 32 * 33 * copy.element_bytes > traits.local_bytes
                ? 16
                : 32;
        const std::size_t edge = to_size(options.tile);
        std::size_t width = edge,
                    lines = std::max<std::size_t>(1, std::min<std::size_t>(8, group / edge));
        if (traits.wide_vectors) width = lines = 1;
        range = {3,
                 {to_size(ceil_div(copy.sizes[n - 1], options.tile)) * width,
                  to_size(ceil_div(copy.sizes[n - 2], options.tile)) * lines,
                  to_size(product_of(copy.sizes, n - 2))},
                 {width, lines, 1}};
    } else if (traits.wide_vectors) {
        kernel = "copy_rows";
        count = product_of(copy.sizes, n - 1);
        rows = std::max<std::int64_t>(1, copy_piece / copy.sizes[n - 1]);
        range = {
            2,
            {to_size(ceil_div(copy.sizes[n - 1], copy_piece)), to_size(ceil_div(count, rows)), 1},
            {1, 1, 1}};
    } else {
        kernel = "copy_elements";
        if (copy.x_strides[n - 1] == 1 && copy.y_strides[n - 1] == 1 &&
            copy.sizes[n - 1] % 4 == 0) {
            options.vector = 4;
            copy.sizes[n - 1] /= 4;
            copy.x_strides[n - 1] = copy.y_strides[n - 1] = 4;
            count /= 4;
        }
        range = line_range(traits, count, 256);
    }

    KernelCall call(program(context, options), kernel, range);
    call.tensor_at("x", x, static_cast<std::uint64_t>(copy.x_offset) * copy.element_bytes,
                   copy.element_bytes);
    call.tensor_at("y", y, static_cast<std::uint64_t>(copy.y_offset) * copy.element_bytes,
                   copy.element_bytes);
    if (tiles)
        call.scalar("q6", tiles->x_line.inner)
            .scalar("g6", tiles->x_line.outer_stride)
            .scalar("q7", tiles->y_line.inner)
            .scalar("g7", tiles->y_line.outer_stride);
    else
        call.scalar("count", count);
    if (kernel == "copy_rows") call.scalar("rows", rows).scalar("piece", copy_piece);
    set_sizes(call, 's', copy.sizes, 1);
    set_sizes(call, 'f', copy.x_strides, 0);
    set_sizes(call, 't', copy.y_strides, 0);
    launch.add(std::move(call));
}

void add_copy(KernelLaunch& launch, ContextImpl& context, const PaddedCopy& whole, int x, int y) {
    const PaddedCopy copy = merged(whole);
    const Traits& traits = context.traits();
    const std::size_t n = copy.y_sizes.size();
    KernelOptions options;
    options.element_bytes = copy.element_bytes;
    options.dims = n;
    options.wide = traits.wide_vectors;
    options.count = product_of(copy.y_sizes, n);
    options.mode = static_cast<int>(copy.mode);
    if (options.count == 0) return;
    const std::int64_t count = options.wide ? product_of(copy.y_sizes, n - 1) : options.count;
    NDRange range = line_range(traits, count, 256);
    if (options.wide)
        range = {
            2, {to_size(count), to_size(ceil_div(copy.y_sizes[n - 1], copy_piece)), 1}, {1, 1, 1}};

    KernelCall call(program(context, options), "copy_padded", range);
    call.tensor("x", x, copy.element_bytes).tensor("y", y, copy.element_bytes);
    call.scalar("count", count).scalar("piece", copy_piece);
    call.scalar("fill", static_cast<std::int64_t>(copy.fill));
    set_sizes(call, 's', copy.y_sizes, 1);
    set_sizes(call, 'n', copy.x_sizes, 1);
    set_sizes(call, 'p', copy.before, 0);
    launch.add(std::move(call));
}

}  // namespace dlprim
