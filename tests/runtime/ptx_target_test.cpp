// SPDX-License-Identifier: MIT
// What the runtime makes of PTX whose lines are marked (runtime/ptx_target.hpp).
#include "runtime/ptx_target.hpp"
#include "support/catch.hpp"

using namespace dlprim;

TEST_CASE("Marked lines of PTX become instructions, and the target is the one that has them") {
    const std::string ptx =
        ".target sm_90\n.entry kernel()\n.reqntid 256, 1, 1\n{\n"
        "//@sm_90a wgmma.fence.sync.aligned;\nret;\n}\n";
    REQUIRE(wants_ptx_target(ptx));
    CHECK(with_ptx_target(ptx) ==
          ".target sm_90a\n.entry kernel()\n.reqntid 256, 1, 1\n{\n"
          "wgmma.fence.sync.aligned;\nret;\n}\n");
    CHECK_FALSE(wants_ptx_target("ret;"));
    CHECK_FALSE(with_ptx_target(".target sm_86\n//@sm_90a wgmma.fence.sync.aligned;\n"));
}

TEST_CASE("A kernel may ask that two of its work-groups fit a compute unit") {
    const std::string ptx =
        ".target sm_90\n.entry kernel()\n.reqntid 256, 1, 1\n{\n"
        "//@resident 2\n//@sm_90a wgmma.fence.sync.aligned;\n}\n";
    CHECK(with_ptx_target(ptx) ==
          ".target sm_90a\n.entry kernel()\n.minnctapersm 2\n.reqntid 256, 1, 1\n{\n"
          "//@resident 2\nwgmma.fence.sync.aligned;\n}\n");
}
