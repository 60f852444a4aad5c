// SPDX-License-Identifier: MIT
// Strided copy: merges dimensions and chooses among the kernels of kernels/engine/strided_copy.cl.
// Also has the same copies for the host's threads.
#include "engine/strided_copy.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dlprim {

namespace {

constexpr int rank = Shape::max_rank;
constexpr std::int64_t piece =
    8192;  // elements that a CPU's work-item or a host task copies at least

std::int64_t product(const Ints& sizes, std::size_t begin, std::size_t end) {
    std::int64_t result = 1;
    for (std::size_t i = begin; i < end; ++i) result *= sizes[i];
    return result;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

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

std::size_t size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

/// A work-group of at most 256 items, limited by the device.
std::size_t group_size(const Traits& traits) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(traits.max_work_group, 1, 256));
}

/// A dimension that may consist of two which follow each other in one array.
struct Line {
    std::int64_t inner = 1;         ///< elements of the inner one
    std::int64_t outer_stride = 0;  ///< of the outer one, in the other array
};

/// A copy whose last dimension but one is contiguous in x and whose last is contiguous in y.
struct Transposition {
    StridedCopy copy;
    Line x_line, y_line;  ///< of the last dimension but one, and of the last
};

/// Returns nothing if the copy is not a transposition, or one too small for tiles. `fold` makes one
/// line of two dimensions where the inner one is shorter than a tile.
std::optional<Transposition> transposition(const StridedCopy& copy, bool fold) {
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    constexpr std::int64_t shortest = 8, tile = 32;
    const std::size_t n = copy.sizes.size();
    if (n < 2 || copy.y_strides[n - 1] != 1 || copy.x_strides[n - 1] == 1) return std::nullopt;
    // x_inner and x_outer make the line in x, y_inner and y_outer the line in y.
    const std::size_t y_inner = n - 1;
    std::size_t x_inner = none, x_outer = none, y_outer = none;
    for (std::size_t d = 0; d < y_inner; ++d)
        if (copy.x_strides[d] == 1) x_inner = d;
    if (x_inner == none) return std::nullopt;
    for (std::size_t d = 0; fold && d < y_inner; ++d) {
        if (d == x_inner) continue;
        if (copy.sizes[x_inner] < tile && copy.x_strides[d] == copy.sizes[x_inner])
            x_outer = d;
        else if (copy.sizes[y_inner] < tile && copy.y_strides[d] == copy.sizes[y_inner])
            y_outer = d;
    }
    Transposition result;
    result.copy = copy;
    Ints &sizes = result.copy.sizes, &xs = result.copy.x_strides, &ys = result.copy.y_strides;
    sizes.clear(), xs.clear(), ys.clear();
    const auto add = [&](std::size_t d, std::size_t outer) {
        sizes.push_back(copy.sizes[d] * (outer == none ? 1 : copy.sizes[outer]));
        xs.push_back(copy.x_strides[d]);
        ys.push_back(copy.y_strides[d]);
    };
    for (std::size_t d = 0; d < y_inner; ++d)
        if (d != x_inner && d != x_outer && d != y_outer) add(d, none);
    add(x_inner, x_outer);
    add(y_inner, y_outer);
    const std::size_t last = sizes.size() - 1;
    if (sizes[last - 1] < shortest || sizes[last] < shortest) return std::nullopt;
    result.x_line = {copy.sizes[x_inner], x_outer == none ? 0 : copy.y_strides[x_outer]};
    result.y_line = {copy.sizes[y_inner], y_outer == none ? 0 : copy.x_strides[y_outer]};
    return result;
}

}  // namespace

StridedCopy merged(const StridedCopy& copy) {
    StridedCopy result = copy;
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < copy.sizes.size(); ++d)
        if (copy.sizes[d] != 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return copy.y_strides[a] > copy.y_strides[b];
    });
    result.sizes.clear();
    result.x_strides.clear();
    result.y_strides.clear();
    for (const std::size_t d : order) {
        if (!result.sizes.empty() && result.x_strides.back() == copy.x_strides[d] * copy.sizes[d] &&
            result.y_strides.back() == copy.y_strides[d] * copy.sizes[d]) {
            result.sizes.back() *= copy.sizes[d];
            result.x_strides.back() = copy.x_strides[d];
            result.y_strides.back() = copy.y_strides[d];
        } else {
            result.sizes.push_back(copy.sizes[d]);
            result.x_strides.push_back(copy.x_strides[d]);
            result.y_strides.push_back(copy.y_strides[d]);
        }
    }
    if (result.sizes.empty()) {
        result.sizes = {1};
        result.x_strides = {1};
        result.y_strides = {1};
    }
    return result;
}

PaddedCopy merged(const PaddedCopy& copy) {
    PaddedCopy result = copy;
    result.x_sizes.clear();
    result.y_sizes.clear();
    result.before.clear();
    for (std::size_t d = 0; d < copy.x_sizes.size(); ++d) {
        const bool whole = copy.before[d] == 0 && copy.x_sizes[d] == copy.y_sizes[d];
        // A dimension without padding can be merged into the one before it. If that one has
        // padding, the padding then consists of whole rows, which only the constant mode can fill.
        const bool front_whole = !result.x_sizes.empty() && result.before.back() == 0 &&
                                 result.x_sizes.back() == result.y_sizes.back();
        if (!result.x_sizes.empty() && whole &&
            (copy.mode == PaddedCopy::Mode::constant || front_whole)) {
            result.x_sizes.back() *= copy.x_sizes[d];
            result.y_sizes.back() *= copy.y_sizes[d];
            result.before.back() *= copy.y_sizes[d];
        } else {
            result.x_sizes.push_back(copy.x_sizes[d]);
            result.y_sizes.push_back(copy.y_sizes[d]);
            result.before.push_back(copy.before[d]);
        }
    }
    if (result.x_sizes.empty()) {
        result.x_sizes = {1};
        result.y_sizes = {1};
        result.before = {0};
    }
    return result;
}

void add_copy(KernelLaunch& launch, ContextImpl& context, const StridedCopy& whole, int x, int y) {
    StridedCopy copy = merged(whole);
    const Traits& traits = context.traits();
    const std::int64_t elements = product(copy.sizes, 0, copy.sizes.size());
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
        const std::size_t edge = size(options.tile);
        std::size_t width = edge,
                    lines = std::max<std::size_t>(1, std::min<std::size_t>(8, group / edge));
        if (traits.wide_vectors) width = lines = 1;
        range = {3,
                 {size(divide_up(copy.sizes[n - 1], options.tile)) * width,
                  size(divide_up(copy.sizes[n - 2], options.tile)) * lines,
                  size(product(copy.sizes, 0, n - 2))},
                 {width, lines, 1}};
    } else if (traits.wide_vectors) {
        kernel = "copy_rows";
        count = product(copy.sizes, 0, n - 1);
        rows = std::max<std::int64_t>(1, piece / copy.sizes[n - 1]);
        range = {2,
                 {size(divide_up(copy.sizes[n - 1], piece)), size(divide_up(count, rows)), 1},
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
    if (kernel == "copy_rows") call.scalar("rows", rows).scalar("piece", std::int64_t{piece});
    set_sizes(call, 's', copy.sizes, 1);
    set_sizes(call, 'f', copy.x_strides, 0);
    set_sizes(call, 't', copy.y_strides, 0);
    call.check();
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
    options.count = product(copy.y_sizes, 0, n);
    options.mode = static_cast<int>(copy.mode);
    if (options.count == 0) return;
    const std::int64_t count = options.wide ? product(copy.y_sizes, 0, n - 1) : options.count;
    NDRange range = line_range(traits, count, 256);
    if (options.wide)
        range = {2, {size(count), size(divide_up(copy.y_sizes[n - 1], piece)), 1}, {1, 1, 1}};

    KernelCall call(program(context, options), "copy_padded", range);
    call.tensor("x", x, copy.element_bytes).tensor("y", y, copy.element_bytes);
    call.scalar("count", count).scalar("piece", std::int64_t{piece});
    call.scalar("fill", static_cast<std::int64_t>(copy.fill));
    set_sizes(call, 's', copy.y_sizes, 1);
    set_sizes(call, 'n', copy.x_sizes, 1);
    set_sizes(call, 'p', copy.before, 0);
    call.check();
    launch.add(std::move(call));
}

namespace {

template <typename T>
void host_copy_as(HostPool& pool, const StridedCopy& copy, const T* x, T* y) {
    const std::size_t n = copy.sizes.size();
    const std::int64_t length = copy.sizes[n - 1];
    const std::int64_t xs = copy.x_strides[n - 1], ys = copy.y_strides[n - 1];
    // Long rows are divided, so that a copy of a single row also uses every thread.
    const std::int64_t cut = std::min(length, std::max<std::int64_t>(piece, 1));
    const std::int64_t cuts = divide_up(length, cut);
    const std::int64_t tasks = product(copy.sizes, 0, n - 1) * cuts;
    pool.parallel_for(
        tasks, std::max<std::int64_t>(1, piece / cut), [&](std::int64_t a, std::int64_t b) {
            for (std::int64_t task = a; task < b; ++task) {
                std::int64_t i = task / cuts, xi = copy.x_offset, yi = copy.y_offset;
                for (std::size_t d = n - 1; d-- > 0;) {
                    const std::int64_t c = i % copy.sizes[d];
                    i /= copy.sizes[d];
                    xi += c * copy.x_strides[d];
                    yi += c * copy.y_strides[d];
                }
                const std::int64_t begin = task % cuts * cut, end = std::min(begin + cut, length);
                if (xs == 1 && ys == 1) {
                    std::memcpy(y + yi + begin, x + xi + begin, size(end - begin) * sizeof(T));
                } else {
                    for (std::int64_t k = begin; k < end; ++k) y[yi + k * ys] = x[xi + k * xs];
                }
            }
        });
}

/// Transposition: dimension n - 2 is contiguous in x and n - 1 in y. Copied in tiles that fit into
/// the cache.
template <typename T>
void host_transpose_as(HostPool& pool, const StridedCopy& copy, const T* x, T* y) {
    constexpr std::int64_t tile = 32;
    const std::size_t n = copy.sizes.size();
    const std::int64_t n6 = copy.sizes[n - 2], n7 = copy.sizes[n - 1];
    const std::int64_t tiles = divide_up(n6, tile);
    pool.parallel_for(
        product(copy.sizes, 0, n - 2) * tiles, std::max<std::int64_t>(1, piece / (tile * n7)),
        [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t task = first; task < last; ++task) {
                std::int64_t i = task / tiles, xi = copy.x_offset, yi = copy.y_offset;
                for (std::size_t d = n - 2; d-- > 0;) {
                    const std::int64_t c = i % copy.sizes[d];
                    i /= copy.sizes[d];
                    xi += c * copy.x_strides[d];
                    yi += c * copy.y_strides[d];
                }
                const std::int64_t r0 = task % tiles * tile, r1 = std::min(r0 + tile, n6);
                for (std::int64_t c0 = 0; c0 < n7; c0 += tile) {
                    const std::int64_t c1 = std::min(c0 + tile, n7);
                    for (std::int64_t r = r0; r < r1; ++r)
                        for (std::int64_t c = c0; c < c1; ++c)
                            y[yi + r * copy.y_strides[n - 2] + c] =
                                x[xi + c * copy.x_strides[n - 1] + r];
                }
            }
        });
}

template <typename T>
void host_pad_as(HostPool& pool, const PaddedCopy& copy, const T* x, T* y) {
    const std::size_t n = copy.y_sizes.size();
    const std::int64_t length = copy.y_sizes[n - 1], source_length = copy.x_sizes[n - 1];
    const std::int64_t before = copy.before[n - 1];
    T fill{};
    std::memcpy(&fill, &copy.fill, sizeof(T));
    // The position in x that coordinate c of y reads, or -1 for the constant.
    const auto position = [&](std::int64_t c, std::size_t d) {
        const std::int64_t size_d = copy.x_sizes[d];
        c -= copy.before[d];
        switch (copy.mode) {
            case PaddedCopy::Mode::constant:
                return c < 0 || c >= size_d ? std::int64_t{-1} : c;
            case PaddedCopy::Mode::reflect:
                if (c < 0) c = -c;
                return c >= size_d ? 2 * (size_d - 1) - c : c;
            case PaddedCopy::Mode::circular:
                return c < 0 ? c + size_d : c >= size_d ? c - size_d : c;
            case PaddedCopy::Mode::replicate:
                break;
        }
        return std::clamp<std::int64_t>(c, 0, size_d - 1);
    };
    pool.parallel_for(product(copy.y_sizes, 0, n - 1), std::max<std::int64_t>(1, piece / length),
                      [&](std::int64_t first, std::int64_t last) {
                          for (std::int64_t row = first; row < last; ++row) {
                              std::int64_t i = row, xi = 0, stride = source_length;
                              bool inside = true;
                              for (std::size_t d = n - 1; d-- > 0;) {
                                  const std::int64_t c = position(i % copy.y_sizes[d], d);
                                  i /= copy.y_sizes[d];
                                  inside = inside && c >= 0;
                                  xi += c * stride;
                                  stride *= copy.x_sizes[d];
                              }
                              T* to = y + row * length;
                              if (!inside) {
                                  std::fill(to, to + length, fill);
                              } else if (copy.mode == PaddedCopy::Mode::constant) {
                                  const std::int64_t begin =
                                      std::clamp<std::int64_t>(before, 0, length);
                                  const std::int64_t end = std::clamp<std::int64_t>(
                                      source_length + before, begin, length);
                                  std::fill(to, to + begin, fill);
                                  if (end > begin)
                                      std::memcpy(to + begin, x + xi + begin - before,
                                                  size(end - begin) * sizeof(T));
                                  std::fill(to + end, to + length, fill);
                              } else {
                                  for (std::int64_t k = 0; k < length; ++k)
                                      to[k] = x[xi + position(k, n - 1)];
                              }
                          }
                      });
}

template <typename F>
void with_type(std::size_t element_bytes, F&& f) {
    switch (element_bytes) {
        case 1:
            return f(std::uint8_t{});
        case 2:
            return f(std::uint16_t{});
        case 4:
            return f(std::uint32_t{});
        case 8:
            return f(std::uint64_t{});
    }
    fail(ErrorKind::unsupported, "strided copy of elements of ", element_bytes, " bytes");
}

}  // namespace

void host_copy(HostPool& pool, const StridedCopy& whole, const std::byte* x, std::byte* y) {
    StridedCopy copy = merged(whole);
    if (product(copy.sizes, 0, copy.sizes.size()) == 0) return;
    const std::optional<Transposition> transposed = transposition(copy, false);
    if (transposed) copy = transposed->copy;
    with_type(copy.element_bytes, [&](auto element) {
        using T = decltype(element);
        const T* from = reinterpret_cast<const T*>(x);
        T* to = reinterpret_cast<T*>(y);
        if (transposed)
            host_transpose_as(pool, copy, from, to);
        else
            host_copy_as(pool, copy, from, to);
    });
}

void host_copy(HostPool& pool, const PaddedCopy& whole, const std::byte* x, std::byte* y) {
    const PaddedCopy copy = merged(whole);
    if (product(copy.y_sizes, 0, copy.y_sizes.size()) == 0) return;
    with_type(copy.element_bytes, [&](auto element) {
        using T = decltype(element);
        host_pad_as(pool, copy, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(y));
    });
}

Verdict copy_verdict(const Problem& problem) {
    if (!problem.epilogue.empty())
        return Verdict::no("it does not support an epilogue, since it only moves data");
    const DType dtype = problem.outputs[0].dtype;
    for (const Operand& input : problem.inputs)
        if (input.dtype != dtype)
            return Verdict::no(cat("it does not convert ", name_of(input.dtype),
                                   " to another type, since it only moves data"));
    return Verdict::yes();
}

double copy_seconds(const Traits& device, const Problem& problem, int calls) {
    double bytes = 0;
    for (const Operand& output : problem.outputs)
        bytes +=
            2.0 * static_cast<double>(storage_bytes(output.shape, output.dtype, output.layout));
    const double bandwidth = std::max(device.gbytes_per_s, 1.0) * 1e9;
    return bytes / (0.6 * bandwidth) + calls * device.launch_us * 1e-6;
}

std::string_view raw_type(std::size_t element_bytes) {
    switch (element_bytes) {
        case 1:
            return "uchar";
        case 2:
            return "ushort";
        case 4:
            return "uint";
        case 8:
            return "ulong";
    }
    fail(ErrorKind::unsupported, "copies of elements of ", element_bytes, " bytes");
}

}  // namespace dlprim
