// SPDX-License-Identifier: MIT
// Job: a Pointwise problem as loops over memory with known layouts. All pointwise engines start
// from it.
//
// A program becomes one job per set of reduced axes; elementwise outputs belong to the last job. A
// job has an iteration space whose dimensions are those of memory (a blocked tensor has five).
// Dimensions of size 1 are dropped, and neighbours are joined where every operand allows it.
// Operands are addressed by strides, and operands with equal strides share a class. Positions that
// a program uses (index(), the linear index of uniform(), and the channel that identifies padding
// lanes) are classes too: their "address" is the value.
#pragma once

#include "engine/pointwise/tape.hpp"
#include "engine/problem.hpp"

#include <dlprim/scalar.hpp>

#include <memory>

namespace dlprim::pointwise {

/// The type that a program computes in.
enum class Compute : unsigned char { f32, f64, i64, u64 };
/// The tensor type for such values, for partial results in the workspace.
inline DType dtype_of(Compute type) {
    return type == Compute::f32   ? DType::f32
           : type == Compute::f64 ? DType::f64
           : type == Compute::u64 ? DType::u64
                                  : DType::i64;
}

struct JobInput {
    int number = 0;   ///< x<number>
    int operand = 0;  ///< index among the launch's operands
    DType dtype = DType::f32;
    int klass = 0;
    std::uint64_t extra_bytes = 0;  ///< after the operand's start (parts of the workspace)
    bool loose = false;             ///< whether its memory may be aligned to elements only
};

struct JobOutput {
    int operand = 0;  ///< -1: none, the value stays in the kernel (row_program.hpp)
    Output::Kind kind = Output::Kind::elementwise;
    int value = 0;  ///< the instruction of the tape
    int klass = 0;
    DType dtype = DType::f32;
    bool loose = false;     ///< as in JobInput
    bool has_init = false;  ///< whether init is combined with the result, once, at the end
    double init = 0;
    std::shared_ptr<const Tape> combine;  ///< custom: inputs 0 and 1
    bool scaled = false;                  ///< whether the final result has a factor (mean)
    double scale = 1;                     ///< the factor, which may be 1
    int flag =
        -1;  ///< second stage of custom: instruction that says whether the partial has a value
    bool reduces() const { return kind != Output::Kind::elementwise; }
};

struct Job {
    Tape tape;
    Compute type = Compute::f32;
    std::vector<JobInput> inputs;
    std::vector<JobOutput> outputs;
    std::vector<Scalar> scalars;
    /// Whether the values of scalars are set for each run (Launch::set_scalars). `scalars` are
    /// zeros then, and `scalar_numbers` has the run's numbers of p0, p1, ....
    bool arguments = false;
    std::vector<int> scalar_numbers;

    std::vector<std::int64_t> sizes;                 ///< outermost first; at least one
    std::vector<bool> reduced;                       ///< by dimension
    std::vector<std::vector<std::int64_t>> classes;  ///< strides in elements, by class
    std::vector<int> index_class;  ///< by dimension of the shape; see class_of_index()
    int linear_class = -1;         ///< uniform()
    int channel_class = -1;        ///< set where padding lanes exist
    std::int64_t channels = 0;
    std::int64_t block = 0;  ///< lanes of a block, which the last dimension has unless it is joined
    Shape shape;             ///< the logical broadcast shape

    bool is_whole() const { return type == Compute::i64 || type == Compute::u64; }
    int dims() const { return static_cast<int>(sizes.size()); }
    bool reduces() const;
    std::int64_t kept() const;       ///< product of kept sizes, including padding lanes
    std::int64_t reduction() const;  ///< product of reduced sizes
    std::int64_t reach() const;      ///< the largest offset of all classes
    std::int64_t stride(int klass, int dim) const {
        return classes[static_cast<std::size_t>(klass)][static_cast<std::size_t>(dim)];
    }
    /// The class whose address is index(d), with d as in the program.
    int class_of_index(int d) const {
        return index_class[static_cast<std::size_t>(d < 0 ? d + shape.rank() : d)];
    }
};

/// Drops dimensions of size 1, joins neighbours that are contiguous in every class, and merges
/// classes with equal strides.
void canonicalise(Job& job);

/// The attribute of a node that says that its scalars are arguments of each run and what they are:
/// a letter for each, 'i' for integers of 64 bits and 'd' for doubles. Eager calls set it
/// (exec/eager_entry.cpp).
inline constexpr std::string_view arguments_attr = "@arguments";
/// Its text, or nothing where the scalars are options.
std::string arguments_of(const Attrs& attrs);

/// The jobs of a problem with its layouts set.
std::vector<Job> make_jobs(const Problem& problem, bool fp64);

/// The shape that a program works on: the broadcast of all inputs and the option `shape`.
Shape broadcast_shape(std::span<const Shape> inputs, const Ints& shape);
/// Axes in [0, rank), sorted. Throws Error(invalid_argument) if one is out of range or given twice.
std::vector<int> normal_axes(const Output& output, int rank);
/// The shape of an output.
Shape output_shape(const Output& output, const Shape& broadcast, bool keep_dim);
/// Whether integers stay integers: the program has no division, no transcendental function and no
/// fraction.
bool is_integral(const Program& program);
/// The type in which a problem's program computes on a device with double arithmetic or without.
Compute compute_type(const Problem& problem, const Program& program, bool fp64);

}  // namespace dlprim::pointwise
