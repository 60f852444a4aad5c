// SPDX-License-Identifier: MIT
// Emitter: writes OpenCL C text of a job's arithmetic for one vector width: types, loads and stores
// of every storage type, the tape's instructions, and the combinations of reductions. The kernels
// around it (vector_kernel.hpp, group_kernel.hpp) provide loops and offsets.
//
// The text uses `nv`, the number of valid lanes (int), and for each class c the offset of its first
// lane, under a name that the caller chooses.
#pragma once

#include "base/text.hpp"
#include "engine/pointwise/job.hpp"
#include "engine/pointwise/kernel_numbers.hpp"
#include "engine/pointwise/source_writer.hpp"

#include <functional>
#include <set>

namespace dlprim::pointwise {

class Emitter {
  public:
    /// `aligned_loads`: load vectors through aligned pointers where the offset allows it (GPUs).
    Emitter(const Job& job, int width, bool aligned_loads);

    const std::string& scalar_type() const { return scalar_; }
    const std::string& vector_type() const { return vector_; }
    const std::string& mask_type() const { return mask_; }
    /// The mask type of a single lane.
    const std::string& mask_scalar() const { return mask_scalar_; }
    int width() const { return width_; }
    /// "(float16)(0)".
    std::string splat(const std::string& text) const { return cat("(", vector_, ")(", text, ")"); }
    /// The indices of lanes, in the mask's type.
    std::string iota() const;

    /// For each instruction, whether its value must be computed in the innermost loop. `varies`
    /// tells whether a class changes there.
    std::vector<bool> levels(const std::function<bool(int klass)>& varies) const;
    /// Declares the values of the instructions whose level is `level`. `offset(klass)` is the text
    /// of an offset. `lane(klass)` is the text of the stride between lanes ("0", "1" or a number's
    /// name). `partial`: nv may be less than the width.
    void instructions(SourceWriter& out, const std::vector<bool>& levels, bool level,
                      const std::function<std::string(int)>& offset,
                      const std::function<std::string(int)>& lane, bool partial);
    /// The value of an instruction as a vector of numbers.
    std::string value(int instruction) const;
    /// The value of an instruction as a mask.
    std::string truth(int instruction) const;
    /// exp() of a vector, as the tape's instructions compute it.
    std::string exponential(const std::string& vector) const;

    /// Stores `text` (a vector) of an elementwise or kept result. Lanes from `lanes` on are not
    /// written.
    std::string store(int output, const std::string& pointer, DType dtype,
                      const std::string& offset, const std::string& text, const std::string& lane,
                      const std::string& lanes, bool partial);
    /// Loads a vector of values, of which only the first `lanes` are read if `partial`.
    std::string load_lanes_of(const std::string& pointer, DType dtype, const std::string& offset,
                              const std::string& lanes, bool partial);
    std::string store_one(DType dtype, const std::string& pointer, const std::string& offset,
                          const std::string& text);

    /// The neutral element. It is 0 for custom reductions, whose partial results carry a flag
    /// instead.
    std::string neutral(const JobOutput& out) const;
    /// The name of a function of two scalars or two vectors that combines partial results of output
    /// k.
    std::string combine(std::size_t k, bool scalar) const;
    /// The mask of lanes whose values count in a custom reduction. Without padding or partial
    /// results it is all lanes. If the vector is `cut`, it is limited to the mask `live`, and if
    /// partial results carry flags, to lanes whose flag is set.
    std::string counted(const JobOutput& out, bool cut) const;
    /// The final result of a scalar accumulator. `has` is used by custom reductions.
    std::string finish(std::size_t k, const std::string& text, const std::string& has, bool scalar);

    /// The helper functions that the text written so far needs.
    std::string preamble() const;
    /// The numbers that the text written so far needs: scalars, scales, initial values.
    const std::vector<KernelNumber>& numbers() const { return numbers_; }
    /// A literal of the compute type.
    std::string literal(double value) const;

  private:
    const Job& job_;
    int width_;
    bool aligned_;
    std::string scalar_, vector_, mask_, mask_scalar_;
    std::set<std::string> helpers_;
    std::vector<KernelNumber> numbers_;
    std::vector<bool> is_mask_;

    /// Whether vectors of a class with contiguous lanes always start at multiples of the width, so
    /// that no check at run time is needed.
    bool is_aligned(int klass) const;
    bool own_erf() const { return !aligned_ && job_.type == Compute::f32 && width_ > 1; }
    std::string helper(const char* kind, DType dtype);
    const JobInput& input(int number) const;
    std::string load(const JobInput& input, const std::string& offset, const std::string& lane,
                     bool partial);
    std::string random_number(const Instruction& in, const std::function<std::string(int)>& offset,
                              const std::function<std::string(int)>& lane);
    std::string position(const std::string& offset, const std::string& lane) const;
    std::string leaf(const Instruction& in, const std::function<std::string(int)>& offset,
                     const std::function<std::string(int)>& lane, bool partial);
    std::string number(const std::string& name, const Scalar& value, int argument = -1);
    /// The scalar of the run that p<number> gets, or -1.
    int argument(int number) const;
    std::string whole_number(int instruction, const std::function<std::string(int)>& offset);
    /// The mask of a comparison. `scalar`: for a single lane.
    std::string compare(const std::string& text, bool scalar) const;
    /// A value that is the same in all lanes. `scalar`: for a single lane.
    std::string filled(const std::string& text, bool scalar) const {
        return scalar ? cat("(", scalar_, ")(", text, ")") : splat(text);
    }
    /// The text of an instruction's operation, with operands given as text.
    std::string expression(const Instruction& in, const std::function<std::string(int)>& value,
                           const std::function<std::string(int)>& truth, bool scalar) const;
    std::string extreme(bool max, const std::string& a, const std::string& b, bool scalar) const;
    std::string sign(const std::string& a, bool scalar) const;
    std::string bits(Op op, std::string a, std::string b, bool scalar) const;
    void combine_function(SourceWriter& out, std::size_t k, bool scalar) const;
    std::string combination(SourceWriter& out, const Tape& tape, bool scalar) const;
    // emit_helpers.cpp, emit_erf.cpp, emit_random.cpp and emit_special.cpp: functions that kernels
    // call.
    void helper_text(SourceWriter& out, const std::string& name) const;
    void load_one(SourceWriter& out, const std::string& name, DType dtype) const;
    /// Whether a vector is at a multiple of its size: known, asked at run time, or never assumed.
    enum class Aligned { known, asked, never };
    Aligned alignment(char kind) const;
    void load_vector(SourceWriter& out, const std::string& name, DType dtype, Aligned how) const;
    void load_part(SourceWriter& out, const std::string& name, DType dtype) const;
    void load_lanes(SourceWriter& out, const std::string& name, DType dtype) const;
    void store_vector(SourceWriter& out, const std::string& name, DType dtype, int width,
                      Aligned how) const;
    void store_halves(SourceWriter& out, int width, Aligned how) const;
    void loose_types(SourceWriter& out, const std::set<std::string>& helpers) const;
    void store_part(SourceWriter& out, const std::string& name, DType dtype) const;
    void store_lanes(SourceWriter& out, const std::string& name, DType dtype) const;
    std::string loaded(DType dtype) const;
    void stored_bits(SourceWriter& out, DType dtype, int width) const;
    std::string stored(DType dtype, int width) const;
    void vector_erf(SourceWriter& out) const;
    void philox(SourceWriter& out) const;
    void normal_of(SourceWriter& out) const;
    void random_functions(SourceWriter& out) const;
    bool calls_own(Op op) const { return is_own(op, job_.is_whole()); }
    void own_functions(SourceWriter& out) const;
    void own_function(SourceWriter& out, Op op) const;
    void own_quotient(SourceWriter& out, Op op) const;
    void own_special(SourceWriter& out, Op op) const;
    void own_lanes(SourceWriter& out, Op op) const;
    std::string polynomial(std::span<const double> coefficients, const std::string& x) const;
    bool uses_doubles() const;
};

}  // namespace dlprim::pointwise
