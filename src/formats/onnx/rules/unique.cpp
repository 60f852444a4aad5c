// SPDX-License-Identifier: MIT
// Unique: the different elements of a tensor, or slices along an axis, on the host.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlprim::onnx {

namespace {

/// An order of all numbers, in which a NaN is behind the others and equal to itself.
bool is_less(double a, double b) {
    return std::isnan(b) ? !std::isnan(a) : a < b;
}
bool is_less(std::int64_t a, std::int64_t b) {
    return a < b;
}

/// The slices of a tensor along a dimension.
template <typename Number>
struct Slices {
    std::vector<Number> numbers;
    std::int64_t count = 0, outer = 1, inner = 1;

    /// Element number `i` of slice `at`.
    const Number& element(std::int64_t at, std::int64_t i) const {
        return numbers[static_cast<std::size_t>((i / inner * count + at) * inner + i % inner)];
    }
    bool less(std::int64_t a, std::int64_t b) const {
        for (std::int64_t i = 0; i < outer * inner; ++i) {
            if (is_less(element(a, i), element(b, i))) return true;
            if (is_less(element(b, i), element(a, i))) return false;
        }
        return false;
    }
};

/// For each different slice, where it is first, and for each slice, the number of its like.
struct Groups {
    Ints first, of, counts;
};

template <typename Number>
Groups group(const Slices<Number>& slices, bool sorted) {
    Ints order(static_cast<std::size_t>(slices.count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return slices.less(a, b); });
    Groups groups;
    groups.of.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || slices.less(order[i - 1], order[i])) {
            groups.first.push_back(order[i]);  // the sort is stable: it is the first of its like
            groups.counts.push_back(0);
        }
        groups.of[static_cast<std::size_t>(order[i])] = std::ssize(groups.first) - 1;
        ++groups.counts.back();
    }
    if (sorted) return groups;
    Ints by_place(groups.first.size()), rank(groups.first.size());
    std::iota(by_place.begin(), by_place.end(), 0);
    const auto at = [](const Ints& list, std::int64_t i) {
        return list[static_cast<std::size_t>(i)];
    };
    std::sort(by_place.begin(), by_place.end(), [&](std::int64_t a, std::int64_t b) {
        return at(groups.first, a) < at(groups.first, b);
    });
    Groups placed;
    for (const std::int64_t old : by_place) {
        rank[static_cast<std::size_t>(old)] = std::ssize(placed.first);
        placed.first.push_back(at(groups.first, old));
        placed.counts.push_back(at(groups.counts, old));
    }
    for (const std::int64_t old : groups.of) placed.of.push_back(at(rank, old));
    return placed;
}

/// These slices of the tensor along the dimension.
HostValue take(const HostTensor& from, const Shape& shape, int axis, const Ints& places) {
    auto made = std::make_shared<HostTensor>();
    made->shape = shape.with(axis, std::ssize(places));
    made->dtype = from.dtype;
    const std::int64_t outer = shape.product(0, axis);
    const std::size_t size =
        static_cast<std::size_t>(shape.product(axis + 1, shape.rank())) * size_of(from.dtype);
    for (std::int64_t o = 0; o < outer; ++o)
        for (const std::int64_t place : places) {
            const auto begin =
                from.data.begin() + static_cast<std::ptrdiff_t>(
                                        static_cast<std::size_t>(o * shape[axis] + place) * size);
            made->data.insert(made->data.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
        }
    return made;
}

/// `numbers` stand for the elements, and order them.
template <typename Number>
std::vector<HostValue> different(const HostTensor& from, std::vector<Number> numbers,
                                 const Shape& shape, int axis, bool sorted) {
    const Slices<Number> slices{std::move(numbers), shape[axis], shape.product(0, axis),
                                shape.product(axis + 1, shape.rank())};
    const Groups groups = group(slices, sorted);
    const Shape found{std::ssize(groups.first)};
    return {take(from, shape, axis, groups.first), host_integers(found, groups.first),
            host_integers({slices.count}, groups.of), host_integers(found, groups.counts)};
}

/// Where each text is in the order of all of them.
Ints ranks(const std::vector<std::string>& texts) {
    std::map<std::string_view, std::int64_t> places;
    for (const std::string& text : texts) places[text] = 0;
    std::int64_t next = 0;
    for (auto& item : places) item.second = next++;
    Ints result;
    for (const std::string& text : texts) result.push_back(places[text]);
    return result;
}

void unique(Call& call) {
    const Ref x = call.in(0);
    const bool sorted = call.integer("sorted", 1) != 0;
    Shape shape{x->spec.shape.numel()};
    int axis = 0;
    if (call.given("axis")) {
        shape = x->spec.shape;
        axis = call.axis(call.integer("axis", 0), shape.rank());
    }
    call.build.claim({4 * shape[axis]}, DType::i64);
    Ints text_ranks;
    if (x->strings) text_ranks = ranks(call.known_strings(0, "strings"));
    const bool by_rank = x->strings;
    const auto function = [=](const std::vector<HostValue>& inputs) {
        const HostTensor& from = *inputs[0];
        if (by_rank) return different(from, text_ranks, shape, axis, sorted);
        if (is_float(from.dtype)) return different(from, to_numbers(from), shape, axis, sorted);
        return different(from, to_integers(from), shape, axis, sorted);
    };
    const std::vector<Ref> results = call.on_host({x}, function);
    for (int i = 0; i < 4; ++i) call.set(i, results[static_cast<std::size_t>(i)]);
    if (x->strings) call.build.as_strings(results[0]);
}

}  // namespace

std::vector<Rule> unique_rules() {
    return {{"Unique", 11, unique, Rule::Strings::own}};
}

}  // namespace dlprim::onnx
