// SPDX-License-Identifier: MIT
// Collective operations on tensors of the device: bytes go by the host, sums are made on the
// device. Between ranks of one host all_reduce, broadcast and all_gather go by memory that they
// share, and all else by Gloo.
//
// A reduction over ranks is one binary tree over the ranks' indices, in the tensor's type: (0+1) +
// (2+3) and so on. Each rank owns one slice of the elements, gets all ranks' values of it, adds
// them, and gives the sums to the others. So the result has the same bits on all ranks and in each
// run, also where ranks have different devices.
//
// All of these are called by all ranks of the group, wait for the others, and write results into
// the tensors that they are given, whatever their strides. Errors: those of Exchange and of the
// device.
#pragma once

#include "distributed/exchange.hpp"

namespace dlprim_torch {

using Tensors = std::vector<at::Tensor>;
using Reduction = c10d::ReduceOp::RedOpType;

/// Throws where a reduction cannot be made of such tensors.
void check_reduction(Reduction reduction, const at::Tensor& tensor);

void all_reduce(Exchange& exchange, const Prepared& tensor, Reduction reduction);
/// Changes `tensor` on the root alone.
void reduce(Exchange& exchange, const at::Tensor& tensor, Reduction reduction, int root);
/// `inputs` has a tensor for each rank, each with as many elements as `output`.
void reduce_scatter(Exchange& exchange, const Tensors& inputs, const at::Tensor& output,
                    Reduction reduction);
void broadcast(Exchange& exchange, const Prepared& tensor, int root);
/// `outputs` has a tensor for each rank, each with as many elements as `input`, which is prepared
/// after them.
void all_gather(Exchange& exchange, const Prepared& input, const std::vector<Prepared>& outputs);
/// `outputs` is used on the root alone.
void gather(Exchange& exchange, const at::Tensor& input, const Tensors& outputs, int root);
/// `inputs` is used on the root alone.
void scatter(Exchange& exchange, const Tensors& inputs, const at::Tensor& output, int root);
/// Both lists have a tensor for each rank, whose sizes may differ.
void all_to_all(Exchange& exchange, const Tensors& inputs, const Tensors& outputs);

void send(Exchange& exchange, const at::Tensor& tensor, int to, int tag);
/// Returns the rank that sent it. -1 as `from` accepts any rank.
int receive(Exchange& exchange, const at::Tensor& tensor, int from, int tag);

}  // namespace dlprim_torch
