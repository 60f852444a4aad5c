// SPDX-License-Identifier: MIT
// Programs: signatures parsed from text, build errors with a log, the cache on disk and damage to
// it.
#include "base/env.hpp"
#include "base/text.hpp"
#include "engine/launch.hpp"
#include "runtime/access.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/kernel_parameters.hpp"
#include "runtime/program_memo.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/tensor.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

using namespace dlprim;
using testing::message_of;
namespace fs = std::filesystem;

namespace {

const char* const scale = R"(kernel void scale(global float* x, ulong x_offset, float factor) {
    x[x_offset + get_global_id(0)] *= factor + ADD;
})";

const char* const sum_text = R"(
    typedef struct {
        int first, count;  // of the sum
        long step;
        float scale;
    } Terms;
    kernel void sum(global const float* x, ulong x_offset, global float* y, ulong y_offset,
                    const Terms terms, int more) {
        float total = 0;
        for (int i = 0; i < terms.count; ++i) total += x[x_offset + terms.first + i * terms.step];
        y[y_offset] = total * terms.scale + more;
    })";

std::string all_names(const std::vector<KernelParameter>& parameters) {
    std::string names;
    for (const KernelParameter& parameter : parameters) names += parameter.name + ' ';
    return names;
}

float run_scale(const Context& context, const std::string& options) {
    const Tensor x(context, {8}, std::vector<float>(8, 3.0f));
    NDRange range;
    range.global[0] = 8;
    KernelLaunch launch;
    launch.add(KernelCall(Access::impl(context).build({"scale", scale, options}), "scale", range)
                   .tensor("x", 0)
                   .scalar("factor", 2.0f));
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    launch.enqueue(Access::impl(context).queue(), operands);
    return x.to_floats()[7];
}

bool has_opencl() {
    return Context::devices().size() > 1;
}

}  // namespace

TEST_CASE("signatures are read from text") {
    const auto found = kernel_signatures(R"(
        #define MAKE(n) kernel void n(int hidden) \
            { kernel void more(int hidden)
        // kernel void comment(int x)
        __attribute__((vec_type_hint(float))) kernel
        __attribute__((reqd_work_group_size(1, (1), 1))) void first(
            global const float* restrict x, /* a, b */ ulong x_offset, local float tile[4],
            int n __attribute__((unused)), const int m)
        { }
        __kernel void __attribute__((work_group_size_hint(1,1,1))) second(void) {}
        kernel void third() { char c = '"'; }
        kernel void fourth(float16 v) {})");
    REQUIRE(found.size() == 4);
    CHECK(all_names(found.at("first")) == "x x_offset tile n m ");
    CHECK(found.at("second").empty());
    CHECK(found.at("third").empty());
    CHECK(all_names(found.at("fourth")) == "v ");
    CHECK(kernel_signatures("kernel void broken(int").empty());
    CHECK(kernel_signatures("kernel").empty());
    CHECK(kernel_signatures("").empty());
    CHECK(kernel_signatures("typedef struct { int a; } S").empty());
}

TEST_CASE("members of a struct are parameters") {
    const std::vector<KernelParameter> parameters = kernel_signature(sum_text, "sum");
    REQUIRE(all_names(parameters) == "x x_offset y y_offset first count step scale more ");
    CHECK(parameters[6].in == "Terms terms");
    CHECK(parameters[6].argument == 4);
    CHECK(parameters[6].offset == 8);
    CHECK(parameters[8].argument == 5);
    CHECK(struct_bytes(parameters, 6) == 24);
    CHECK(struct_bytes(parameters, 8) == 0);
}

TEST_CASE("members of a struct are set by name") {
    for (const DeviceInfo& device : Context::devices()) {
        if (device.id == "cpu") continue;
        INFO(device.name);
        const Context context(device.id);
        const Tensor x(context, {6}, std::vector<float>{1, 2, 3, 4, 5, 6});
        const Tensor y(context, {1}, std::vector<float>{0});
        NDRange range;
        range.local[0] = 1;
        KernelCall call(Access::impl(context).build({"sum", sum_text, ""}), "sum", range);
        call.tensor("x", 0).tensor("y", 1).sizes({{"first", 1}, {"count", 2}, {"more", 7}});
        CHECK(message_of([&] { call.check(); }).find("number 6, number 7") != std::string::npos);
        call.scalar("step", std::int64_t{3}).scalar("scale", 0.5f);
        KernelLaunch launch(call);
        const BufferRef operands[] = {{Access::buffer(x).get(), 0}, {Access::buffer(y).get(), 0}};
        launch.enqueue(Access::impl(context).queue(), operands);
        CHECK(y.to_floats()[0] == (2 + 5) * 0.5f + 7);
        CHECK(message_of([&] { call.scalar("step", 3.0f); }).find("8 bytes") != std::string::npos);
    }
}

TEST_CASE("what is made of a program's text is made once") {
    ProgramMemo<int> memo;
    int made = 0;
    const auto make = [&] { return ++made; };
    CHECK(memo.of({"first", "text", "-DA=1"}, make) == 1);
    CHECK(memo.of({"other name", "text", "-DA=1"}, make) == 1);
    CHECK(memo.of({"first", "text", "-DA=2"}, make) == 2);
    CHECK(memo.of({"first", "texts", "-DA=1"}, make) == 3);
    CHECK(memo.of({"first", "text", "-DA=1"}, make) == 1);
    const ProgramSource refused{"first", "refused", ""};
    CHECK_THROWS_AS(memo.of(refused, [&]() -> int { fail(ErrorKind::build, "no"); }), Error);
    CHECK(memo.of(refused, make) == 4);
}

TEST_CASE("types of parameters and names that a text declares are read from it") {
    const char* const text = R"(
        #define VEC JOIN(float, 4)
        typedef JOIN(float, 4) vec;
        typedef struct { vec a; } Pair;
        constant float table[2] = {1.0f, 2.0f};
        inline JOIN(float, 4) twice(vec v) { int inner = 0; { inner++; } return v + v; }
        int declared(int hidden);
        kernel __attribute__((reqd_work_group_size(1, 1, 1))) void run(global const float* x, ulong x_offset, int n) {
            local int shared[4]; // barrier
        })";
    CHECK(declared_names(text) ==
          std::vector<std::string>{"vec", "Pair", "table", "twice", "declared", "run"});
    const std::vector<KernelParameter> parameters = kernel_signature(text, "run");
    REQUIRE(parameters.size() == 3);
    CHECK(parameters[0].type == "global const float *");
    CHECK(parameters[0].name == "x");
    CHECK(parameters[1].type == "ulong");
    CHECK(parameters[2].type == "int");
    CHECK(kernel_signature(text, "other").empty());
    CHECK(mentions(text, {"local"}));
    CHECK_FALSE(mentions(text, {"barrier", "VEC", "loc"}));
}

TEST_CASE("a kernel is found in its text, words outside of kernels, and macros by name") {
    const std::string text = R"(#define OPEN { // it's a brace
        kernel void run(int declared);
        kernel void other(int n) { }
        kernel __attribute__((reqd_work_group_size(64, 1, 1))) void run(global float* x, int n)
        { if (n > 0) { x[0] = get_global_id(0); /* } */ }
        #  define CLOSE(x) }
        } int after;)";
    const std::optional<KernelDefinition> found = kernel_definition(text, "run");
    REQUIRE(found);
    CHECK(text.substr(found->open, 15) == "global float* x");
    CHECK(text.substr(found->body, 4) == " if ");
    CHECK(text.substr(found->rest) == " int after;");
    CHECK_FALSE(kernel_definition(text, "missing"));
    CHECK_FALSE(kernel_definition("kernel void run(int n) { {", "run"));
    CHECK(mentions(text, {"get_global_id"}));
    CHECK_FALSE(mentions_outside_kernels(text, {"get_global_id", "if", "CLOSE"}));
    CHECK(mentions_outside_kernels(text, {"after"}));
    CHECK(mentions_outside_kernels("kernel void run(int n) { {", {"none"}));
    CHECK(defined_macros(text) == std::vector<std::string>{"OPEN", "CLOSE"});
}

TEST_CASE("a text's code has no comments and no layout, and keeps what a compiler reads") {
    const std::string code = code_of(R"(// a comment
#define TWICE(x) (2 * (x))  // of a macro
#define PAIR (a, \
              b)
kernel void run(global int* x) { x[0] = TWICE(-1) - -x[1]; asm("mov // %0;"); })");
    CHECK(code ==
          "# define TWICE( x ) ( 2 * ( x ) )\n# define PAIR ( a , b )\nkernel void run ( global "
          "int * x ) { x [ 0 ] = TWICE ( - 1 ) - - x [ 1 ] ; asm ( \"mov // %0;\" ) ; }");
    const auto same = [](const char* a, const char* b) { return code_of(a) == code_of(b); };
    CHECK(same("int a=1;/* one */\n\nint b;", "int a = 1;\n  int b; // two"));
    CHECK(same("#define A 1\n#define B 2\nint x;", "# define A 1 \n\n#define B \\\n 2\n int x;"));
    for (const auto& [a, b] : {std::pair("a - -b", "a --b"),
                               {"#define A (x)", "#define A(x)"},
                               {"#define A\nint x;", "#define A int x;"},
                               {"#define A\n#define B", "#define A #define B"},
                               {"asm(\"a b\")", "asm(\"a  b\")"},
                               {"a b", "ab"},
                               {"x >> 1", "x > > 1"}}) {
        INFO(a << " and " << b);
        CHECK_FALSE(same(a, b));
    }
    CHECK(code_of("").empty());
}

TEST_CASE("wrong names and kinds of arguments are told") {
    if (!has_opencl()) return;
    const Context context("opencl");
    const auto program = Access::impl(context).build({"scale", scale, "-DADD=0"});
    CHECK(message_of([&] { program->kernel("scales"); }).find("scale") != std::string::npos);
    NDRange range;
    CHECK(message_of([&] {
              KernelCall(program, "scale", range).scalar("factr", 1.0f);
          }).find("x_offset") != std::string::npos);
    CHECK(message_of([&] {
              KernelCall(program, "scale", range).scalar("factor", 1.0f).check();
          }).find("not given") != std::string::npos);
    const std::string size =
        message_of([&] { KernelCall(program, "scale", range).scalar("factor", std::int64_t{1}); });
    CHECK(size.find("'factor'") != std::string::npos);
    CHECK(size.find("CL_INVALID_ARG_SIZE") != std::string::npos);
}

TEST_CASE("a program that does not build leaves its log in a file") {
    if (!has_opencl()) return;
    const CacheFolder folder;
    const Context context("opencl");
    for (int round = 0; round < 2; ++round) {
        try {
            Access::impl(context).build(
                {"bad.cl", "kernel void f(global float* x) { x[0] = nonsense; }", ""});
            FAIL("nonsense compiled");
        } catch (const Error& error) {
            const std::string text = error.what();
            CHECK(error.kind() == ErrorKind::build);
            CHECK(text.find("bad.cl") != std::string::npos);
            CHECK(text.find("nonsense") != std::string::npos);
            const std::size_t begin = text.find(folder.path().string());
            REQUIRE(begin != std::string::npos);
            const std::string log = read_file(text.substr(begin, text.find('\'', begin) - begin));
            CHECK(log.find("nonsense") != std::string::npos);
        }
    }
}

TEST_CASE("a program that is built later is compiled when it is needed, and once") {
    if (!has_opencl()) return;
    const CacheFolder folder;
    const Context context("opencl");
    const auto build = [&](const char* source) {
        return Access::impl(context).build({"scale", source, "-DADD=1"});
    };
    const auto build_later = [&](const char* source) {
        const BuildsLater later;
        return build(source);
    };
    NDRange range;
    range.global[0] = 8;
    KernelLaunch launch;
    KernelCall call(build_later(scale), "scale", range);
    launch.add(call.tensor("x", 0).scalar("factor", 5.0f).scalar("factor", 2.0f));
    CHECK(context.counters().compiles == 0);
    const Tensor x(context, {8}, std::vector<float>(8, 3.0f));
    const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
    for (const float expected : {9.0f, 27.0f}) {
        launch.enqueue(Access::impl(context).queue(), operands);
        CHECK(x.to_floats()[7] == expected);
        CHECK(context.counters().compiles == 1);
    }
    CHECK(run_scale(context, "-DADD=1") == 9.0f);
    CHECK(context.counters().compiles == 1);

    const char* const bad = "kernel void scale(global float* x, ulong x_offset) { nonsense; }";
    const auto kernel = build_later(bad)->kernel("scale");
    for (int again = 0; again < 2; ++again) {
        CHECK_THROWS_AS(kernel->compile(), Error);
        CHECK_THROWS_AS(build(bad), Error);
    }
}

TEST_CASE("compiled programs come from memory, then from disk, and damage does no harm") {
    if (!has_opencl()) return;
    const CacheFolder folder;
    {
        const Context context("opencl");
        CHECK(run_scale(context, "-DADD=1") == 9.0f);
        CHECK(run_scale(context, "-DADD=1") == 9.0f);
        CHECK(context.counters().compiles == 1);
        CHECK(context.counters().cache_hits == 0);
    }
    const fs::path file = folder.only_binary();
    const std::string good = read_file(file);
    const auto expect = [&](std::uint64_t hits) {
        const Context context("opencl");
        CHECK(run_scale(context, "-DADD=1") == 9.0f);
        CHECK(context.counters().cache_hits == hits);
        CHECK(context.counters().compiles == 1 - hits);
    };
    expect(1);
    std::string flipped = good;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
    for (const std::string& bad : {std::string(), good.substr(0, 10),
                                   good.substr(0, good.size() - 1), good + "x", flipped}) {
        write_file_atomically(file, bad);
        expect(0);
        CHECK(read_file(file).substr(0, 20) == good.substr(0, 20));
        expect(1);
    }
    fs::remove(file);
    fs::create_directory(file);  // can be neither read nor replaced
    expect(0);
}

TEST_CASE("the cache can be turned off or be out of reach") {
    if (!has_opencl()) return;
    const CacheFolder folder;
    ::setenv("DLPRIM_CACHE", "0", 1);
    CHECK(run_scale(Context("opencl"), "-DADD=2") == 12.0f);
    CHECK_FALSE(fs::exists(folder.path()));
    ::unsetenv("DLPRIM_CACHE");
    ::setenv("DLPRIM_CACHE_DIR", "/proc/nowhere", 1);
    CHECK(run_scale(Context("opencl"), "-DADD=2") == 12.0f);
}

TEST_CASE("one of several processes", "[.child]") {
    const Context context("opencl");
    for (int i = 0; i < 3; ++i)
        CHECK(run_scale(context, "-DADD=" + std::to_string(i)) == 3.0f * static_cast<float>(2 + i));
    if (env("DLPRIM_TEST_WARM")) {
        CHECK(context.counters().compiles == 0);
        CHECK(context.counters().cache_hits == 3);
    }
}

TEST_CASE("several processes share the cache") {
    if (!has_opencl()) return;
    const CacheFolder folder;
    const std::string self =
        cat("'", fs::read_symlink("/proc/self/exe").string(), "' '[.child]' > /dev/null");
    CHECK(std::system(cat(self, " & a=$!; ", self, " & b=$!; wait $a && wait $b").c_str()) == 0);
    const testing::Variable warm("DLPRIM_TEST_WARM", "1");
    CHECK(std::system(self.c_str()) == 0);
}

TEST_CASE("profiles name each launch by its label") {
    for (const DeviceInfo& info : Context::devices()) {
        const Context context(info.id);
        Queue& queue = Access::impl(context).queue();
        queue.set_profiling(true);
        for (int label : {5, 7}) {
            queue.set_label(label);
            if (info.kind == DeviceKind::host)
                queue.run([](HostPool&) {});
            else
                run_scale(context, "-DADD=0");
        }
        const std::vector<ProfileRecord> records = queue.take_profile();
        REQUIRE(records.size() == 2);
        CHECK(records[0].label == 5);
        CHECK(records[1].label == 7);
        CHECK(records[1].end_ns >= records[1].start_ns);
        CHECK(queue.take_profile().empty());
        queue.set_profiling(false);
        if (info.kind != DeviceKind::host) CHECK(run_scale(context, "-DADD=0") == 6.0f);
        CHECK(queue.take_profile().empty());
    }
}
