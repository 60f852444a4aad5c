// SPDX-License-Identifier: MIT
// Kernels for GPUs: a work-item computes an element or an aligned vector of four. Work-groups
// compute reductions (group_reduction.cpp).
#include "engine/pointwise/group_kernel.hpp"

#include "base/text.hpp"
#include "engine/pointwise/kernel_text.hpp"
#include "engine/pointwise/kernels.hpp"

#include <algorithm>

namespace dlprim::pointwise {

GroupKernel::GroupKernel(const Job& job, const GroupShape& shape)
    : job_(job),
      shape_(shape),
      emit_(job, shape.width, true),
      numbers_(job, "N"),
      scalar_(emit_.scalar_type()),
      vector_(emit_.vector_type()),
      mask_(emit_.mask_type()),
      pad_(job.channel_class >= 0) {
    // Offsets of strided views may be larger than the number of elements.
    const bool narrow =
        std::max(job.kept() * job.reduction(), job.reach()) < (std::int64_t{1} << 31);
    index_ = narrow ? "uint" : "ulong";
    signed_index_ = narrow ? "int" : "long";
}

void GroupKernel::write() {
    if (!shape_.reduces) numbers_.name("items", shape_.items);
    if (pad_) numbers_.name("channels", job_.channels);
    if (shape_.reduces)
        reduction();
    else
        elementwise();
}

std::string GroupKernel::constants() const {
    TextWriter text;
    for (const KernelNumber& n : numbers_.all())
        text << "    const " << index_ << " N" << n.name << " = (" << index_ << ")" << n.name
             << ";\n";
    return std::move(text).str();
}

void GroupKernel::elementwise() {
    out_.line(index_, " item = (", index_, ")get_global_id(0);");
    out_.line("if (item >= Nitems) return;");
    decompose(shape_.kept_dims, "item", shape_.width);
    offsets("o", nullptr, shape_.kept_dims);
    element(std::vector<bool>(job_.tape.code.size(), true));
}

/// Declares nt, the lanes inside the tensor, and nv, those of them that are not padding. Neither is
/// declared if all lanes are valid.
void GroupKernel::lane_counts() {
    if (shape_.tail) {
        const std::int64_t inner = job_.sizes[static_cast<std::size_t>(shape_.last)];
        const std::string whole = numbers_.name(cat("whole", shape_.last), inner);
        out_.line("const int nt = (int)min(", whole, " - i", shape_.last, ", (", index_, ")",
                  shape_.width, ");");
        if (!pad_) out_.line("const int nv = nt;");
    }
    if (pad_)
        out_.line("const int nv = (int)clamp((long)Nchannels - (long)o", job_.channel_class,
                  ", 0L, (long)", shape_.tail ? "nt" : cat(shape_.width), ");");
}

/// Writes the arithmetic of an element or vector at offsets o<class>, and its elementwise results.
/// Padding lanes are set to zero.
void GroupKernel::element(const std::vector<bool>& levels) {
    const auto offset = [](int c) { return cat("(long)o", c); };
    lane_counts();
    emit_.instructions(
        out_, levels, true, offset, [&](int c) { return lane(c); }, shape_.tail);
    if (shape_.tail || pad_) {
        if (shape_.width == 1)
            out_.line("const ", mask_, " live = (", mask_, ")(nv > 0);");
        else
            out_.line("const ", mask_, " live = (", mask_, ")(nv) > ", emit_.iota(), ";");
    }
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        const JobOutput& out = output(k);
        if (out.reduces()) continue;
        std::string value = emit_.value(out.value);
        if (pad_) value = cat("select(", emit_.splat("0"), ", ", value, ", live)");
        out_.line(emit_.store(static_cast<int>(k), cat("y", k), out.dtype, offset(out.klass), value,
                              lane(out.klass), "nt", shape_.tail));
    }
}

Generated group_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text) {
    const GroupShape shape = group_shape(job, device, parts);
    Generated result;
    result.parts = shape.parts;
    result.partial_bytes = size_of(dtype_of(job.type));
    result.range = shape.range;
    if (!text) return result;
    GroupKernel kernel(job, shape);
    kernel.write();
    assemble(result, {job, kernel.emit(), kernel.numbers(),
                      shape.partial() ? Results::partial : Results::final, "", kernel.constants(),
                      kernel.body()});
    return result;
}

}  // namespace dlprim::pointwise
