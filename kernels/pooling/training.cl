// SPDX-License-Identifier: MIT
// Pooling and its gradient in one program, for training steps on CPUs, in which both run. On PoCL each program is read by a front
// end in every process. The defines are those of generic.cl.
#include "pooling/generic.cl"
#include "pooling/backward.cl"
