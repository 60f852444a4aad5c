// SPDX-License-Identifier: MIT
// Contact sheets: augmented pictures side by side in one.
#pragma once

#include "train/data/open_data.hpp"

#include <dlprim/data.hpp>

namespace dlprim {

/// See TrainingData::contact_sheet().
ContactSheet draw_contact_sheet(const DataPart& part, const Augmenter& augmenter, std::int64_t rows,
                                std::int64_t columns);

}  // namespace dlprim
