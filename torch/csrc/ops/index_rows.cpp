// SPDX-License-Identifier: MIT
// Rows of a dimension that an index names: taken, added, replaced, filled and reduced.
//
// An index out of range is found by the kernel, and raised when the program next waits. One below 0
// is out of range as on the CPU, where index_fill_ alone counts it from the end.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

namespace dlprim_torch {
namespace {

void check_index(const char* name, const at::Tensor& index) {
    TORCH_CHECK_INDEX(index.dim() <= 1, name, "(): Index is supposed to be a vector");
    TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, name,
                "(): Expected dtype int32/int64 for index");
}

at::Tensor& index_select_out(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                             at::Tensor& out) {
    check_index("index_select", index);
    TORCH_CHECK(self.scalar_type() == out.scalar_type(),
                "index_select(): self and result must have the same scalar type");
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    std::vector<std::int64_t> sizes = self.sizes().vec();
    TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
                "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
                " value(s)");
    if (self.dim() > 0) sizes[static_cast<std::size_t>(axis)] = index.numel();
    at::native::resize_output(out, sizes);
    if (out.numel() == 0) return out;
    TORCH_CHECK_INDEX(self.numel() > 0,
                      "index_select(): self indexing axis dim should be positive");
    call_into({as_line(out)}, dp::ops::Gather{.mode = "rows", .dim = axis, .from_end = false},
              {view_of(as_line(self)), view_of(as_line(index))});
    return out;
}

/// Scatters rows of `source`, which has the shape of `self` except for dimension `dim`.
void scatter_rows(const at::Tensor& out, const at::Tensor& self, std::int64_t dim,
                  const at::Tensor& index, const at::Tensor& source, const dp::ops::Scatter& how) {
    if (self.numel() == 0 || index.numel() == 0) return keep(out, self);
    const at::Tensor line = as_line(self);
    dp::ops::Scatter options = how;
    options.mode = "rows";
    options.dim = at::maybe_wrap_dim(dim, line.dim());
    std::vector<std::int64_t> sizes = line.sizes().vec();
    sizes[static_cast<std::size_t>(options.dim)] = index.numel();
    call_into({as_line(out)}, options,
              {view_of(line), view_of(as_line(index)), view_of(source.reshape(sizes))});
}

at::Tensor& index_add_out(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                          const at::Tensor& source, const at::Scalar& alpha, at::Tensor& out) {
    at::meta::index_add_out(out, self, dim, index, source, alpha);
    const bool plain = !alpha.isComplex() && alpha.to<double>() == 1;
    scatter_rows(out, self, dim, index, plain ? source : source.mul(alpha),
                 {.from_end = false, .reduction = "add"});
    return out;
}

at::Tensor& index_copy_out(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                           const at::Tensor& source, at::Tensor& out) {
    at::meta::index_copy_out(out, self, dim, index, source);
    scatter_rows(out, self, dim, index, source, {.from_end = false});
    return out;
}

at::Tensor& index_reduce_out(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                             const at::Tensor& source, std::string_view reduce, bool include_self,
                             at::Tensor& out) {
    at::meta::index_reduce_out(out, self, dim, index, source, reduce, include_self);
    scatter_rows(
        out, self, dim, index, source,
        {.from_end = false, .reduction = name_of_reduction(reduce), .include_self = include_self});
    return out;
}

/// One value for all rows that the index names.
void fill_rows(const at::Tensor& self, std::int64_t dim, const at::Tensor& index,
               const at::Tensor& value) {
    check_index("index_fill_", index);
    if (self.numel() == 0 || index.numel() == 0) return;
    std::vector<std::int64_t> sizes = as_line(self).sizes().vec();
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    sizes[static_cast<std::size_t>(axis)] = index.numel();
    scatter_rows(self, self, dim, index, value.to(self.scalar_type()).expand(sizes),
                 {.from_end = true});
}

at::Tensor& index_fill_scalar(at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                              const at::Scalar& value) {
    if (is_expanded(self))
        return on_expanded<at::_ops::index_fill__int_Scalar>(self, dim, index, value);
    if (!serves(self)) return on_cpu<at::_ops::index_fill__int_Scalar>(self, dim, index, value);
    TORCH_CHECK(!value.isComplex(),
                "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    fill_rows(self, dim, index, at::scalar_tensor(value, self.options()));
    return self;
}

at::Tensor& index_fill_tensor(at::Tensor& self, std::int64_t dim, const at::Tensor& index,
                              const at::Tensor& value) {
    TORCH_CHECK(value.dim() == 0,
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    if (value.is_cpu()) return index_fill_scalar(self, dim, index, value.item());
    if (is_expanded(self))
        return on_expanded<at::_ops::index_fill__int_Tensor>(self, dim, index, value);
    if (!serves(self)) return on_cpu<at::_ops::index_fill__int_Tensor>(self, dim, index, value);
    fill_rows(self, dim, index, value);
    return self;
}

/// The sum of the gradients of each row of the table. The row at `padding` gets none.
at::Tensor embedding_gradient(const at::Tensor& grad, const at::Tensor& indices, c10::SymInt rows,
                              c10::SymInt padding, bool by_frequency) {
    const c10::DeviceGuard guard(grad.device());
    const std::int64_t count = rows.expect_int(), width = grad.size(-1);
    if (indices.numel() == 0 || width == 0) return at::zeros({count, width}, grad.options());
    const at::Tensor named = indices.reshape({-1});
    at::Tensor updates = grad.reshape({-1, width});
    if (by_frequency) {
        const at::Tensor one = at::ones({1}, grad.options()).expand({named.numel()});
        const at::Tensor times = at::zeros({count}, grad.options()).index_add(0, named, one);
        updates = updates / times.index_select(0, named).unsqueeze(1);
    }
    const at::Tensor made = new_tensor(
        results_of(dp::ops::Scatter{.from_end = false, .reduction = "add", .shape = {count, width}},
                   {view_of(named), view_of(updates)})[0],
        grad.device());
    const std::int64_t skipped = padding.expect_int();
    if (skipped >= 0) made.select(0, skipped).zero_();
    return made;
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("index_select", into_new<index_select_out>);
    served.impl("index_select.out", index_select_out, Overlap::none);
    served.impl("index_add.out", index_add_out);
    served.impl("index_copy.out", index_copy_out);
    served.impl("index_reduce.out", index_reduce_out);
    m.impl("index_fill_.int_Scalar", index_fill_scalar, Overlap::none, Repeats::left);
    m.impl("index_fill_.int_Tensor", index_fill_tensor, Overlap::none, Repeats::left);
    served.impl("embedding_dense_backward", embedding_gradient);
}

}  // namespace
}  // namespace dlprim_torch
