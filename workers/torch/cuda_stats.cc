// SPDX-License-Identifier: Apache-2.0
#include "torch/cuda_stats.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>

namespace tonnage::torch_worker {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// The observer can be attached and never detached.
std::atomic<std::uint64_t> refused_bytes{0};

Bytes bytes_of(std::int64_t count) {
  return Bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, count)));
}

class CudaStats final : public GpuStats {
 public:
  explicit CudaStats(c10::DeviceIndex device) : device_(device) {
    const c10::cuda::CUDAGuard guard(device_);
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) total_ = Bytes(total);
    allocator::attachOutOfMemoryObserver([](std::int64_t, std::size_t asked, std::size_t, std::size_t) {
      refused_bytes.store(asked, std::memory_order_relaxed);
    });
  }

  Bytes total() const override { return total_; }
  Bytes allocated() const override { return bytes_of(stats().allocated_bytes[kAll].current); }
  Bytes allocated_peak() const override { return bytes_of(stats().allocated_bytes[kAll].peak); }
  Bytes reserved() const override { return bytes_of(stats().reserved_bytes[kAll].current); }
  std::uint64_t refusals() const override { return static_cast<std::uint64_t>(stats().num_ooms); }
  Bytes last_refused() const override { return Bytes(refused_bytes.load(std::memory_order_relaxed)); }

  bool is_broken() const override {
    const c10::cuda::CUDAGuard guard(device_);
    const cudaError_t error = cudaDeviceSynchronize();
    // A refused cudaMalloc leaves its error behind, and is none of the device.
    (void)cudaGetLastError();
    return error != cudaSuccess && error != cudaErrorMemoryAllocation;
  }

  void reset_peak() override { allocator::resetPeakStats(device_); }
  void limit_reserved(Bytes bytes) override {
    const double share =
        static_cast<double>(bytes.count()) / static_cast<double>(std::max(total_, Bytes(1)).count());
    allocator::setMemoryFraction(std::min(1.0, share), device_);
  }
  void release_cached() override { allocator::emptyCache(); }

 private:
  c10::CachingDeviceAllocator::DeviceStats stats() const { return allocator::getDeviceStats(device_); }

  c10::DeviceIndex device_;
  Bytes total_;
};

}  // namespace

std::unique_ptr<GpuStats> make_cuda_stats(int device) {
  return std::make_unique<CudaStats>(static_cast<c10::DeviceIndex>(device));
}

}  // namespace tonnage::torch_worker
