// SPDX-License-Identifier: MIT
// TfIdfVectorizer: how often the n-grams of a pool occur in rows of numbers or strings, on the
// host.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <map>

namespace dlprim::onnx {

namespace {

constexpr std::int64_t largest_output = std::int64_t{1} << 40;

struct Pool {
    std::map<Ints, std::int64_t> grams;  ///< the output that counts each
    std::int64_t shortest = 1, longest = 1, skips = 0, outputs = 0;
    std::string mode;
    std::vector<double> weights;  ///< by output; empty: 1

    /// Counts the grams of one row. A gram's elements are `step` apart, which a single one does not
    /// feel.
    void count(const Ints& row, std::vector<double>& counts) const {
        const std::int64_t size = std::ssize(row);
        for (std::int64_t step = 1; step <= skips + 1; ++step) {
            for (std::int64_t length = shortest; length <= longest; ++length) {
                if (length == 1 && step > 1) continue;
                // What does not fit is compared by a quotient, which cannot overflow.
                for (std::int64_t begin = 0;
                     begin < size && length - 1 <= (size - 1 - begin) / step; ++begin) {
                    Ints gram;
                    for (std::int64_t i = 0; i < length; ++i)
                        gram.push_back(row[static_cast<std::size_t>(begin + i * step)]);
                    if (const auto found = grams.find(gram); found != grams.end())
                        ++counts[static_cast<std::size_t>(found->second)];
                }
            }
            if (step > size) break;  // nothing longer fits either
        }
    }

    double result(double count, std::size_t output) const {
        const double weight = weights.empty() ? 1 : weights[output];
        return mode == "TF" ? count : mode == "IDF" ? (count > 0 ? weight : 0) : count * weight;
    }
};

/// The pool's grams: `counts` says where those of each length begin in `elements`.
void read_grams(Call& call, Pool& pool, const Ints& elements) {
    const Ints counts = call.integers("ngram_counts"), outputs = call.integers("ngram_indexes");
    // No gram of the pool is longer than it has counts for.
    pool.longest = std::min(pool.longest, std::ssize(counts));
    std::size_t gram = 0;
    for (std::size_t n = 0; n < counts.size(); ++n) {
        const std::int64_t begin = counts[n],
                           end = n + 1 < counts.size() ? counts[n + 1] : std::ssize(elements);
        const auto length = static_cast<std::int64_t>(n) + 1;
        call.check(begin >= 0 && begin <= end && end <= std::ssize(elements) &&
                       (end - begin) % length == 0,
                   "ngram_counts do not fit a pool of ", elements.size(), " elements");
        for (std::int64_t at = begin; at < end; at += length) {
            call.check(
                gram < outputs.size() && outputs[gram] >= 0 && outputs[gram] < largest_output,
                "ngram_indexes has ", outputs.size(), " entries, or one that cannot be");
            pool.grams[Ints(elements.begin() + at, elements.begin() + at + length)] =
                outputs[gram++];
        }
    }
    for (const std::int64_t output : outputs)
        pool.outputs = std::max(pool.outputs, std::min(output, largest_output) + 1);
}

Pool read_pool(Call& call) {
    Pool pool;
    pool.shortest = call.integer("min_gram_length", 1);
    pool.longest = call.integer("max_gram_length", 1);
    pool.skips = call.integer("max_skip_count", 0);
    pool.mode = call.text("mode", "TF");
    pool.weights = call.numbers("weights");
    call.check(pool.shortest >= 1 && pool.longest >= pool.shortest && pool.skips >= 0,
               "min_gram_length, max_gram_length and max_skip_count are ", pool.shortest, ", ",
               pool.longest, " and ", pool.skips);
    call.check(pool.mode == "TF" || pool.mode == "IDF" || pool.mode == "TFIDF", "mode '", pool.mode,
               "' is none of TF, IDF and TFIDF");
    const std::vector<std::string> texts = call.texts("pool_strings");
    Ints elements = call.integers("pool_int64s");
    if (call.in(0)->strings)
        elements = to_integers(*call.build.strings("", {std::ssize(texts)}, texts)->known);
    read_grams(call, pool, elements);
    call.check(pool.weights.empty() || std::ssize(pool.weights) == pool.outputs, "weights has ",
               pool.weights.size(), " entries for ", pool.outputs, " outputs");
    return pool;
}

void vectorize(Call& call) {
    const Shape& shape = call.shape(0);
    call.check(shape.rank() == 1 || shape.rank() == 2, "the input has shape ", shape.str(),
               "; it must be [C] or [N, C]");
    call.check(!is_float(call.dtype(0)), "the input is ", name_of(call.dtype(0)),
               "; it must be integers or strings");
    const Pool pool = read_pool(call);
    const Shape made = shape.rank() == 1 ? Shape{pool.outputs} : Shape{shape[0], pool.outputs};
    call.build.claim(made, DType::f64);
    const auto function = [pool, made](const std::vector<HostValue>& inputs) {
        const Ints all = to_integers(*inputs[0]);
        const auto length = static_cast<std::ptrdiff_t>(inputs[0]->shape[-1]);
        std::vector<double> results;
        for (std::ptrdiff_t at = 0; length > 0 && at < std::ssize(all); at += length) {
            std::vector<double> counts(static_cast<std::size_t>(pool.outputs));
            pool.count(Ints(all.begin() + at, all.begin() + at + length), counts);
            for (std::size_t i = 0; i < counts.size(); ++i)
                results.push_back(pool.result(counts[i], i));
        }
        results.resize(static_cast<std::size_t>(made.numel()));  // rows without elements
        return std::vector{host_numbers(made, results, DType::f32)};
    };
    const std::vector<Ref> results =
        call.on_host({call.in(0)}, function, "n-grams are counted on the host");
    call.set(0, results[0]);
}

}  // namespace

std::vector<Rule> tfidf_rules() {
    return {{"TfIdfVectorizer", 9, vectorize, Rule::Strings::own}};
}

}  // namespace dlprim::onnx
