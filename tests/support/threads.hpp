// SPDX-License-Identifier: MIT
// Threads of tests. Results are checked afterwards, because Catch2 supports only one thread.
#pragma once

#include <dlprim/error.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace dlprim::testing {

/// Calls work(0), ..., work(count - 1) in one thread each. The threads start together. If one
/// throws, so does this function, when all have ended.
inline void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::latch start(static_cast<std::ptrdiff_t>(count));
    std::vector<std::exception_ptr> errors(count);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < count; ++i)
        running.emplace_back([&, i] {
            start.arrive_and_wait();
            try {
                work(i);
            } catch (...) {
                errors[i] = std::current_exception();
            }
        });
    for (std::thread& thread : running) thread.join();
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
}

/// The same, with the message of the Error that each has thrown; empty where there is none.
inline std::vector<std::string> thrown_in_threads(std::size_t count,
                                                  const std::function<void(std::size_t)>& work) {
    std::vector<std::string> thrown(count);
    in_threads(count, [&](std::size_t i) {
        try {
            work(i);
        } catch (const Error& error) {
            thrown[i] = error.what();
        }
    });
    return thrown;
}

}  // namespace dlprim::testing
