// SPDX-License-Identifier: MIT
// Contexts that static objects hold end with the process, after the library's first exit handler
// and before its last one: a program that ends by SIGSEGV fails.
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"

using namespace dlprim;

TEST_CASE("A static object may hold the last reference to a context") {
    // The first handler is registered when a device is opened, the other one when its compiler is
    // used. Static objects that are made between the two end between the two.
    static std::vector<Context> kept = opencl_contexts();
    int number = 1;
    for (const Context& context : kept) {
        const float more = static_cast<float>(number);
        CHECK(run_adds(context, Access::impl(context).build(adds(number))) == 3 + more);
        ++number;
    }
}
