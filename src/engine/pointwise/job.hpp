// SPDX-License-Identifier: MIT
// Job: a Pointwise problem as loops over memory, with layouts resolved: what both engines work
// from.
//
// A program becomes one job for each set of reduced axes; elementwise outputs go with the first. A
// job walks an iteration space whose dimensions are those of memory (a blocked tensor has five),
// with size-1 dimensions dropped and neighbours joined where every operand allows it. An operand is
// addressed by strides; operands with equal strides share a class. Positions that a program asks
// for (index(), the linear index of uniform(), the channel that tells padding lanes apart) are
// classes too: their "address" is the value.
#pragma once

#include "engine/pointwise/tape.hpp"
#include "engine/problem.hpp"

#include <memory>

namespace dlprim::pointwise {

/// Type that a program computes in.
enum class Compute : unsigned char { f32, f64, i64 };
/// The type of a tensor that holds such values: of partial results in the workspace.
inline DType dtype_of(Compute type) {
    return type == Compute::f32 ? DType::f32 : type == Compute::f64 ? DType::f64 : DType::i64;
}

struct JobInput {
    int number = 0;   ///< x<number>
    int operand = 0;  ///< index of the launch's operands
    DType dtype = DType::f32;
    int klass = 0;
    std::uint64_t extra_bytes = 0;  ///< past the operand's start (parts of the workspace)
};

struct JobOutput {
    int operand = 0;
    Output::Kind kind = Output::Kind::elementwise;
    int value = 0;  ///< instruction of the tape
    int klass = 0;
    DType dtype = DType::f32;
    bool has_init = false;  ///< the result is combined with init once, at the end
    double init = 0;
    std::shared_ptr<const Tape> combine;  ///< custom: inputs 0 and 1
    double scale = 1;                     ///< factor of the finished result (mean)
    int flag =
        -1;  ///< second stage of custom: instruction that says whether the partial has a value
    bool reduces() const { return kind != Output::Kind::elementwise; }
};

struct Job {
    Tape tape;
    Compute type = Compute::f32;
    std::vector<JobInput> inputs;
    std::vector<JobOutput> outputs;
    std::vector<double> scalars;

    std::vector<std::int64_t> sizes;                 ///< outermost first; at least one
    std::vector<bool> reduced;                       ///< a dimension
    std::vector<std::vector<std::int64_t>> classes;  ///< strides in elements
    std::vector<int> index_class;  ///< by instruction number of Op::index: see class_of_index()
    int linear_class = -1;         ///< uniform()
    int channel_class = -1;        ///< set where padding lanes exist
    std::int64_t channels = 0;
    Shape shape;  ///< the logical broadcast shape

    int dims() const { return static_cast<int>(sizes.size()); }
    bool reduces() const;
    std::int64_t kept() const;       ///< product of kept sizes, padding lanes included
    std::int64_t reduction() const;  ///< product of reduced sizes
    std::int64_t stride(int klass, int dim) const {
        return classes[static_cast<std::size_t>(klass)][static_cast<std::size_t>(dim)];
    }
    /// The class whose address is index(d), d as in the program.
    int class_of_index(int d) const {
        return index_class[static_cast<std::size_t>(d < 0 ? d + shape.rank() : d)];
    }
};

/// Drops dimensions of size 1, joins neighbours that every class passes through evenly, and makes
/// classes with equal strides one.
void canonicalise(Job& job);

/// The jobs of a problem whose layouts are set.
std::vector<Job> make_jobs(const Problem& problem, bool fp64);

/// The shape that a program works over: the broadcast of all inputs and the option `shape`.
Shape broadcast_shape(std::span<const Shape> inputs, const Ints& shape);
/// Axes in [0, rank), sorted. Throws Error(invalid_argument) on one out of range or named twice.
std::vector<int> normal_axes(const Output& output, int rank);
/// The shape of an output.
Shape output_shape(const Output& output, const Shape& broadcast, bool keep_dim);
/// Integers stay integers: no division, no transcendental function, no fraction in the program.
bool is_integral(const Program& program);

}  // namespace dlprim::pointwise
