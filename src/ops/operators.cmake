# The operators of the library: one folder under src/ops each, whose register.cpp defines
# register_<name>(). Adding an operator is adding its folder and its line here.
set(DLPRIM_OPERATORS
    pointwise
    matmul
    inner_product
    conv2d
    transposed_conv2d
    concat
    slice
    transpose
    pad
    reshape
    flatten
    squeeze
    parameter
    pooling2d
    interpolation
)
