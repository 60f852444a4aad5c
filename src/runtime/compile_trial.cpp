// SPDX-License-Identifier: MIT
// compiles_in_turn: three programs at once take about as long as one, or as long as three.
#include "runtime/compile_trial.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace dlprim {
namespace {

constexpr int at_once = 3;
constexpr int rounds = 2;

using Seconds = std::chrono::duration<double>;

template <typename Work>
double seconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return Seconds(std::chrono::steady_clock::now() - start).count();
}

/// Calls `compile` on three threads. Returns whether all calls worked.
bool compile_at_once(const std::function<void(int)>& compile, int first) {
    std::atomic<int> worked{0};
    std::vector<std::thread> threads;
    try {
        for (int i = 0; i < at_once; ++i)
            threads.emplace_back([&, i] {
                try {
                    compile(first + i);
                    ++worked;
                } catch (const std::exception&) {
                    // It is missing from `worked`.
                }
            });
    } catch (const std::system_error&) {
        // The rest is missing from `worked`.
    }
    for (std::thread& thread : threads) thread.join();
    return worked == at_once;
}

}  // namespace

bool compiles_in_turn(const std::function<void(int number)>& compile) {
    int number = 0;
    for (int round = 0; round < rounds; ++round) {
        // Other load on the machine makes times longer, never shorter. So a single round in which
        // programs were compiled at the same time proves that the driver can do that. The first
        // program may also wait until the compiler is loaded, hence the smaller of two times.
        double alone = 1e9;
        for (int i = 0; i < 2; ++i) alone = std::min(alone, seconds_of([&] { compile(number++); }));
        bool worked = false;
        const double together = seconds_of([&] { worked = compile_at_once(compile, number); });
        number += at_once;
        log(LogLevel::debug, cat("trial of the compiler: ", alone, " s for a program, ", together,
                                 " s for ", at_once, " at once"));
        if (!worked || together < 2 * alone) return false;
    }
    return true;
}

bool compiles_in_turn(const CompileTarget& target) {
    if (target.compiles_at_launch()) return true;
    const std::string key = cat(target.device_key(), "compiles one program at a time");
    if (const auto known = target.disk().load(key)) return *known == "yes";
    bool in_turn = false;
    try {
        in_turn = compiles_in_turn([&](int number) { target.try_compiling(number); });
    } catch (const std::exception& error) {
        // Memory has run out, for example. The next start tries again.
        log(LogLevel::info, cat("trial of the compiler: ", error.what()));
        return false;
    }
    target.disk().save(key, in_turn ? "yes" : "no");
    return in_turn;
}

}  // namespace dlprim
