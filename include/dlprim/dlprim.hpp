// SPDX-License-Identifier: MIT
// Everything that a program needs: includes all other headers. The namespace is dlprim, short dp.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/data.hpp>
#include <dlprim/describe.hpp>
#include <dlprim/diagnosis.hpp>
#include <dlprim/dtype.hpp>
#include <dlprim/error.hpp>
#include <dlprim/event.hpp>
#include <dlprim/image.hpp>
#include <dlprim/log.hpp>
#include <dlprim/memory_map.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/onnx.hpp>
#include <dlprim/onnx_session.hpp>
#include <dlprim/onnx_value.hpp>
#include <dlprim/op_options.hpp>
#include <dlprim/opencl.hpp>
#include <dlprim/ops.hpp>
#include <dlprim/pinned.hpp>
#include <dlprim/pointwise_many.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/preprocessing.hpp>
#include <dlprim/report.hpp>
#include <dlprim/schedule.hpp>
#include <dlprim/selection.hpp>
#include <dlprim/settings.hpp>
#include <dlprim/shape.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/team.hpp>
#include <dlprim/tensor.hpp>
#include <dlprim/tensor_file.hpp>
#include <dlprim/trainer.hpp>
#include <dlprim/tuning.hpp>
#include <dlprim/version.hpp>
