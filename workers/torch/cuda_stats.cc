// SPDX-License-Identifier: Apache-2.0
#include "torch/cuda_stats.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>

#include "torch/tensors.h"

namespace tonnage::torch_worker {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// The observer can be attached and never detached.
std::atomic<std::uint64_t> refused_bytes{0};
std::atomic<std::uint64_t> reserved_when_refused{0};

Bytes bytes_of(std::int64_t count) {
  return Bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, count)));
}

class CudaStats final : public GpuStats {
 public:
  CudaStats(c10::DeviceIndex device, Bytes total) : device_(device), total_(total) {
    allocator::attachOutOfMemoryObserver([device](std::int64_t, std::size_t asked, std::size_t, std::size_t) {
      refused_bytes.store(asked, std::memory_order_relaxed);
      const auto reserved = allocator::getDeviceStats(device).reserved_bytes[kAll].current;
      reserved_when_refused.store(bytes_of(reserved).count(), std::memory_order_relaxed);
    });
  }

  Bytes total() const override { return total_; }
  Bytes allocated() const override { return bytes_of(stats().allocated_bytes[kAll].current); }
  Bytes allocated_peak() const override { return bytes_of(stats().allocated_bytes[kAll].peak); }
  Bytes reserved() const override { return bytes_of(stats().reserved_bytes[kAll].current); }
  std::uint64_t refusals() const override { return static_cast<std::uint64_t>(stats().num_ooms); }
  Refused last_refused() const override {
    return {Bytes(refused_bytes.load(std::memory_order_relaxed)),
            Bytes(reserved_when_refused.load(std::memory_order_relaxed))};
  }

  bool is_broken() const override {
    const cudaError_t error = cudaDeviceSynchronize();
    // A refused cudaMalloc leaves its error behind, and is none of the device.
    (void)cudaGetLastError();
    return error != cudaSuccess && error != cudaErrorMemoryAllocation;
  }

  void reset_peak() override { allocator::resetPeakStats(device_); }
  void limit_reserved(Bytes bytes) override {
    // Half a byte more: what is multiplied out again must not be one byte less.
    const double share = (static_cast<double>(bytes.count()) + 0.5) / static_cast<double>(total_.count());
    allocator::setMemoryFraction(std::min(1.0, share), device_);
  }
  void release_cached() override { allocator::emptyCache(); }

 private:
  c10::CachingDeviceAllocator::DeviceStats stats() const { return allocator::getDeviceStats(device_); }

  c10::DeviceIndex device_;
  Bytes total_;
};

}  // namespace

Result<std::unique_ptr<GpuStats>> make_cuda_stats(int device) {
  return guarded("no_device", [device]() -> Result<std::unique_ptr<GpuStats>> {
    const auto index = static_cast<c10::DeviceIndex>(device);
    const c10::DeviceIndex devices = c10::cuda::device_count_ensure_non_zero();
    if (device >= devices) {
      return Status(Code::kNotFound, "no_device",
                    "there is no cuda:" + std::to_string(device) + "; the runtime sees " +
                        std::to_string(devices) + " devices");
    }
    c10::cuda::set_device(index);
    // Blocks serve the stream that freed them alone: a second stream would reserve everything twice.
    c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, index));
    allocator::init(devices);
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess || total == 0) {
      return Status(Code::kUnavailable, "no_device",
                    "cuda:" + std::to_string(device) + " does not say how much memory it has");
    }
    std::unique_ptr<GpuStats> stats = std::make_unique<CudaStats>(index, Bytes(total));
    return stats;
  });
}

}  // namespace tonnage::torch_worker
