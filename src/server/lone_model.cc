// SPDX-License-Identifier: Apache-2.0
#include "server/lone_model.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "memory/device_ledger.h"
#include "memory/limits.h"
#include "model/model_toml.h"
#include "pipeline/pipeline.h"
#include "server/asio_loop.h"
#include "server/launch.h"
#include "state/state_store.h"
#include "supervisor/child_process.h"

namespace tonnage::server {
namespace {

constexpr Duration kProgressEvery = milliseconds(200);
// How long a ready worker may take to say what its memory consists of.
constexpr auto kPatience = seconds(2);

// The state directory, with an eye shut when its costs are to be measured anew.
class Profiles final : public cost::ProfileStorePort {
 public:
  Profiles(std::unique_ptr<state::StateStore> store, bool forget)
      : store_(std::move(store)), forget_(forget) {}
  std::optional<std::string> load(std::string_view fingerprint) override {
    return forget_ ? std::nullopt : store_->load(fingerprint);
  }
  void save(std::string_view fingerprint, std::string_view profile) override {
    store_->save(fingerprint, profile);
  }

 private:
  std::unique_ptr<state::StateStore> store_;
  bool forget_;
};

}  // namespace

struct LoneModel::State {
  State(const ServerOptions& options, Bytes limit, bool forget)
      : log(telemetry::make_null_log()),
        budget("host", limit),
        devices(options.device_memory),
        profiles(state::StateStore::open(options.state_directory, *log), forget),
        pipeline(worker_side(options), {loop, processes, budget, *log, &profiles, nullptr, &devices}) {}

  std::unique_ptr<telemetry::Log> log;
  boost::asio::io_context io{1};
  AsioLoop loop{io};
  memory::Budget budget;
  memory::Devices devices;
  supervisor::ChildProcessFactory processes{loop};
  Profiles profiles;
  pipeline::Pipeline pipeline;
  std::string name;

  void run() {
    io.restart();
    io.run();
  }
};

Result<LoneModel> LoneModel::start(const ServerOptions& options, bool forget,
                                   const std::function<void(double)>& progress) {
  TONNAGE_ASSIGN(model::ModelSpec spec, model::load_model_directory(options.models, options.route));
  if (options.threads > 0) spec.threads = options.threads;
  spec.workers = 1;
  TONNAGE_ASSIGN(const std::vector<memory::DetectedLimit> limits, memory::detect_limits());
  auto state =
      std::make_unique<State>(options, memory::budget_from(options.memory, limits, options.headroom), forget);
  state->name = spec.name;
  pipeline::Pipeline& pipeline = state->pipeline;
  pipeline.on_model_change([s = state.get()] {
    const pipeline::ServedModel* model = s->pipeline.find(s->name);
    const bool has_failed = !model->trouble.is_ok() && !model->warms_up_again();
    if (model->phase == pipeline::ModelPhase::kReady || has_failed) s->io.stop();
  });
  Loop::Timer tick;
  const std::function<void()> report = [&] {
    const pipeline::ServedModel* model = pipeline.find(state->name);
    if (model->warm_up) progress(model->warm_up->progress());
    tick = state->loop.call_after(kProgressEvery, [&report] { report(); });
  };
  TONNAGE_TRY(pipeline.add_model(std::move(spec)));
  report();
  state->run();
  pipeline.on_model_change({});
  const pipeline::ServedModel* model = pipeline.find(state->name);
  if (model->phase != pipeline::ModelPhase::kReady) return model->trouble;
  const supervisor::Worker& worker = *model->workers.front().worker;
  state->io.restart();
  for (const auto until = state->loop.now() + kPatience;
       !worker.memory().accounts && state->loop.now() < until;) {
    state->io.run_one_for(kPatience);
  }
  return LoneModel(std::move(state));
}

LoneModel::LoneModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoneModel::LoneModel(LoneModel&&) noexcept = default;
LoneModel& LoneModel::operator=(LoneModel&&) noexcept = default;
LoneModel::~LoneModel() = default;

const pipeline::ServedModel& LoneModel::model() const { return *state_->pipeline.find(state_->name); }
supervisor::Worker& LoneModel::worker() { return *model().workers.front().worker; }
Bytes LoneModel::budget() const {
  return model().device != nullptr ? model().device->root().limit() : state_->budget.root().limit();
}
Bytes LoneModel::shared() const { return state_->budget.root().child("shared").used(); }
Loop& LoneModel::loop() { return state_->loop; }
void LoneModel::run() { state_->run(); }
void LoneModel::stop() { state_->io.stop(); }

}  // namespace tonnage::server
