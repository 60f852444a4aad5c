// SPDX-License-Identifier: MIT
// How a run starts, which several processes do in common: its configuration, its data, and the
// checkpoint to go on from.
#pragma once

#include "api/training/checkpoints.hpp"
#include "api/training/feeder.hpp"
#include "api/training/run_folder.hpp"
#include "collective/processes/process_group.hpp"
#include "train/config.hpp"

#include <dlprim/trainer.hpp>

namespace dlprim {

/// The processes of the run; null for one.
ProcessGroup* group_of(const TrainCall& call);
/// Reads the configuration, and sees to it that all processes have the same.
TrainConfig common_config(const TrainCall& call);
/// Finds the checkpoint to go on from, by the first process for all.
ResumeFrom common_resume(const TrainCall& call, const RunFolder& folder);
/// What a feeder reads, for processes to agree: how many examples, of how many classes, and a
/// digest.
ProcessGroup::Fields fields_of(const Feeder& feeder);

}  // namespace dlprim
