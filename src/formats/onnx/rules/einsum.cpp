// SPDX-License-Identifier: MIT
// Einsum: sums of products by the letters of dimensions. Operands are taken in one after the other:
// a letter that is needed no more is summed in the product that has it last. Products of floats
// that sum are matrix products; others, and those of doubles, are programs.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <set>

namespace dlprim::onnx {

namespace {

/// Dimensions that ... stands for are labels too, numbered from the last one on: behind all
/// letters.
constexpr int first_of_dots = 256;

using Labels = std::vector<int>;

/// A value and the label of each of its dimensions.
struct Term {
    Ref value;
    Labels labels;
    bool has(int label) const {
        return std::find(labels.begin(), labels.end(), label) != labels.end();
    }
    int place(int label) const {
        return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
    }
    std::int64_t size(int label) const { return value->spec.shape[place(label)]; }
};

/// The labels of a part of the equation whose dots stand for `dots` dimensions.
Labels labels_of(const Call& call, std::string_view text, int dots) {
    Labels labels;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 3) == "...") {
            for (int d = dots; d-- > 0;) labels.push_back(first_of_dots + d);
            i += 2;
            continue;
        }
        call.check(ascii::is_letter(text[i]), "the equation has '", text.substr(i, 1), "' in it");
        labels.push_back(static_cast<unsigned char>(text[i]));
    }
    return labels;
}

struct Equation {
    std::vector<Labels> inputs;
    Labels output;

    explicit Equation(Call& call) {
        std::string text;
        for (const char c : call.text("equation", ""))
            if (!ascii::is_space(c)) text += c;
        const std::size_t arrow = text.find("->");
        const std::string left = text.substr(0, arrow);
        int most = 0;
        std::size_t begin = 0;
        for (int i = 0; i < call.inputs(); ++i) {
            call.check(begin <= left.size(), "the equation has fewer terms than there are inputs");
            const std::size_t end = std::min(left.find(',', begin), left.size());
            const std::string_view term = std::string_view(left).substr(begin, end - begin);
            const bool has_dots = term.find("...") != std::string_view::npos;
            const int letters = static_cast<int>(term.size()) - (has_dots ? 3 : 0);
            const int dots = has_dots ? call.shape(i).rank() - letters : 0;
            call.check(dots >= 0 && letters + dots == call.shape(i).rank(), "the term '", term,
                       "' does not fit an input of shape ", call.shape(i).str());
            inputs.push_back(labels_of(call, term, dots));
            most = std::max(most, dots);
            begin = end + 1;
        }
        call.check(begin == left.size() + 1, "the equation has more terms than there are inputs");
        output = arrow == std::string::npos ? implied(most)
                                            : labels_of(call, text.substr(arrow + 2), most);
        check_output(call);
    }

  private:
    /// Without an arrow: the dots, and the letters that stand once, in their order.
    Labels implied(int dots) const {
        Labels labels, all;
        for (const Labels& term : inputs) all.insert(all.end(), term.begin(), term.end());
        for (int d = dots; d-- > 0;) labels.push_back(first_of_dots + d);
        for (int letter = 0; letter < first_of_dots; ++letter)
            if (std::count(all.begin(), all.end(), letter) == 1) labels.push_back(letter);
        return labels;
    }
    void check_output(const Call& call) const {
        std::set<int> seen;
        for (const int label : output) {
            call.check(seen.insert(label).second, "a letter stands twice in the output");
            call.check(std::any_of(inputs.begin(), inputs.end(),
                                   [&](const Labels& term) {
                                       return std::find(term.begin(), term.end(), label) !=
                                              term.end();
                                   }),
                       "a letter of the output stands in no term");
        }
    }
};

/// Sums over these dimensions, which then are gone.
Ref summed(Builder& build, Ref value, const std::vector<int>& dims, std::string_view code) {
    std::vector<std::string> axes;
    axes.reserve(dims.size());
    for (const int dim : dims) axes.push_back(cat(dim));
    const DType dtype = value->spec.dtype;
    Ints rest;
    for (int d = 0; d < value->spec.shape.rank(); ++d)
        if (std::find(dims.begin(), dims.end(), d) == dims.end())
            rest.push_back(value->spec.shape[d]);
    const Ref sum =
        build.pointwise(cat("y0 = sum[", join(axes, ","), "](", code, ")"), {value}, dtype);
    return build.reshape(sum, Shape(rest));
}

/// Takes the diagonal where a letter stands twice, and drops dimensions of size 1 that others have
/// larger.
void tidy(Call& call, Term& term, const std::vector<Term>& all) {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
        const auto again = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     term.labels.end(), term.labels[i]);
        if (again == term.labels.end()) continue;
        const auto j = static_cast<int>(again - term.labels.begin());
        const Shape& shape = term.value->spec.shape;
        call.check(shape[static_cast<int>(i)] == shape[j],
                   "a letter stands for two sizes of an input of shape ", shape.str());
        term.value =
            summed(call.build, term.value, {j}, cat("index(", i, ") == index(", j, ") ? x0 : 0"));
        term.labels.erase(again);
        --i;
    }
    for (std::size_t i = term.labels.size(); i-- > 0;) {
        const Shape& shape = term.value->spec.shape;
        const int label = term.labels[i];
        const bool others = std::any_of(all.begin(), all.end(), [&](const Term& other) {
            return other.has(label) && other.size(label) != 1;
        });
        if (shape[static_cast<int>(i)] != 1 || !others) continue;
        Ints sizes = shape.to_vector();
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i));
        term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
        term.value = call.build.reshape(term.value, Shape(sizes));
    }
}

/// Sums over the labels that neither the output nor another term needs.
void sum_own(Builder& build, Term& term, const std::function<bool(int)>& is_needed) {
    std::vector<int> dims;
    Labels rest;
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
        if (is_needed(term.labels[i]))
            rest.push_back(term.labels[i]);
        else
            dims.push_back(static_cast<int>(i));
    }
    if (dims.empty()) return;
    term.value = summed(build, term.value, dims, "x0");
    term.labels = rest;
}

/// The dimensions in the order of these labels, all of which the term has.
Ref ordered(Builder& build, const Term& term, const Labels& labels) {
    Ints order;
    for (const int label : labels) order.push_back(term.place(label));
    return build.transpose(term.value, order);
}

Labels joined(std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// The product of two terms, summed over the labels that are needed no more.
class Product {
  public:
    Product(Call& call, const Term& a, const Term& b, const std::function<bool(int)>& is_needed)
        : build_(call.build), a_(a), b_(b) {
        for (const int label : a.labels) {
            if (!b.has(label)) {
                left_.push_back(label);
                continue;
            }
            call.check(a.size(label) == b.size(label), "a letter stands for sizes ", a.size(label),
                       " and ", b.size(label));
            (is_needed(label) ? both_ : summed_).push_back(label);
        }
        for (const int label : b.labels)
            if (!a.has(label)) right_.push_back(label);
    }

    Term made() const {
        const Labels labels = joined({both_, left_, right_});
        const DType dtype = a_.value->spec.dtype;
        const bool is_matrix = !summed_.empty() && is_float(dtype) && dtype != DType::f64;
        Ints sizes;
        for (const int label : labels)
            sizes.push_back(a_.has(label) ? a_.size(label) : b_.size(label));
        return {build_.reshape(is_matrix ? matrix_product() : program(), Shape(sizes)), labels};
    }

  private:
    std::int64_t size(const Term& term, const Labels& labels) const {
        std::int64_t all = 1;
        for (const int label : labels) all *= term.size(label);
        return all;
    }
    /// [both, left, summed] times [both, summed, right].
    Ref matrix_product() const {
        const Ref a = build_.reshape(ordered(build_, a_, joined({both_, left_, summed_})),
                                     {size(a_, both_), size(a_, left_), size(a_, summed_)});
        const Ref b = build_.reshape(ordered(build_, b_, joined({both_, summed_, right_})),
                                     {size(b_, both_), size(b_, summed_), size(b_, right_)});
        return build_.add1("MatMul", {a, b});
    }
    /// [both, left, 1, summed] times [both, 1, right, summed].
    Ref program() const {
        const std::int64_t both = size(a_, both_), sums = size(a_, summed_);
        const Ref a = build_.reshape(ordered(build_, a_, joined({both_, left_, summed_})),
                                     {both, size(a_, left_), 1, sums});
        const Ref b = build_.reshape(ordered(build_, b_, joined({both_, right_, summed_})),
                                     {both, 1, size(b_, right_), sums});
        return build_.pointwise(summed_.empty() ? "y0 = x0 * x1" : "y0 = sum[3](x0 * x1)", {a, b},
                                a->spec.dtype);
    }

    Builder& build_;
    const Term &a_, &b_;
    Labels both_, left_, right_, summed_;
};

void einsum(Call& call) {
    call.check(call.inputs() >= 1, "there are no inputs");
    const Equation equation(call);
    std::vector<Term> terms;
    terms.reserve(equation.inputs.size());
    for (int i = 0; i < call.inputs(); ++i)
        terms.push_back({call.in(i), equation.inputs[static_cast<std::size_t>(i)]});
    for (Term& term : terms) tidy(call, term, terms);
    // Whether the output or a term from `begin` on, other than `except`, has the label.
    const auto is_needed = [&](int label, std::size_t begin, std::size_t except) {
        const Labels& output = equation.output;
        bool needed = std::find(output.begin(), output.end(), label) != output.end();
        for (std::size_t k = begin; k < terms.size(); ++k)
            needed = needed || (k != except && terms[k].has(label));
        return needed;
    };
    for (std::size_t i = 0; i < terms.size(); ++i)
        sum_own(call.build, terms[i], [&](int label) { return is_needed(label, 0, i); });
    Term result = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i)
        result = Product(call, result, terms[i], [&](int label) {
                     return is_needed(label, i + 1, i);
                 }).made();
    call.set(0, ordered(call.build, result, equation.output));
}

}  // namespace

std::vector<Rule> einsum_rules() {
    return {{"Einsum", 12, einsum}};
}

}  // namespace dlprim::onnx
