// SPDX-License-Identifier: MIT
// The table of tuning databases that the build embeds from databases/.
#pragma once

namespace dlprim {

struct EmbeddedDatabase {
    const char* path;  ///< relative to databases/; nullptr ends the table
    const char* text;
};
extern const EmbeddedDatabase embedded_databases[];

}  // namespace dlprim
