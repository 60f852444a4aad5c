// SPDX-License-Identifier: MIT
// Diagnosis: what a device measures, whether its engines compute what the operators' oracles do,
// and which engines earlier checks have found wrong. The command dlprim_doctor prints these.
//
// Threads: one thread at a time for a context, as for nets (dlprim/context.hpp).
//
// Waiting: every call waits for the device. self_test() compiles kernels and can take a minute.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Measured rates of a device. 0: not measured.
struct Peaks {
    double gflops = 0;        ///< fp32 multiply-adds, in 10^9 operations (two each) per second
    double gbytes_per_s = 0;  ///< a copy in device memory, read and write, in 10^9 bytes per second
    double launch_us = 0;     ///< one of many small kernels that are enqueued one after the other
    double wait_us = 0;       ///< one small kernel, from its enqueue to the end of the wait for it
};
/// Measures for about a quarter of a second. Throws Error(build) or Error(device) where the device
/// cannot run the kernels.
Peaks measure_peaks(const Context& context);

/// What a check of an engine has found before the engine was used for the first time on a device
/// (docs/engines/trust.md).
struct EngineTrust {
    enum class Kind { right, wrong, unknown };
    Kind kind = Kind::right;
    std::string engine;
    std::string reason;  ///< of wrong, and of unknown: why nothing could be compared
};
/// All checks of engines on this device, of this process and of earlier ones with the same cache
/// folder, one for each kernel. Engines that were found wrong are not used.
std::vector<EngineTrust> engine_trust(const Context& context);

/// A small problem of an operator that is built into the library.
struct SelfTestCase {
    std::string type;        ///< the operator's, or another name of it: "Convolution2D"
    std::string name;        ///< of the case, unique among those of the type: "depthwise"
    std::string meant = {};  ///< the operator's type: "Convolution"
};
/// All built-in cases, at least one for every operator that networks may name.
std::vector<SelfTestCase> self_test_cases();

/// What came of one engine in one case.
struct SelfTestRow {
    enum class Outcome {
        right,    ///< as the oracle, within rounding
        wrong,    ///< differs from the oracle
        failed,   ///< does not build or run; an application gets another engine
        skipped,  ///< the device lacks what the case needs
    };
    Outcome outcome = Outcome::right;
    std::string type;       ///< the operator
    std::string test_case;  ///< SelfTestCase::name
    std::string engine;     ///< the engine that was forced, or "" for the library's own choice
    std::vector<std::string> ran;  ///< every engine that ran in this call
    bool gradient = false;         ///< whether these are the gradients of the operator
    double error = 0;    ///< the largest relative L2 distance from the oracle among the results
    std::string reason;  ///< of all but `right`
};
/// "right", "wrong", "failed" or "skipped".
std::string_view name_of(SelfTestRow::Outcome outcome);

struct SelfTestOptions {
    bool engines = true;  ///< whether to try every engine, or only the one that the library chooses
    bool gradients = true;  ///< whether to test gradients
};
/// Runs a case forward and backward: as the library chooses, and with every other engine of the
/// device that applies. Compares the results with the operator's oracle, which is naive code of the
/// host in double. The rows of the library's own choices come first. Throws Error(not_found) for an
/// unknown case, Error(invalid_argument), which offers the nearest one, for an unknown operator,
/// and nothing for what engines do.
std::vector<SelfTestRow> self_test(const Context& context, const SelfTestCase& one,
                                   const SelfTestOptions& options = {});

}  // namespace dlprim
