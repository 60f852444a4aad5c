// SPDX-License-Identifier: MIT
// Casts to narrow types; see narrow_cast.hpp. The library's Cast makes infinity or NaN of what is
// too large for a float of 8 bits, so that saturation is a bound in front of it.
#include "formats/onnx/rules/narrow_cast.hpp"

namespace dlprim::onnx {

namespace {

double largest_value(DType dtype) {
    switch (dtype) {
        case DType::f8e4m3fn:
            return 448;
        case DType::f8e4m3fnuz:
            return 240;
        case DType::f8e5m2:
        case DType::f8e5m2fnuz:
            return 57344;
        default:
            return 0x1p127;  // float8e8m0
    }
}

/// Powers of two: the nearest one is moved up or down where it lies on the other side.
Ref to_power(Call& call, Ref x, bool saturate, const std::string& rounding) {
    call.check(rounding == "up" || rounding == "down" || rounding == "nearest", "round_mode '",
               rounding, "' is unknown");
    Builder& build = call.build;
    x = build.cast(x, DType::f32);
    if (rounding != "nearest") {
        const Ref near =
            build.cast(build.cast(saturated(build, x, DType::f8e8m0), DType::f8e8m0), DType::f32);
        x = build.pointwise(rounding == "up" ? "y0 = isinf(x0) ? x0 : x1 < x0 ? x1 * 2 : x1"
                                             : "y0 = isinf(x0) ? x0 : x1 > x0 ? x1 * 0.5 : x1",
                            {x, near});
    }
    return build.cast(saturate ? saturated(build, x, DType::f8e8m0) : x, DType::f8e8m0);
}

}  // namespace

Ref saturated(Builder& build, Ref value, DType dtype) {
    if (!is_float(value->spec.dtype)) return value;
    const double most = largest_value(dtype);
    // A half is not beyond the bound where that is no half.
    const Ref wide = value->spec.dtype == DType::f64 ? value : build.cast(value, DType::f32);
    return build.pointwise("y0 = min(max(x0, -p0), p0)", {wide}, {most});
}

Ref cast_to_narrow(Call& call, DType dtype, bool saturate, const std::string& rounding) {
    Builder& build = call.build;
    const Ref x = call.in(0);
    if (x->spec.dtype == dtype) return x;
    if (dtype == DType::f8e8m0) return to_power(call, x, saturate, rounding);
    const bool is_float8 = dtype >= DType::f8e4m3fn && dtype <= DType::f8e5m2fnuz;
    if (!is_float8 || !saturate) return build.cast(x, dtype);
    const Ref number = is_narrow(x->spec.dtype) ? build.cast(x, DType::f32) : x;
    return build.cast(saturated(build, number, dtype), dtype);
}

}  // namespace dlprim::onnx
