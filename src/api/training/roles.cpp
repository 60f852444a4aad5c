// SPDX-License-Identifier: MIT
// roles_of().
#include "api/training/roles.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <vector>

namespace dlprim {

Roles roles_of(Net& net) {
    Roles roles;
    for (const std::string& name : net.input_names())
        (net.label_classes(name) > 0 ? roles.labels : roles.images) = name;
    require(!roles.images.empty() && !roles.labels.empty() && net.input_names().size() == 2,
            "training on labelled images needs a network of two inputs: images, and labels that a "
            "loss reads");
    const std::vector<std::string> losses = net.loss_names();
    require(!losses.empty(),
            "the network has no loss: name an output 'loss...', or give one a loss_weight");
    roles.loss = losses.front();
    for (const std::string& name : net.output_names())
        if (std::find(losses.begin(), losses.end(), name) == losses.end() && roles.scores.empty())
            roles.scores = name;
    return roles;
}

}  // namespace dlprim
