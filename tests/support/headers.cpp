// SPDX-License-Identifier: MIT
// Nothing: a target that only holds precompiled headers needs a source, too.
