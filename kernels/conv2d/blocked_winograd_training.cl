// SPDX-License-Identifier: MIT
// Winograd's convolution and the packing of its weights in one program, for training steps, in which both run. On PoCL each program
// is read by a front end in every process. The defines are those of blocked_winograd.cl.
#include "conv2d/blocked_winograd.cl"
#include "conv2d/blocked_winograd_pack.cl"
