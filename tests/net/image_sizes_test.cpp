// SPDX-License-Identifier: MIT
// Sizes of images that compile nothing: after those that cover the classes by which engines are
// chosen, fifty random ones of each operator in a table use the programs that there are, on CPUs.
#include "net/sizes.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Sizes of images.
struct ImageSizes {
    std::int64_t n, h, w;
    std::string str() const { return cat("n ", n, " h ", h, " w ", w); }
};

/// Sizes that may compile: engines, such as those by Winograd's algorithm, are chosen by them.
std::vector<ImageSizes> first_images() {
    std::vector<ImageSizes> all;
    for (const std::int64_t n : {1, 4})
        for (const std::int64_t h : {1, 6, 40})
            for (const std::int64_t w : {1, 6, 40}) all.push_back({n, h, w});
    return all;
}

std::vector<ImageSizes> draw_images() {
    std::mt19937 random(3);
    std::vector<ImageSizes> all;
    for (int i = 0; i < random_sizes; ++i) {
        const std::int64_t n = 1 + random() % 4, h = 1 + random() % 40, w = 1 + random() % 40;
        all.push_back({n, h, w});
    }
    return all;
}

/// An operator on images whose programs serve all of their sizes.
struct ImageRow {
    const char* name;
    const char* type;
    std::string (*options)(const ImageSizes&);
    Shapes (*shapes)(const ImageSizes&);
    double tolerance;  ///< of the largest result
};

/// Of a convolution by 3x3 with padding, and of its gradients.
template <std::int64_t in, std::int64_t out>
const ImageRow padded_rows[] = {
    {"convolution", "Convolution2D",
     [](const ImageSizes&) {
         return cat(R"({"kernel": 3, "pad": 1, "bias": false, "channels_in": )", in,
                    R"(, "channels_out": )", out, "}");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, in, s.h, s.w}}, {{out, in, 3, 3}}};
     },
     1e-5},
    {"gradient by data", "Convolution2DBackwardData",
     [](const ImageSizes& s) {
         return cat(R"({"kernel": 3, "pad": 1, "input_shape": )", Shape{s.n, in, s.h, s.w}.str(),
                    "}");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, out, s.h, s.w}, {out, in, 3, 3}}, {}};
     },
     1e-5},
    {"gradient by the filter", "Convolution2DBackwardFilter",
     [](const ImageSizes&) {
         return cat(R"({"kernel": 3, "pad": 1, "weight_shape": )", Shape{out, in, 3, 3}.str(), "}");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, in, s.h, s.w}, {s.n, out, s.h, s.w}}, {}};
     },
     1e-5},
};

const ImageRow image_rows[] = {
    {"strided convolution", "Convolution2D",
     [](const ImageSizes&) {
         return std::string(
             R"({"kernel": 5, "pad": 2, "stride": 2, "channels_in": 24, "channels_out": 40})");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, 24, s.h, s.w}}, {{40, 24, 5, 5}, {40}}};
     },
     1e-5},
    {"convolution of pixels", "Convolution2D",
     [](const ImageSizes&) {
         return std::string(R"({"kernel": 1, "channels_in": 17, "channels_out": 64})");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, 17, s.h, s.w}}, {{64, 17, 1, 1}, {64}}};
     },
     1e-5},
    {"depthwise convolution", "Convolution2D",
     [](const ImageSizes&) {
         return std::string(
             R"({"kernel": 5, "pad": 2, "groups": 20, "channels_in": 20, "channels_out": 20})");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, 20, s.h, s.w}}, {{20, 1, 5, 5}, {20}}};
     },
     1e-5},
    {"pooling", "Pooling2D",
     [](const ImageSizes&) {
         return std::string(R"({"mode": "max", "kernel": 3, "stride": 2, "pad": 1})");
     },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, 20, s.h, s.w}}, {}};
     },
     0},
    {"pooling of images", "GlobalPooling",
     [](const ImageSizes&) { return std::string(R"({"mode": "avg"})"); },
     [](const ImageSizes& s) {
         return Shapes{{{s.n, 20, s.h, s.w}}, {}};
     },
     1e-6},
};

}  // namespace

TEST_CASE("eager calls of a new size of images compile nothing", "[image_sizes]") {
    ON_EVERY_DEVICE(device) {
        // Kernels on GPUs have the sizes of images in their texts.
        if (device.info().kind != DeviceKind::cpu) continue;
        std::vector<ImageRow> rows(std::begin(image_rows), std::end(image_rows));
        rows.insert(rows.end(), std::begin(padded_rows<3, 16>), std::end(padded_rows<3, 16>));
        rows.insert(rows.end(), std::begin(padded_rows<32, 48>), std::end(padded_rows<32, 48>));
        for (const ImageRow& row : rows) {
            const Context used(device.info().id);
            const auto call = [&](const Context& on, const ImageSizes& s) {
                const Shapes shapes = row.shapes(s);
                return ops::call(row.type, row.options(s), tensors(on, shapes.inputs, 1),
                                 tensors(on, shapes.params, 100))
                    .at(0);
            };
            check_sizes(
                used, row, Runs<ImageSizes>{first_images(), draw_images()},
                [&](const ImageSizes& s) { return call(used, s); }, call);
        }
    }
}
