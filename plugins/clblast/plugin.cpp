// SPDX-License-Identifier: MIT
// A plugin of engines for OpenCL devices by CLBlast: clblast.matmul and clblast.inner_product.
#include "support.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <clblast.h>

namespace {

using Problem = dlprim_engine_problem;
using Operand = dlprim_engine_operand;

constexpr std::size_t element_bytes = sizeof(float);

bool flag(const Problem& problem, const char* name) {
    return option(problem, name).integers[0] != 0;
}

std::size_t size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

std::size_t elements_before_last_two(const Operand& operand) {
    std::size_t count = 1;
    for (std::uint32_t d = 0; d + 2 < operand.rank; ++d) count *= size(operand.sizes[d]);
    return count;
}

/// y[i] = alpha * a[i] b[i] for `count` matrices, y being rows x columns. A stride of 0 repeats a
/// matrix.
struct Product {
    std::size_t rows, columns, inner, count = 1, a_stride = 0, b_stride = 0;
    bool transposes_a = false, transposes_b = false, bias = false;
    float alpha = 1;

    double flops() const {
        return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
               static_cast<double>(inner) * static_cast<double>(count);
    }

    static Product of(const Problem& problem) {
        for (std::size_t i = 0; i < problem.input_count; ++i) {
            const Operand& input = problem.inputs[i];
            if (std::strcmp(input.type, "float") != 0)
                throw Unsupported("it supports float tensors only");
            for (std::uint32_t d = 0; d < input.rank; ++d)
                if (input.sizes[d] == 0) throw Unsupported("it supports no empty tensors");
        }
        if (problem.stage_count > 0) throw Unsupported("it does not support stages");
        return std::strcmp(problem.op, "InnerProduct") == 0 ? of_inner_product(problem)
                                                            : of_matmul(problem);
    }

  private:
    static Product of_inner_product(const Problem& problem) {
        const auto* const weight = problem.inputs[1].sizes;
        Product product{size(problem.inputs[0].sizes[0]), size(weight[0]), size(weight[1])};
        product.transposes_b = true;
        product.bias = flag(problem, "bias");
        return product;
    }

    static Product of_matmul(const Problem& problem) {
        const Operand &a = problem.inputs[0], &b = problem.inputs[1], &y = problem.outputs[0];
        if (a.rank < 2 || b.rank < 2) throw Unsupported("it supports no vectors");
        Product product{size(y.sizes[y.rank - 2]), size(y.sizes[y.rank - 1]), 0};
        product.transposes_a = flag(problem, "transpose_a");
        product.transposes_b = flag(problem, "transpose_b");
        product.alpha = static_cast<float>(option(problem, "alpha").numbers[0]);
        product.bias = flag(problem, "bias");
        product.inner = size(a.sizes[a.rank - (product.transposes_a ? 2 : 1)]);
        product.count = elements_before_last_two(y);
        const std::size_t as = elements_before_last_two(a), bs = elements_before_last_two(b);
        if ((as != 1 && as != product.count) || (bs != 1 && bs != product.count))
            throw Unsupported("it does not broadcast some of the leading dimensions");
        if (bs == 1 && !product.transposes_a) {  // one matrix of all rows
            product.rows *= std::exchange(product.count, 1);
        } else {
            product.a_stride = as == 1 ? 0 : product.rows * product.inner;
            product.b_stride = bs == 1 ? 0 : product.columns * product.inner;
        }
        if (product.bias && product.count > 1)
            throw Unsupported("it adds a bias to one matrix only");
        return product;
    }
};

/// The products of a problem on a device. A bias comes first, as a column of ones times a row.
class Launch {
  public:
    Launch(const Product& product, cl_context context) : product_(product) {
        if (!product.bias) return;
        std::vector<float> ones(product.rows, 1.0F);
        cl_int error = CL_SUCCESS;
        ones_ = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                               ones.size() * element_bytes, ones.data(), &error);
        if (error != CL_SUCCESS) throw Unsupported("there is no memory for its ones");
    }
    ~Launch() {
        if (ones_ != nullptr) clReleaseMemObject(ones_);
    }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    void run(cl_command_queue queue, const dlprim_engine_memory* operands) const {
        const Product& p = product_;
        const dlprim_engine_memory &a = operands[0], &b = operands[1],
                                   &y = operands[p.bias ? 3 : 2];
        if (p.bias)
            check(clblast::Gemm(clblast::Layout::kRowMajor, clblast::Transpose::kNo,
                                clblast::Transpose::kNo, p.rows, p.columns, 1, 1.0F, ones_, 0, 1,
                                memory(operands[2]), start(operands[2]), p.columns, 0.0F, memory(y),
                                start(y), p.columns, &queue));
        const auto turned = [](bool transposes) {
            return transposes ? clblast::Transpose::kYes : clblast::Transpose::kNo;
        };
        const std::size_t a_line = p.transposes_a ? p.rows : p.inner,
                          b_line = p.transposes_b ? p.inner : p.columns;
        const float beta = p.bias ? 1.0F : 0.0F;
        if (p.count == 1)
            check(clblast::Gemm(clblast::Layout::kRowMajor, turned(p.transposes_a),
                                turned(p.transposes_b), p.rows, p.columns, p.inner, p.alpha,
                                memory(a), start(a), a_line, memory(b), start(b), b_line, beta,
                                memory(y), start(y), p.columns, &queue));
        else
            check(clblast::GemmStridedBatched(
                clblast::Layout::kRowMajor, turned(p.transposes_a), turned(p.transposes_b), p.rows,
                p.columns, p.inner, p.alpha, memory(a), start(a), a_line, p.a_stride, memory(b),
                start(b), b_line, p.b_stride, beta, memory(y), start(y), p.columns,
                p.rows * p.columns, p.count, &queue));
    }

  private:
    static cl_mem memory(const dlprim_engine_memory& operand) {
        return static_cast<cl_mem>(operand.data);
    }
    static std::size_t start(const dlprim_engine_memory& operand) {
        return operand.offset / element_bytes;
    }
    static void check(clblast::StatusCode code) {
        if (code != clblast::StatusCode::kSuccess)
            throw std::runtime_error("CLBlast reports error " +
                                     std::to_string(static_cast<int>(code)));
    }

    Product product_;
    cl_mem ones_ = nullptr;
};

int applies(const dlprim_engine*, const dlprim_engine_device*, const Problem* problem,
            dlprim_engine_message reason) {
    return succeeds(reason, [&] { Product::of(*problem); }) ? 1 : 0;
}

double estimate(const dlprim_engine*, const dlprim_engine_device* device, const Problem* problem) {
    // What CLBlast reaches where its database knows the device.
    constexpr double share_of_peak = 0.5, share_of_bandwidth = 0.6, launch_seconds = 2e-5;
    const Product p = Product::of(*problem);
    const double bytes =
        4.0 * static_cast<double>(p.count) *
        static_cast<double>(p.rows * p.inner + p.inner * p.columns + p.rows * p.columns);
    return launch_seconds +
           std::max(p.flops() / (std::max(1.0, device->gflops) * 1e9 * share_of_peak),
                    bytes / (std::max(1.0, device->gbytes_per_s) * 1e9 * share_of_bandwidth));
}

void* build(const dlprim_engine*, const dlprim_engine_device* device, const Problem* problem,
            dlprim_engine_message message) {
    Launch* launch = nullptr;
    succeeds(message, [&] {
        launch = new Launch(Product::of(*problem), static_cast<cl_context>(device->cl_context));
    });
    return launch;
}

int run(void* launch, const dlprim_engine_run* how, const dlprim_engine_memory* operands,
        std::size_t, dlprim_engine_message message) {
    const auto work = [&] {
        static_cast<Launch*>(launch)->run(static_cast<cl_command_queue>(how->cl_queue), operands);
    };
    return succeeds(message, work) ? 0 : 1;
}

void release(void* launch) {
    delete static_cast<Launch*>(launch);
}

constexpr dlprim_engine engine_for(const char* name, const char* op) {
    return {name,     op,      0,     nullptr, nullptr, applies, nullptr,
            estimate, nullptr, build, nullptr, run,     release};
}

constexpr dlprim_engine matmul = engine_for("clblast.matmul", "MatMul"),
                        inner_product = engine_for("clblast.inner_product", "InnerProduct");
constexpr const dlprim_engine* engines[] = {&matmul, &inner_product};
#define DLPRIM_TEXT_OF(x) #x
#define DLPRIM_TEXT(x) DLPRIM_TEXT_OF(x)
constexpr dlprim_engines all{DLPRIM_ENGINE_ABI,
                             "CLBlast " DLPRIM_TEXT(CLBLAST_VERSION_MAJOR) "." DLPRIM_TEXT(
                                 CLBLAST_VERSION_MINOR) "." DLPRIM_TEXT(CLBLAST_VERSION_PATCH),
                             engines, 2};

}  // namespace

extern "C" __attribute__((visibility("default"))) const dlprim_engines* dlprim_engine_plugin(
    dlprim_engine_message) {
    return &all;
}
