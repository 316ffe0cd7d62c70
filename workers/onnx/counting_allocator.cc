// SPDX-License-Identifier: Apache-2.0
#include "onnx/counting_allocator.h"

#include <onnxruntime_c_api.h>

#include <new>
#include <utility>

#include "kit/counted_memory.h"

namespace tonnage::onnx_worker {
namespace {

class Refused final : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "tonnage: memory was refused, by the batch's grant or by the kernel";
  }
};

}  // namespace

struct CountingAllocator::State : OrtAllocator {
  State(kit::MemoryMeter& counted_by, Owned<OrtMemoryInfo> described) noexcept
      : OrtAllocator{}, meter(counted_by), info(std::move(described)) {
    version = 18;  // what comes later in the struct does not exist for the runtime
    Alloc = &allocate;
    Reserve = &allocate;
    Free = [](OrtAllocator*, void* payload) { kit::release_counted(payload); };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const State*>(self)->info.get();
    };
  }

  static void* allocate(OrtAllocator* self, std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* payload = kit::allocate_counted(static_cast<State*>(self)->meter, bytes);
    if (payload == nullptr) throw Refused();
    return payload;
  }

  kit::MemoryMeter& meter;
  Owned<OrtMemoryInfo> info;
};

CountingAllocator::CountingAllocator(std::unique_ptr<State> state) : state_(std::move(state)) {}
CountingAllocator::CountingAllocator(CountingAllocator&&) noexcept = default;
CountingAllocator& CountingAllocator::operator=(CountingAllocator&&) noexcept = default;
CountingAllocator::~CountingAllocator() = default;

Result<CountingAllocator> CountingAllocator::install(const Ort& ort, OrtEnv* env, kit::MemoryMeter& meter) {
  OrtMemoryInfo* info = nullptr;
  TONNAGE_TRY(
      ort.status_of(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info), "runtime_error"));
  auto state = std::make_unique<State>(meter, Owned<OrtMemoryInfo>(info, ort->ReleaseMemoryInfo));
  TONNAGE_TRY(ort.status_of(ort->RegisterAllocator(env, state.get()), "runtime_error"));
  return CountingAllocator(std::move(state));
}

}  // namespace tonnage::onnx_worker
