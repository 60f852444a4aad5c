// SPDX-License-Identifier: MIT
// The table of OpenCL sources that the build embeds from kernels/.
#pragma once

namespace dlprim {

struct EmbeddedKernel {
    const char* path;  ///< relative to kernels/; nullptr ends the table
    const char* text;
};
extern const EmbeddedKernel embedded_kernels[];

}  // namespace dlprim
