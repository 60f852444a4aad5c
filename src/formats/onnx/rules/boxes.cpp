// SPDX-License-Identifier: MIT
// NonMaxSuppression: of boxes that overlap, the one with the highest score, on the host.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <array>

namespace dlprim::onnx {

namespace {

struct Box {
    double x0, y0, x1, y1;
    double area() const { return (x1 - x0) * (y1 - y0); }
};

/// Two corners in any order [y, x, y, x], or center and size [x, y, width, height].
Box box_at(const std::vector<double>& boxes, std::size_t i, bool by_center) {
    const double* const b = boxes.data() + 4 * i;
    if (by_center) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
    return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}

/// The area that both cover over the area that any covers.
double overlap(const Box& a, const Box& b) {
    const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0),
                 height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (width <= 0 || height <= 0) return 0;
    const double both = width * height, any = a.area() + b.area() - both;
    return any > 0 ? both / any : 0;
}

struct Limits {
    std::int64_t most = 0;  ///< boxes per class
    double overlap = 0, score = 0;
    bool by_score = false, by_center = false;
};

/// The boxes of one class that stay, the highest score first.
std::vector<std::size_t> chosen(const std::vector<Box>& boxes, const double* scores,
                                const Limits& limits) {
    std::vector<std::size_t> order, kept;
    for (std::size_t i = 0; i < boxes.size(); ++i)
        if (limits.by_score ? scores[i] > limits.score : scores[i] == scores[i])  // no NaN
            order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    for (const std::size_t i : order) {
        if (std::ssize(kept) >= limits.most) break;
        const bool free = std::none_of(kept.begin(), kept.end(), [&](std::size_t other) {
            return overlap(boxes[i], boxes[other]) > limits.overlap;
        });
        if (free) kept.push_back(i);
    }
    return kept;
}

/// Of boxes [batch, count, 4] and scores [batch, classes, count]: rows of batch, class and box.
HostValue suppress(const HostTensor& boxes, const HostTensor& scores, const Limits& limits) {
    const std::vector<double> corners = to_numbers(boxes), heights = to_numbers(scores);
    const std::int64_t batch = scores.shape[0], classes = scores.shape[1];
    const auto count = static_cast<std::size_t>(scores.shape[2]);
    Ints rows;
    for (std::int64_t b = 0; b < batch && !scores.shape.empty(); ++b) {
        std::vector<Box> all;
        for (std::size_t i = 0; i < count; ++i)
            all.push_back(
                box_at(corners, static_cast<std::size_t>(b) * count + i, limits.by_center));
        for (std::int64_t c = 0; c < classes; ++c) {
            const double* const of_class =
                heights.data() + static_cast<std::size_t>(b * classes + c) * count;
            for (const std::size_t i : chosen(all, of_class, limits)) {
                const std::array<std::int64_t, 3> row{b, c, static_cast<std::int64_t>(i)};
                rows.insert(rows.end(), row.begin(), row.end());
            }
        }
    }
    return host_integers({std::ssize(rows) / 3, 3}, rows);
}

/// A limit that may be left out, and is one number of any shape then.
double limit(Call& call, int i, const char* what, double otherwise) {
    if (!call.has(i)) return otherwise;
    const std::vector<double> values = call.known_numbers(i, what);
    call.check(values.size() == 1, what, " have ", values.size(), " elements; they must be one");
    return values[0];
}

void suppress_overlaps(Call& call) {
    const Shape &boxes = call.shape(0), &scores = call.shape(1);
    call.check(boxes.rank() == 3 && boxes[2] == 4 && scores.rank() == 3 && scores[0] == boxes[0] &&
                   scores[2] == boxes[1],
               "boxes of shape ", boxes.str(), " with scores of shape ", scores.str());
    Limits limits;
    limits.by_center = call.integer("center_point_box", 0) != 0;
    if (call.has(2)) limits.most = call.known_integer(2, "numbers of boxes");
    limits.overlap = limit(call, 3, "thresholds", 0);
    limits.by_score = call.has(4);
    limits.score = limit(call, 4, "thresholds", 0);
    const std::vector<Ref> results =
        call.on_host({call.in(0), call.in(1)}, [limits](const std::vector<HostValue>& inputs) {
            return std::vector{suppress(*inputs[0], *inputs[1], limits)};
        });
    call.set(0, results[0]);
}

}  // namespace

std::vector<Rule> box_rules() {
    return {{"NonMaxSuppression", 10, suppress_overlaps}};
}

}  // namespace dlprim::onnx
