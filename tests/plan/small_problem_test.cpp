// SPDX-License-Identifier: MIT
// The smaller problems on which engines are checked: fewer samples, and shorter dimensions.
#include "check/small_problem.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"
#include "support/catch.hpp"

using namespace dlprim;

namespace {

/// An engine of plain layouts that takes every problem.
class AnyProblem : public Engine {
  public:
    AnyProblem() : Engine("inner_product.any", "InnerProduct", false) {}
    Verdict is_applicable(const Traits&, const Problem&) const override { return Verdict::yes(); }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return 0; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem&, const Tuning&) const override {
        return nullptr;
    }
};

/// An InnerProduct of `samples` rows of `inputs` numbers, with `outputs` rows of weights.
Problem inner_product(std::int64_t samples, std::int64_t inputs, std::int64_t outputs) {
    Problem problem;
    problem.op = "InnerProduct";
    const std::string options = R"({"bias": false, "outputs": )" + std::to_string(outputs) + "}";
    problem.attrs = OperatorRegistry::instance()
                        .complete("InnerProduct", parse_options_json(options), "")
                        .attrs;
    for (const Shape& shape : {Shape{samples, inputs}, Shape{outputs, inputs}}) {
        Operand operand;
        operand.shape = shape;
        problem.inputs.push_back(operand);
    }
    Operand output;
    output.shape = Shape{samples, outputs};
    problem.outputs.push_back(output);
    return problem;
}

bool any(const Problem&) {
    return true;
}

std::optional<Problem> smaller(const Problem& problem, bool cuts_dimensions = true,
                               const Suits& suits = any) {
    const AnyProblem engine;
    return smaller_problem(Traits{}, engine, problem, {}, cuts_dimensions, suits);
}

}  // namespace

TEST_CASE(
    "weights that are packed are of a smaller problem where only long sizes differ in the tag") {
    class Packs : public AnyProblem {
      public:
        std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
            const Shape& weight = problem.inputs[1].shape;
            const std::string lanes = weight[0] > 1000 ? wide_lanes : "16";
            const std::string tag =
                "n" + std::to_string(weight[0]) + "k" + std::to_string(weight[1]) + "w" + lanes;
            const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(weight.numel());
            return {{{Layout::plain(), Layout::packed(tag, bytes)}, {Layout::plain()}}};
        }
        std::string wide_lanes = "16";
    };
    Packs engine;
    const auto cut = [&] {
        Problem problem = inner_product(64, 768, 50257);
        problem.inputs[1].layout = engine.layouts(Traits{}, problem)[0].inputs[1];
        return smaller_problem(Traits{}, engine, problem, {}, true, any).value();
    };
    CHECK(cut().inputs[1].shape == Shape{128 + 50257 % 64, 768});
    engine.wide_lanes = "32";  // another layout, and not another size
    CHECK(cut().inputs[1].shape[0] == 50257);
}

TEST_CASE("strided operands of a smaller problem lie within each other as in the given one") {
    class AsGiven : public AnyProblem {
      public:
        std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
            return {{{problem.inputs[0].layout, problem.inputs[1].layout}, {Layout::plain()}}};
        }
    };
    Problem problem = inner_product(64, 20, 30);
    problem.inputs[0].layout = Layout::strided({1, 128}, true);  // transposed, with gaps
    const auto small = smaller_problem(Traits{}, AsGiven(), problem, {}, true, any);
    REQUIRE(small);
    CHECK(small->inputs[0].layout == Layout::strided({1, 2}, true));
    CHECK(small->inputs[1].layout.is_plain());
    CHECK_FALSE(smaller(problem));  // its engine takes plain operands only
}

TEST_CASE("a smaller problem has two samples") {
    const auto small = smaller(inner_product(64, 20, 30));
    REQUIRE(small);
    CHECK(small->inputs[0].shape == Shape{2, 20});
    CHECK(small->inputs[1].shape == Shape{30, 20});
    CHECK(small->outputs[0].shape == Shape{2, 30});
    CHECK_FALSE(smaller(inner_product(2, 20, 30)));
}

TEST_CASE("it has more samples if the engine has other programs for so few") {
    const auto needs = [](std::int64_t samples) {
        return [=](const Problem& problem) { return problem.outputs[0].shape[0] >= samples; };
    };
    CHECK(smaller(inner_product(1000, 20, 30), true, needs(10))->inputs[0].shape == Shape{16, 20});
    CHECK(smaller(inner_product(1000, 20, 30), true, needs(90))->inputs[0].shape == Shape{128, 20});
    CHECK_FALSE(smaller(inner_product(1000, 20, 30), true, needs(900)));
}

TEST_CASE("long dimensions become short where many elements are left") {
    const auto small = smaller(inner_product(64, 768, 50257));
    REQUIRE(small);
    CHECK(small->inputs[0].shape == Shape{2, 768});  // a million elements are not left any more
    CHECK(small->inputs[1].shape == Shape{128 + 17, 768});
    CHECK(small->outputs[0].shape == Shape{2, 128 + 17});
    CHECK(small->attrs.integer("outputs") == 128 + 17);

    SECTION("unless one program is wanted for each size") {
        const auto whole = smaller(inner_product(64, 768, 50257), false);
        REQUIRE(whole);
        CHECK(whole->inputs[1].shape == Shape{50257, 768});
    }
    SECTION("unless the engine has another program for them") {
        const auto long_rows = [](const Problem& problem) {
            return problem.outputs[0].shape[1] > 1000;
        };
        const auto whole = smaller(inner_product(64, 768, 50257), true, long_rows);
        REQUIRE(whole);
        CHECK(whole->inputs[1].shape == Shape{50257, 128});
    }
}
