// SPDX-License-Identifier: MIT
// What the generators of random problems use: dice, and the draft of a case. For each family of
// operators one function (random_<family>.cpp) lists the generators by operator type.
#pragma once

#include "support/cases.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace dlprim::testing {

using Json = nlohmann::json;

/// Random choices, the same with every compiler.
class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {}
    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool coin() { return random_() % 2 == 0; }
    template <typename T>
    const T& of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
    }
    double number(double low, double high) {
        // Few digits, so that JSON stores the number exactly.
        return static_cast<double>(pick(static_cast<std::int64_t>(low * 64),
                                        static_cast<std::int64_t>(high * 64))) /
               64;
    }
    std::vector<std::int64_t> dims(std::int64_t rank, std::int64_t most) {
        std::vector<std::int64_t> result;
        for (std::int64_t i = 0; i < rank; ++i) result.push_back(pick(1, most));
        return result;
    }

  private:
    std::mt19937 random_;
};

/// The case that a generator fills in.
struct Draft {
    Dice& dice;
    Case& one;
    Json options = Json::object();

    CaseTensor& input(const std::vector<std::int64_t>& dims, const std::string& fill = "normal") {
        CaseTensor tensor;
        tensor.shape = Shape(dims);
        tensor.fill = fill;
        one.inputs.push_back(tensor);
        return one.inputs.back();
    }
    CaseTensor& labels(const std::vector<std::int64_t>& dims, std::int64_t classes) {
        CaseTensor& tensor = input(dims, "labels");
        tensor.classes = classes;
        tensor.dtype = dice.of<DType>({DType::f32, DType::i32, DType::i64});
        return tensor;
    }
    /// Sets an option in some of the cases. Otherwise it keeps its default.
    void maybe(const char* name, const Json& value) {
        if (dice.coin()) options[name] = value;
    }
};

using Generators = std::map<std::string, std::function<void(Draft&)>, std::less<>>;

Generators window_generators();
Generators product_generators();
Generators movement_generators();
Generators pointwise_generators();

/// Names of activations that operators accept as an option.
const std::vector<std::string>& activations();

/// [N, C, ...] of rank 2 to 4.
std::vector<std::int64_t> features(Dice& dice, std::int64_t channels);

}  // namespace dlprim::testing
