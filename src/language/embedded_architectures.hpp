// SPDX-License-Identifier: MIT
// The table of architectures that the build embeds from architectures/.
#pragma once

namespace dlprim::language {

struct EmbeddedArchitecture {
    const char* path;  ///< relative to architectures/; nullptr ends the table
    const char* text;
};
extern const EmbeddedArchitecture embedded_architectures[];

}  // namespace dlprim::language
