// SPDX-License-Identifier: MIT
// The library's machine-readable text under locales that a program may set: numbers in keys,
// programs, kernels and files are written and read as in the classic locale.
#include "locale/locales.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "engine/database.hpp"
#include "engine/epilogue.hpp"
#include "engine/float_literal.hpp"
#include "engine/pointwise/kernels.hpp"
#include "engine/pointwise/program.hpp"
#include "formats/json_net.hpp"
#include "formats/json_tree.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "train/history.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>

using namespace dlprim;

namespace {

using dlprim::testing::set_locale;

/// A 1x1 convolution's result in a program: sizes, strides and literals of more than three digits.
Problem pointwise_problem() {
    Problem problem;
    problem.op = "Pointwise";
    problem.attrs.set("code",
                      std::string("y0 = x0 * 0.12345678 + 1234567.5; y1 = sum[0,2](x0 * 1e-7)"));
    problem.attrs.set("keep_dim", false);
    problem.attrs.set("shape", Ints{});
    problem.attrs.set("scalars", Doubles{0.25});
    const Shape shape{1280, 1001, 1023};
    problem.inputs = {{shape}};
    problem.outputs = {{shape}, {Shape{1001}}};
    return problem;
}

Problem with_alpha(double alpha) {
    Problem problem = pointwise_problem();
    problem.epilogue = {{EpilogueStage::Kind::activation, -1, "leaky_relu", alpha, 0}};
    return problem;
}

std::string metrics_read_back(const std::string& folder) {
    RunHistory written{.metrics = {"accuracy"}, .tested = true, .epochs = {}}, read = written;
    written.epochs.push_back({1, 1e-5, 1234.5678, {0.125}, 0.1, {0.5}, 1234567.25});
    write_metrics(folder, written);
    read_metrics(folder, read);
    std::string text = read_file(folder + "/metrics.csv");
    for (const EpochMetrics& e : read.epochs)
        text += cat(e.epoch, ' ', exact(e.learning_rate), ' ', exact(e.train_loss), ' ',
                    exact(e.test_loss), ' ', exact(e.seconds));
    return text;
}

/// Texts of all kinds, by name.
std::vector<std::pair<std::string, std::string>> texts(const std::string& folder) {
    std::vector<std::pair<std::string, std::string>> all;
    all.emplace_back("cat", cat(1234567, ' ', -9876543210, ' ', 0.5, ' ', 1e10, ' ', 1234.5f, ' ',
                                std::size_t{1000}, ' ', true, 'c'));
    all.emplace_back("exact", cat(exact(0.1234567), ' ', exact(1234567.875), ' ', exact(0.01)));
    all.emplace_back("fixed", fixed(1234567.25, 1));
    all.emplace_back("read", exact(leading_number(" 1234.5 MHz", 0.0)));
    all.emplace_back("literal", cat(float_literal(0.01), ' ', float_literal(-1234567)));
    all.emplace_back("shape", Shape{1000, 2000000}.str());
    all.emplace_back("key", with_alpha(0.1234567).key());
    const Problem problem = pointwise_problem();
    const std::string code = problem.attrs.text("code");
    all.emplace_back("program", pointwise::print(pointwise::parse(code)));
    Traits gpu, processor;
    gpu.max_work_group = 1024;
    processor.vector_width = 8;
    for (const pointwise::Job& job : pointwise::make_jobs(problem, true)) {
        all.emplace_back("group kernel", pointwise::group_kernel(job, gpu, 0).source);
        all.emplace_back("vector kernel", pointwise::vector_kernel(job, processor, 0).source);
    }
    all.emplace_back(
        "epilogue",
        with_epilogue("EPILOGUE_PARAMETERS", {{EpilogueStage::Kind::activation, -1, "elu", 0.25}}));
    const Attrs options = parse_options_json(R"({"a": 0.25, "b": 1234567, "c": [1.5, 1e-7]})");
    all.emplace_back("options", options.str());
    all.emplace_back("JSON", write_options_json(options));
    const DatabaseRow row{"d", "p", "v", "k", "s", {"e", "nchw", {{"rows", 4096}}, 0.00125, false}};
    const auto rows = parse_database(print_database({row}), "rows");
    all.emplace_back("database", print_database(rows));
    all.emplace_back("metrics", metrics_read_back(folder));
    return all;
}

}  // namespace

TEST_CASE("text is the same in every locale") {
    const auto folder =
        std::filesystem::temp_directory_path() / ("dlprim_text_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    set_locale("classic");
    const auto expected = texts(folder.string());
    CHECK(expected[0].second == "1234567 -9876543210 0.5 1e+10 1234.5 1000 1c");
    CHECK(expected[1].second == "0.1234567 1234567.875 0.01");
    CHECK(expected[2].second == "1234567.2");
    CHECK(expected[3].second == "1234.5");
    CHECK(expected[4].second == "0.01f -1234567.0f");
    for (const char* which : {"comma groups", "point groups", "setlocale"}) {
        if (!set_locale(which)) {
            std::cout << "no C locale of Germany here: " << which << " was not tried\n";
            continue;
        }
        // Check that the locale is active, so that the checks below can fail.
        std::ostringstream streamed;
        streamed << 1234567;
        char printed[32];
        std::snprintf(printed, sizeof printed, "%.1f", 0.5);
        const bool in_force = streamed.str() != "1234567" || printed[1] == ',';
        const auto found = texts(folder.string());
        set_locale("classic");
        INFO(which);
        CHECK(in_force);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            INFO(expected[i].first);
            CHECK(found[i].second == expected[i].second);
        }
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("JSON is read alike in every locale, and errors say the same") {
    for (const char* which : {"classic", "comma groups", "point groups", "setlocale"}) {
        if (!set_locale(which)) continue;
        const std::string large =
            testing::message_of([&] { parse_options_json("{\"a\": 99999999999999999999}"); });
        const double number = parse_options_json("{\"a\": 1234.0625}").number("a");
        set_locale("classic");
        INFO(which);
        CHECK(number == 1234.0625);
        CHECK_THAT(large, ContainsSubstring("does not fit 64 bits"));
    }
}

TEST_CASE("numbers are written as the standard streams write them in the classic locale") {
    std::mt19937_64 bits(7);
    const auto differs = [](double value) {
        std::ostringstream stream, single;
        stream << value;
        single << static_cast<float>(value);
        return cat(value) != stream.str() || cat(static_cast<float>(value)) != single.str();
    };
    int wrong = 0, lost = 0;
    const auto lose = [](double value) {
        return leading_number(exact(value), std::numeric_limits<double>::quiet_NaN()) != value;
    };
    for (int i = 0; i < 200000; ++i) {
        const std::uint64_t some = bits();
        double any;
        std::memcpy(&any, &some, 8);
        wrong += differs(any) + differs(static_cast<double>(some % 2000000) - 1e6) +
                 differs(static_cast<double>(some % 1000000007) / 1e6);
        lost += std::isfinite(any) && lose(any);
        lost += lose(static_cast<double>(some % 1000000007) / 1e6);
    }
    for (const double value : {0.0, -0.0, 1e5, 1e6, 999999.5, 999999.4, 1e-4, 1e-5, 0.00009999995,
                               static_cast<double>(INFINITY), -static_cast<double>(INFINITY),
                               static_cast<double>(NAN), 5e-324, 1.7976931348623157e308})
        wrong += differs(value);
    CHECK(wrong == 0);
    CHECK(lost == 0);
}

TEST_CASE("numbers that differ have keys that differ") {
    CHECK(with_alpha(0.1234567).key() != with_alpha(0.1234568).key());
    // Keys of shipped databases: numbers of up to six digits are unchanged.
    CHECK_THAT(with_alpha(0.01).key(), ContainsSubstring(" leaky_relu(0.01,0)"));
    CHECK_THAT(with_alpha(100000).key(), ContainsSubstring(" leaky_relu(100000,0)"));
    CHECK(float_literal(0.1234567) != float_literal(0.1234568));
    CHECK(float_literal(1e39) == "INFINITY");
    CHECK(float_literal(3.4028235677973366e38) == "INFINITY");
    CHECK(float_literal(3.4028234e38) == "3.4028235e+38f");
}
