// SPDX-License-Identifier: MIT
// main() of the test programs for Catch2 2; Catch2 3 has its own.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#else
namespace dlprim::testing {
extern const int catch_brings_its_own_main = 3;
}
#endif
