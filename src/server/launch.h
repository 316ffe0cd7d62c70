// SPDX-License-Identifier: Apache-2.0
// Which program runs a model's worker, in which environment.
#pragma once

#include "pipeline/pipeline.h"
#include "server/server.h"

namespace tonnage::server {

// What the pipeline has to know of workers: the cores of this machine, and how to start one. Its
// environment is built from empty: nothing of ours leaks into code that a user wrote.
pipeline::PipelineOptions worker_side(const ServerOptions& options);

}  // namespace tonnage::server
