// SPDX-License-Identifier: MIT
// Images at computed places; see sampling.hpp. GridSample and AffineGrid.
#include "formats/onnx/rules/sampling.hpp"

#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

/// The weight of neighbour `tap`; f is the place behind the element below it.
std::string weight_code(Sampling::Kind kind, int tap) {
    if (kind == Sampling::Kind::nearest) return "1";
    if (kind == Sampling::Kind::linear) return tap == 0 ? "1 - f" : "f";
    // Keys' cubic convolution with a = -0.75: inside of one element, and beyond.
    const std::string d = tap == 0 ? "(f + 1)" : tap == 1 ? "f" : tap == 2 ? "(1 - f)" : "(2 - f)";
    if (tap == 1 || tap == 2) return cat("(1.25 * ", d, " - 2.25) * ", d, " * ", d, " + 1");
    return cat("((-0.75 * ", d, " + 3.75) * ", d, " - 6) * ", d, " + 3");
}

int taps_of(Sampling::Kind kind) {
    return kind == Sampling::Kind::nearest ? 1 : kind == Sampling::Kind::linear ? 2 : 4;
}

/// A neighbour along one dimension: its index, and its weight.
struct Tap {
    Ref index, weight;
};

std::vector<Tap> taps(Builder& build, Ref place, std::int64_t size, const Sampling& how) {
    std::vector<Tap> made;
    const int count = taps_of(how.kind);
    for (int tap = 0; tap < count; ++tap) {
        const bool nearest = how.kind == Sampling::Kind::nearest;
        const std::string first = nearest ? "b = trunc(x0); f = 0" : "b = floor(x0); f = x0 - b";
        const std::string inside = moved_inside(how, size, "i");
        std::string weight = weight_code(how.kind, tap);
        if (how.padding == Sampling::Padding::zeros)
            weight = cat("i >= 0 && i <= ", size - 1, " ? ", weight, " : 0");
        const std::string code =
            cat(first, "; i = b + ", tap - (count == 4 ? 1 : 0), "; y0 = min(max(trunc(", inside,
                "), 0), ", size - 1, "); y1 = ", weight);
        const std::vector<Ref> both = build.add(
            "Pointwise", {place},
            {{"code", code}, {"dtypes", Strings{std::string("int32"), std::string("float")}}});
        made.push_back({both[0], both[1]});
    }
    return made;
}

Sampling::Kind kind_of(Call& call) {
    const std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear");
    if (mode == "nearest") return Sampling::Kind::nearest;
    if (mode == "linear" || mode == "bilinear") return Sampling::Kind::linear;
    call.check(mode == "cubic" || mode == "bicubic", "mode '", mode, "' is unknown");
    return Sampling::Kind::cubic;
}

Sampling::Padding padding_of(Call& call) {
    const std::string mode = call.text("padding_mode", "zeros");
    if (mode == "border") return Sampling::Padding::border;
    if (mode == "reflection") return Sampling::Padding::reflection;
    call.check(mode == "zeros", "padding_mode '", mode, "' is unknown");
    return Sampling::Padding::zeros;
}

void grid_sample(Call& call) {
    Builder& build = call.build;
    const Ref image = call.in(0);
    const Shape &x = image->spec.shape, &grid = call.shape(1);
    const int dims = x.rank() - 2;
    call.check(dims >= 1 && grid.rank() == x.rank() && grid[0] == x[0] && grid[-1] == dims,
               "an image of shape ", x.str(), " and a grid of shape ", grid.str(), " do not fit");
    call.supports(dims <= 3, "images of ", dims, " dimensions are not supported");
    Sampling how{kind_of(call), padding_of(call), call.integer("align_corners", 0) != 0};
    const std::int64_t places = grid.product(1, grid.rank() - 1);
    const Ref flat = build.reshape(build.cast(call.in(1), DType::f32), {x[0], places, dims});
    // At a border, a cubic curve goes on beyond the last element, whose value its neighbours have.
    const bool stays =
        how.kind == Sampling::Kind::cubic && how.padding == Sampling::Padding::border;
    std::vector<Ref> coordinates;
    for (std::int64_t d = 0; d < dims; ++d) {
        const std::int64_t size = x[static_cast<int>(d) + 2];
        // The grid names the last dimension first.
        const Ref n = dims == 1 ? flat : build.slice(flat, 2, dims - 1 - d, dims - d);
        const std::string place = how.align_corners ? cat("(x0 + 1) * 0.5 * ", size - 1)
                                                    : cat("((x0 + 1) * ", size, " - 1) * 0.5");
        const bool nearest = how.kind == Sampling::Kind::nearest;
        coordinates.push_back(
            build.pointwise(cat("v = ", nearest ? "round(" : "(", place,
                                "); y0 = ", stays ? "v" : moved_inside(how, size, "v")),
                            {n}));
    }
    const Ref y = build.transpose(sampled(call, image, coordinates, how), {0, 2, 1});
    Ints sizes{x[0], x[1]};
    for (int i = 1; i < grid.rank() - 1; ++i) sizes.push_back(grid[i]);
    call.set(0, build.cast(build.reshape(y, Shape(sizes)), call.dtype(0)));
}

/// The grid of an affine map: homogeneous coordinates of all elements times the map.
void affine_grid(Call& call) {
    Builder& build = call.build;
    const Shape& theta = call.shape(0);
    const Ints size = call.known_integers(1, "the sizes");
    const bool corners = call.integer("align_corners", 0) != 0;
    const auto dims = static_cast<std::int64_t>(size.size()) - 2;
    call.check((dims == 2 || dims == 3) && theta == Shape({size[0], dims, dims + 1}),
               "maps of shape ", theta.str(), " and ", size.size(), " sizes do not fit");
    std::int64_t places = 1;
    for (std::int64_t i = 0; i < dims; ++i) {
        const std::int64_t n = size[static_cast<std::size_t>(i) + 2];
        call.check(n >= 1 && n <= (std::int64_t{1} << 40) / places, "a size of ", n);
        places *= n;
    }
    build.claim({places, dims + 1}, DType::f64);
    std::vector<double> base;
    for (std::int64_t p = 0; p < places; ++p) {
        std::int64_t rest = p;
        for (std::int64_t d = dims - 1; d >= 0; --d) {  // x first
            const std::int64_t n = size[static_cast<std::size_t>(d) + 2], at = rest % n;
            rest /= n;
            const auto i = static_cast<double>(at), all = static_cast<double>(n);
            base.push_back(corners ? (n > 1 ? 2 * i / (all - 1) - 1 : -1) : (2 * i + 1) / all - 1);
        }
        base.push_back(1);
    }
    const Ref grid = build.constant("", host_numbers({1, places, dims + 1}, base, DType::f32));
    const Ref y =
        build.add1("MatMul", {grid, build.cast(call.in(0), DType::f32)}, {{"transpose_b", true}});
    Ints sizes{size[0]};
    sizes.insert(sizes.end(), size.begin() + 2, size.end());
    sizes.push_back(dims);
    call.set(0, build.cast(build.reshape(y, Shape(sizes)), call.dtype(0)));
}

}  // namespace

std::string moved_inside(const Sampling& how, std::int64_t size, const std::string& x) {
    if (how.padding == Sampling::Padding::zeros) return x;
    if (how.padding == Sampling::Padding::border)
        return cat("min(max(", x, ", 0), ", size - 1, ")");
    const double low = how.align_corners ? 0 : -0.5,
                 range = static_cast<double>(size) - 1 - 2 * low;
    if (range == 0) return "0";
    // How often the way from the border fits into the image, and what is left of it.
    const std::string d = cat("(", x, " < ", low, " ? ", low, " - ", x, " : ", x, " - ",
                              low + range, ")"),
                      n = cat("trunc(", d, " / ", range, ")"),
                      r = cat("(", d, " - ", n, " * ", range, ")");
    const std::string even = cat("(", n, " == 2 * trunc(", n, " / 2))");
    const std::string below =
                          cat("(", even, " ? ", low, " + ", r, " : ", low + range, " - ", r, ")"),
                      above =
                          cat("(", even, " ? ", low + range, " - ", r, " : ", low, " + ", r, ")");
    return cat("(", x, " < ", low, " ? ", below, " : ", x, " > ", low + range, " ? ", above, " : ",
               x, ")");
}

Ref image_table(Builder& build, Ref image) {
    const Shape shape = image->spec.shape;
    Ints order{0};
    for (int i = 2; i < shape.rank(); ++i) order.push_back(i);
    order.push_back(1);
    const Ref turned = build.transpose(build.cast(image, DType::f32), order);
    return build.reshape(turned, {shape[0] * shape.product(2, shape.rank()), shape[1]});
}

Ref sampled(Call& call, Ref image, const std::vector<Ref>& places, const Sampling& how) {
    Builder& build = call.build;
    const Shape shape = image->spec.shape;
    const Ref table = image_table(build, image);
    std::vector<std::vector<Tap>> by_dim;
    std::size_t all = 1;
    for (std::size_t d = 0; d < places.size(); ++d) {
        by_dim.push_back(taps(build, places[d], shape[static_cast<int>(d) + 2], how));
        all *= by_dim[d].size();
    }
    Ref sum = nullptr;
    for (std::size_t neighbour = 0; neighbour < all; ++neighbour) {
        std::vector<Ref> indices, factors;
        std::string position = "index(0)", weight;
        std::vector<double> sizes;
        std::size_t rest = neighbour;
        for (std::size_t d = 0; d < places.size(); ++d) {
            const Tap& tap = by_dim[d][rest % by_dim[d].size()];
            rest /= by_dim[d].size();
            position = cat("(", position, " * p", d, " + x", d, ")");
            sizes.push_back(static_cast<double>(shape[static_cast<int>(d) + 2]));
            weight += cat(" * x", d + (sum ? 2 : 1));
            indices.push_back(tap.index);
            factors.push_back(tap.weight);
        }
        Ref at = build.pointwise(cat("y0 = ", position), indices, sizes, DType::i64);
        at = build.reshape(at, {at->spec.shape[0], at->spec.shape[1]});
        const Ref rows = gather_computed(call, table, at, 0);
        factors.insert(factors.begin(), rows);
        if (sum) factors.insert(factors.begin(), sum);
        sum = build.pointwise(cat("y0 = ", sum ? "x0 + x1" : "x0", weight), factors);
    }
    return sum;
}

std::vector<Rule> sampling_rules() {
    return {{"GridSample", 16, grid_sample},
            {"com.microsoft.GridSample", 1, grid_sample},
            {"AffineGrid", 20, affine_grid}};
}

}  // namespace dlprim::onnx
