// SPDX-License-Identifier: MIT
// Declarations in front of a program: what the header's text gives for words of a program, and
// programs on PoCL, which are built with them or with the whole header.
#include "runtime/pocl_declarations.hpp"
#include "base/text.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/small_programs.hpp"

#include <dlprim/log.hpp>

using namespace dlprim;

namespace {

constexpr const char* header = R"(// A header as Clang's.
#ifndef _OPENCL_H_
#define _OPENCL_H_

#include "opencl-c-base.h"

#if defined(a) && \
    defined(b)
#pragma a
#endif
#define __ovld __attribute__((overloadable))
/* fma(x); is
   a comment */
float __ovld fma(float, float, float);
float __ovld convert_float(int);
float __ovld convert_float_rte(int);
float4 __ovld convert_float4(int4);
#ifdef cl_khr_fp64
double __ovld fma(double, double, double);
#ifdef cl_khr_fp16
double __ovld __attribute__((const)) convert_double(half);
#else
double __ovld
tan(double x,
    int);
#endif
#endif
float4 __ovld vload4(size_t, const float *);
float8 __ovld vload8(size_t, const float *);
#undef __ovld
#endif //_OPENCL_H_
)";

const std::string always_before =
    "#if defined(a) && \\\n    defined(b)\n#pragma a\n#endif\n"
    "#define __ovld __attribute__((overloadable))\n";
const std::string always_after = "#undef __ovld\n";

/// What stands in front of a text, without what always does.
std::string front(const std::string& text, const std::string& options = "") {
    const ProgramSource made = PoclDeclarations(header).in_front_of({"text", text, options});
    CHECK(made.name == "text");
    CHECK(made.options == options + " -D_OPENCL_H_");
    const std::string all = made.source;
    REQUIRE(all.starts_with(always_before));
    REQUIRE(all.ends_with(always_after + text));
    const std::size_t around = always_before.size() + always_after.size() + text.size();
    return all.substr(always_before.size(), all.size() - around);
}

/// A kernel that stores `expression` of floats `a` and ints `i`, as a program that joins words.
ProgramSource stores(const std::string& expression) {
    return {cat("stores ", expression),
            cat("#define JOIN_(a, b) a##b\n#define JOIN(a, b) JOIN_(a, b)\n"
                "kernel void adds(global float* x, ulong x_offset) {\n"
                "    global float* a = x + x_offset;\n    const int i = 5;\n"
                "    if (get_global_id(0) == 7) a[7] = ",
                expression, ";\n}\n"),
            "-DV=4"};
}

/// PoCL's devices of this process whose programs have declarations in front.
std::vector<Context> pocl_contexts() {
    std::vector<Context> found = opencl_contexts();
    std::erase_if(found, [](const Context& context) {
        return context.info().platform != "Portable Computing Language" ||
               context.info().kind != DeviceKind::cpu;
    });
    return PoclDeclarations::of_process() == nullptr ? std::vector<Context>() : found;
}

}  // namespace

TEST_CASE("a program has the declarations of its words, under their conditions") {
    CHECK(front("kernel void k() {}").empty());
    CHECK(front("x = fma(a, b, c);") ==
          "float __ovld fma(float, float, float);\n#ifdef cl_khr_fp64\n"
          "double __ovld fma(double, double, double);\n#endif\n");
    CHECK(front("x = F(a, b);", "-DF=tan") ==
          "#ifdef cl_khr_fp64\n#ifdef cl_khr_fp16\n#else\ndouble __ovld\ntan(double x,\n    "
          "int);\n#endif\n#endif\n");
    CHECK(front("x = convert_double(h);") ==
          "#ifdef cl_khr_fp64\n#ifdef cl_khr_fp16\n"
          "double __ovld __attribute__((const)) convert_double(half);\n#else\n#endif\n#endif\n");
    CHECK(front("// fma\n/* fma */ /* fma").empty());
    CHECK(front("fma_ _fma").empty());
}

TEST_CASE("names that a program joins are declared, too") {
    const std::string loads = "#define LOAD(V) JOIN(vload, V)\n";
    CHECK(front(loads, "-DV=8").empty());
    const std::string joins = "#define JOIN(a, b) a##b\n";
    CHECK(front(joins + loads, "-DV=8") == "float8 __ovld vload8(size_t, const float *);\n");
    CHECK(front(joins + "JOIN(JOIN(convert_, float), 4)") ==
          "float __ovld convert_float(int);\nfloat4 __ovld convert_float4(int4);\n");
    CHECK(front(joins + "JOIN(convert_, T)", "-DT=float") == "float __ovld convert_float(int);\n");
    CHECK(front(joins + "JOIN(f, ma)").empty());
}

TEST_CASE("a header that is not as Clang's is not used") {
    const std::string text = header;
    CHECK(PoclDeclarations(text).read());
    for (const char* other : {"", "float sin(float);\n", "#ifndef OTHER\n#define OTHER\n#endif\n",
                              "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n",
                              "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n#else\n#endif\n",
                              "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n#endif\nfloat f(float);\n",
                              "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n#endif\n#endif\n"})
        CHECK_FALSE(PoclDeclarations(other).read());
}

TEST_CASE("on PoCL a program is built with its declarations, or with all") {
    const std::vector<Context> contexts = pocl_contexts();
    if (contexts.empty()) {
        WARN("no such device here: PoCL with its header");
        return;
    }
    const CacheFolder folder;
    std::vector<std::string> with_all;
    set_log([&](LogLevel, std::string_view line) {
        if (line.find("all of PoCL's declarations") != std::string_view::npos)
            with_all.emplace_back(line);
    });
    const auto result = [&](const std::string& expression) {
        const Context& context = contexts.front();
        return run_adds(context, Access::impl(context).build(stores(expression)));
    };
    CHECK(result("fma(a[0], 2.0f, 1.0f)") == 7.0f);
    CHECK(result("JOIN(vload, V)(0, a).y") == 3.0f);
    CHECK(result("JOIN(convert_float, V)((int4)i).x") == 5.0f);
    CHECK(result("get_local_size(0) > 0 ? select(a[0], 9.0f, i) : 0.0f") == 9.0f);
    CHECK(with_all.empty());
    // No word of the text is the function's name, and the name is not of those that are joined.
    CHECK(result("JOIN(fmi, n)(a[0], 2.0f)") == 2.0f);
    CHECK(with_all.size() == 1);
    CHECK_THROWS_AS(result("no_such_function(a[0])"), Error);
    set_log({});
    CHECK(with_all.size() == 2);
}
