// SPDX-License-Identifier: Apache-2.0
// PipelineRig: the real pipeline with lanes, planner, supervisor and ledger; only the clock and the
// worker processes are fakes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/measure/synthetic.h"
#include "pipeline/pipeline.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "testkit/fake_device.h"
#include "testkit/fake_process.h"
#include "testkit/manual_loop.h"
#include "testkit/model_specs.h"

namespace tonnage::testkit {

class MemoryProfiles final : public cost::ProfileStorePort {
 public:
  std::optional<std::string> load(std::string_view key) override {
    const auto found = kept.find(std::string(key));
    if (found == kept.end()) return std::nullopt;
    return found->second;
  }
  void save(std::string_view key, std::string_view profile) override { kept[std::string(key)] = profile; }
  std::map<std::string, std::string> kept;
};

// ids [-1, -1] → sum FP32 [-1, 1]: every row's answer is known.
inline model::ModelSpec sum_spec(std::uint32_t max_length = 512) {
  model::TensorSpec ids = tensor_spec("ids", tensor::DataType::kInt64, {-1, -1});
  ids.range = model::ValueRange{0, 30521};
  model::ModelSpec spec = model_spec("sum", {ids}, {tensor_spec("sum", tensor::DataType::kFp32, {-1, 1})});
  spec.max_length = max_length;
  return spec;
}

struct Outcome {
  std::optional<Status> status;  // nothing yet; ok with values
  std::vector<float> values;
  std::string fallback_model;
  bool is_answered() const { return status.has_value(); }
};

// One request of rows of equal length; the ids of each row are `first_id` and then ones.
struct Ask {
  std::uint32_t rows = 1;
  std::uint32_t length = 16;
  std::int64_t first_id = 1;
  Duration deadline = seconds(60);
  std::string_view model = "sum";
};

struct PipelineRig {
  explicit PipelineRig(Bytes memory = mib(400), std::uint32_t compute_tokens = 2)
      : budget("host", memory), devices(Bytes(), [this](unsigned index) { return open_device(index); }) {
    processes.model.outputs = row_sums;
    pipeline::PipelineOptions options;
    options.compute_tokens = compute_tokens;
    options.launch = [this](const model::ModelSpec&) {
      ++launch_commands;
      return supervisor::LaunchCommand{};
    };
    pipe = std::make_unique<pipeline::Pipeline>(
        std::move(options),
        pipeline::Pipeline::Host{loop, processes, budget, *log, &profiles, &metrics, &devices});
  }

  void serve(model::ModelSpec spec) {
    const std::string name = spec.name;
    const Status added = pipe->add_model(std::move(spec));
    TONNAGE_CHECK(added.is_ok(), added.to_string());
    for (int i = 0; i < 10000 && pipe->find(name)->phase != pipeline::ModelPhase::kReady; ++i) {
      loop.advance(milliseconds(5));
    }
  }
  const pipeline::ServedModel& model(std::string_view name = "sum") const { return *pipe->find(name); }

  request::RequestId submit(std::shared_ptr<Outcome> outcome, const Ask& ask) {
    request::Request request =
        pipeline::synthetic_request(pipe->find(ask.model)->spec, ask.rows, ask.length, 1);
    auto ids = as_elements<std::int64_t>(request.inputs[0]->data.mutable_view());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i % ask.length == 0 ? ask.first_id : 1;
    request.arrived = loop.now();
    request.deadline = loop.now() + ask.deadline;
    auto envelope = budget.root().child("envelopes").charge(kib(8));
    if (envelope.is_ok()) request.envelope = std::move(envelope).value();
    request.completion = Completion<request::Answer>([outcome](Result<request::Answer> answer) {
      outcome->status = answer.status();
      if (!answer.is_ok()) return;
      outcome->fallback_model = answer->fallback_model;
      const auto values = as_elements<float>(answer->outputs[0].data.view());
      outcome->values.assign(values.begin(), values.end());
    });
    return pipe->submit(std::move(request));
  }
  std::shared_ptr<Outcome> ask(const Ask& question) {
    auto outcome = std::make_shared<Outcome>();
    submit(outcome, question);
    return outcome;
  }
  std::uint64_t launch_commands = 0;  // asked for: each description of a worker has one
  // One device, cuda:0.
  Result<std::unique_ptr<memory::DevicePort>> open_device(unsigned index) {
    if (index != 0) return Status(Code::kNotFound, "no_device", "there is no such device");
    std::unique_ptr<memory::DevicePort> port = std::make_unique<FakeDevice>(device);
    return port;
  }
  Bytes envelopes() { return budget.root().child("envelopes").used(); }

  ManualLoop loop;
  FakeFactory processes{loop};
  memory::Budget budget;
  FakeDeviceState device{processes};
  memory::Devices devices;
  MemoryProfiles profiles;
  std::unique_ptr<telemetry::Log> log = telemetry::make_null_log();
  telemetry::Registry metrics;
  std::unique_ptr<pipeline::Pipeline> pipe;
};

}  // namespace tonnage::testkit
