// SPDX-License-Identifier: MIT
// Choosing a device by text, messages if it does not exist, and DLPRIM_TRAITS.
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/errors.hpp"

#include <dlprim/context.hpp>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

using namespace dlprim;
using testing::Variable;

namespace {

std::string complaint(std::string_view device, ErrorKind kind) {
    return testing::message_of(kind, [&] { const Context context(device); });
}

}  // namespace

TEST_CASE("devices are found by place, kind and name") {
    CHECK(Context("cpu").traits().host);
    CHECK(Context::devices().back().id == "cpu");
    const Variable unset("DLPRIM_DEVICE", "");
    for (const DeviceInfo& info : Context::devices()) {
        CHECK(Context(info.id).info().name == info.name);
        if (info.kind == DeviceKind::host) continue;
        CHECK(Context("opencl").info().kind != DeviceKind::host);
        CHECK(Context().info().id == Context("opencl").info().id);
        CHECK_NOTHROW(Context(info.platform.substr(1)));
        const Traits traits = Context(info.id).traits();
        CHECK(traits.vector_width >= 1);
        CHECK(traits.base_align_bytes >= 64);
        CHECK(traits.max_work_group >= 1);
        CHECK(traits.gflops > 0);
    }
}

TEST_CASE("devices are told apart and found without opening them") {
    const Variable unset("DLPRIM_DEVICE", "");
    std::set<std::string> texts;
    for (const DeviceInfo& info : Context::devices()) {
        CHECK(info.memory_mib > 0);
        CHECK(info.str().find(info.id + " (" + info.name + ", ") == 0);
        CHECK(texts.insert(info.str()).second);
        CHECK(Context::find(info.id).str() == info.str());
        CHECK(name_of(info.kind) ==
              (info.id == "cpu" ? "host" : name_of(Context(info.id).info().kind)));
        const Variable chosen("DLPRIM_DEVICE", info.id.c_str());
        CHECK(Context::find().id == info.id);
    }
    CHECK(Context::find().id == Context().info().id);
    CHECK(Context::find("cpu").str().find("the host)") != std::string::npos);
    CHECK_THROWS_AS(Context::find("no such device"), Error);
    CHECK(Context::troubles().empty());
}

TEST_CASE("a device that is not there gets the list of those that are") {
    for (const char* name : {"99:0", "0:99", "no such device", ":", "1:", "0:0:0"}) {
        const std::string text = complaint(name, ErrorKind::not_found);
        CHECK(text.find(std::string("'") + name + "'") != std::string::npos);
        CHECK(text.find("cpu = ") != std::string::npos);
    }
    const Variable device("DLPRIM_DEVICE", "nonsense");
    CHECK(complaint("", ErrorKind::not_found).find("DLPRIM_DEVICE") != std::string::npos);
}

TEST_CASE("without a platform the host serves", "[.no_platform]") {
    CHECK(Context().traits().host);
    CHECK(Context::devices().size() == 1);
    CHECK(complaint("gpu", ErrorKind::not_found).find("pocl-opencl-icd") != std::string::npos);
}

TEST_CASE("no platform, in a process of its own") {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command =
        cat("env -u OCL_ICD_FILENAMES -u LD_PRELOAD OCL_ICD_VENDORS=/nonexistent/ '", self,
            "' '[.no_platform]' > /dev/null");
    CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("DLPRIM_TRAITS lowers and never raises") {
    for (const DeviceInfo& info : Context::devices()) {
        const Traits real = Context(info.id).traits();
        const Variable small(
            "DLPRIM_TRAITS",
            "max_work_group=64,local_kib=16,max_alloc_mib=1,vector_width=8,compute_units=9999");
        const Context context(info.id);
        CHECK(context.traits().max_work_group == std::min<std::uint64_t>(64, real.max_work_group));
        CHECK(context.traits().local_bytes == std::min<std::uint64_t>(16384, real.local_bytes));
        CHECK(context.traits().max_alloc_bytes == 1u << 20);
        CHECK(context.traits().vector_width == std::min(8, real.vector_width));
        CHECK(context.traits().compute_units == real.compute_units);
    }
    for (const char* text :
         {"max_workgroup=64", "local_kib", "local_kib=", "local_kib=-1", "vector_width=0",
          "subgroup_size=4", "fp64=2", "matrix_bf16=2", "vector_width=8,", "local_kib=12x"}) {
        const Variable wrong("DLPRIM_TRAITS", text);
        CHECK(complaint("cpu", ErrorKind::invalid_argument).find("DLPRIM_TRAITS") !=
              std::string::npos);
    }
}

TEST_CASE("matrix instructions are tried for each type by itself") {
    const auto traits_by = [](const DeviceInfo& info, const char* text) {
        const Variable lowered("DLPRIM_TRAITS", text);
        return Context(info.id).traits();
    };
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.name);
        const Traits all = traits_by(info, "wgmma=1");
        const bool unit = all.wgmma || all.mma;
        // Devices with matrix units support both types, and the smaller unit too.
        CHECK(all.matrix_fp16 == unit);
        CHECK(all.matrix_bf16 == unit);
        for (const char* const smaller : {"", "wgmma=0,"}) {
            const auto lowered = [&](const char* types) {
                return traits_by(info, (std::string(smaller) + types).c_str());
            };
            const Traits both = lowered("matrix_bf16=1"), halves = lowered("matrix_bf16=0"),
                         bfloats = lowered("matrix_fp16=0"),
                         none = lowered("matrix_fp16=0,matrix_bf16=0");
            for (const Traits* traits : {&both, &halves, &bfloats}) {
                CHECK(traits->wgmma == (*smaller == 0 && all.wgmma));
                CHECK(traits->mma == (unit && !traits->wgmma));
                CHECK(traits->matrix_fp16 == (unit && traits != &bfloats));
                CHECK(traits->matrix_bf16 == (unit && traits != &halves));
                CHECK(traits->mma_local_bytes == both.mma_local_bytes);
            }
            for (const Traits* traits : {&both, &halves, &bfloats, &none})
                CHECK((traits->mma_local_bytes > 0) == traits->mma);
            for (const bool has : {none.wgmma, none.mma, none.matrix_fp16, none.matrix_bf16})
                CHECK_FALSE(has);
        }
    }
}
