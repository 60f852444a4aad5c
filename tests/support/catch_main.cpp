// SPDX-License-Identifier: MIT
// main() of the test programs: Catch2 2 makes it here, Catch2 3 brings its own.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#else
namespace dlprim::testing {
extern const int catch_brings_its_own_main = 3;
}
#endif
