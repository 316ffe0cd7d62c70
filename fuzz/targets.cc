// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "fuzz/target.h"

namespace tonnage::fuzz {
namespace {

constexpr std::array kTargets = {
    Target{"message", "control messages between front and worker", run_message, message_seeds},
    Target{"documents", "what a worker is told to load and says it has loaded", run_documents,
           document_seeds},
    Target{"outputs", "layouts and bytes of a batch's outputs", run_outputs, output_seeds},
    Target{"v2", "bodies of the V2 protocol, JSON and binary", run_v2, v2_seeds},
    Target{"sagemaker", "bodies of /invocations in every media type", run_sagemaker, sagemaker_seeds},
    Target{"tokenizer", "texts", run_tokenizer, tokenizer_seeds},
    Target{"model_toml", "model.toml", run_model_toml, model_toml_seeds},
    Target{"profile", "a stored cost profile", run_profile, profile_seeds},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  return found == kTargets.end() ? nullptr : &*found;
}

}  // namespace tonnage::fuzz
