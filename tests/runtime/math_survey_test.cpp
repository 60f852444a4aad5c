// SPDX-License-Identifier: MIT
// Which functions of a driver are wrong, and our texts that take their place: they are compared
// with the C++ library's over edges and random numbers.
#include "runtime/math_survey.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/opencl_builds.hpp"

#include <cmath>
#include <iomanip>
#include <limits>

using namespace dlprim;

namespace {

/// The programs of an OpenCL device, without a cache unless a folder is given.
struct Device {
    Device(const OpenCLDevice& found, const BinaryCache& disk)
        : context(found.info.id),
          cl(static_cast<cl_context>(Access::impl(context).cl_context_handle())),
          id(static_cast<cl_device_id>(found.device)),
          builds(found, cl, disk, counters) {}

    Context context;
    cl_context cl;
    cl_device_id id;
    Counters counters;
    OpenCLBuilds builds;
};

/// The number of wrong results, of which it tells the first.
template <typename T>
int count_wrong(Device& device, const MathFunction& function) {
    const MathTrial<T> trial = math_trial<T>(function, 2048);
    const std::vector<T> y = device.builds.math().results_of(function, trial, true);
    const std::size_t parts = device.context.info().kind == DeviceKind::cpu ? 5 : 2;
    REQUIRE(y.size() == parts * trial.a.size());
    int wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t at = i % trial.a.size();
        if (is_right(function, trial, at, y[i])) continue;
        if (wrong++ == 0)
            UNSCOPED_INFO(std::setprecision(17)
                          << function.name << "(" << trial.a[at] << ", " << trial.b[at] << ") is "
                          << y[i] << ", part " << i / trial.a.size());
    }
    return wrong;
}

/// One number and what a function gives for it.
template <typename T>
bool accepts(const char* name, T a, T b, T result) {
    MathTrial<T> trial;
    trial.a = {a};
    trial.b = {b};
    trial.edges = 1;
    return is_right(*find_math_function(name), trial, 0, result);
}

const ProgramSource calls_tanh{
    "calls tanh",
    "kernel void run(global float* x) { x[0] = tanh(x[0]); vstore4(tanh(vload4(0, x)), 0, x); }",
    ""};

}  // namespace

TEST_CASE("a result that is not right is seen") {
    CHECK(accepts("tanh", 10.0f, 0.0f, 1.0f));
    CHECK_FALSE(accepts("tanh", 10.0f, 0.0f, 0.99999994f));
    CHECK(accepts("erf", -6.0, 0.0, -1.0));
    CHECK_FALSE(accepts("erf", -6.0, 0.0, std::nextafter(-1.0, 0.0)));
    CHECK(accepts("pow", 13.0, 4.0, 28561.0));
    CHECK_FALSE(accepts("pow", 13.0, 4.0, 28560.999999999996));
    CHECK(accepts("exp2", 10.0f, 0.0f, 1024.0f));
    CHECK_FALSE(accepts("exp2", 10.0f, 0.0f, 1024.0001f));
    CHECK(accepts("fmod", -8.0, 5.0, -3.0));
    CHECK_FALSE(accepts("fmod", -8.0, 5.0, -0.5));
    CHECK_FALSE(accepts("sin", 1.0f, 0.0f, 0.841472f));
    CHECK(accepts("sin", 1.0f, 0.0f, std::nextafter(std::sin(1.0f), 2.0f)));
    CHECK(accepts("log", 0.0f, 0.0f, -INFINITY));
    CHECK_FALSE(accepts("log", -1.0f, 0.0f, 0.0f));
    CHECK_FALSE(accepts("exp", 1.0f, 0.0f, NAN));
    CHECK_FALSE(accepts("exp", -200.0f, 0.0f, 1e-20f));
}

TEST_CASE("our texts of functions are right for numbers and for vectors") {
    const testing::Variable whose("DLPRIM_FUNCTIONS", "own");  // those that others need, too
    for (const OpenCLDevice& found : opencl_devices()) {
        Device device(found, BinaryCache());
        for (const MathFunction& function : math_functions()) {
            INFO(found.info.str() << ", " << function.name);
            CHECK(count_wrong<float>(device, function) == 0);
            if (found.traits.fp64) CHECK(count_wrong<double>(device, function) == 0);
        }
    }
}

TEST_CASE("programs that call functions get our texts, and have other keys") {
    for (const OpenCLDevice& found : opencl_devices()) {
        const std::string drivers = [&] {
            const testing::Variable whose("DLPRIM_FUNCTIONS", "driver");
            Device device(found, BinaryCache());
            CHECK(device.builds.math().corrected(calls_tanh).source == calls_tanh.source);
            return device.builds.key_of(calls_tanh);
        }();
        const testing::Variable whose("DLPRIM_FUNCTIONS", "own");
        Device device(found, BinaryCache());
        const std::string text = device.builds.math().corrected(calls_tanh).source;
        CHECK(text.find("#define tanh dlprim_tanh\n") != std::string::npos);
        CHECK(text.find("double4") == std::string::npos);
        CHECK(text.find("dlprim_exp(OWN_REAL x)") < text.find("dlprim_tanh(OWN_REAL x)"));
        CHECK(text.substr(text.size() - calls_tanh.source.size()) == calls_tanh.source);
        CHECK(device.builds.key_of(calls_tanh) != drivers);
        clReleaseProgram(device.builds.make(calls_tanh));
        ProgramSource in_option = calls_tanh;
        in_option.source = "kernel void run(global float* x) { x[0] = ACTIVATION(x[0]); }";
        CHECK(device.builds.math().corrected(in_option).source == in_option.source);
        in_option.options = "-DACTIVATION(v)=tanh(v)";
        CHECK(device.builds.math().corrected(in_option).source != in_option.source);
    }
    const testing::Variable whose("DLPRIM_FUNCTIONS", "mine");
    for (const OpenCLDevice& found : opencl_devices())
        CHECK_THROWS_AS(Context(found.info.id), Error);
}

TEST_CASE("a driver's functions are tried once, and what is found is kept") {
    for (const OpenCLDevice& found : opencl_devices()) {
        const CacheFolder folder;
        Device device(found, BinaryCache(folder.path() / "kernels"));
        int tried = 0;
        const auto survey = [&](bool tries) {
            return std::make_unique<MathSurvey>(
                device.builds, device.cl, device.id,
                [&](const ProgramSource& source) {
                    ++tried;
                    return device.builds.make(source);
                },
                tries);
        };
        const auto reader = survey(false);
        CHECK(reader->corrected(calls_tanh).source == calls_tanh.source);
        CHECK(tried == 0);
        const auto first = survey(true);
        const ProgramSource other{"calls nothing", "kernel void run(global float* tanh) {}", ""};
        CHECK(first->corrected(other).source == other.source);
        CHECK(tried == 0);
        const std::string text = first->corrected(calls_tanh).source;
        // Ours is tried only where the driver's is wrong.
        const int needed = text == calls_tanh.source ? 1 : 2;
        CHECK(tried == needed);
        CHECK(first->corrected(calls_tanh).source == text);
        CHECK(survey(true)->corrected(calls_tanh).source == text);
        CHECK(reader->corrected(calls_tanh).source == text);
        CHECK(tried == needed);
    }
}

TEST_CASE("a driver that cannot be tried keeps its functions") {
    for (const OpenCLDevice& found : opencl_devices()) {
        Device device(found, BinaryCache());
        int tried = 0;
        MathSurvey survey(
            device.builds, device.cl, device.id,
            [&](const ProgramSource&) -> cl_program {
                ++tried;
                fail(ErrorKind::build, "it does not build");
            },
            true);
        for (int again = 0; again < 2; ++again)
            CHECK(survey.corrected(calls_tanh).source == calls_tanh.source);
        CHECK(tried == 1);
    }
}
