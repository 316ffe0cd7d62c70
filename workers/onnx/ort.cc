// SPDX-License-Identifier: Apache-2.0
#include "onnx/ort.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include "base/spans.h"

namespace tonnage::onnx_worker {
namespace {

constexpr const char* kLibrary = "libonnxruntime.so.1";
// The oldest that knows all we call (OrtAllocator::Reserve): any later library has it, too.
constexpr std::uint32_t kApi = 18;
constexpr std::size_t kMaxErrorText = 600;

Status missing(const std::string& what) {
  return {Code::kUnavailable, "missing_runtime",
          "cannot load " + std::string(kLibrary) + ": " + what +
              "; ./dev setup installs it where the program was built to look"};
}

}  // namespace

Result<Ort> Ort::open() {
  // Never closed: threads and the allocator of the runtime may outlive every session.
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): called once, before any thread
    return missing(why == nullptr ? "no reason given" : why);
  }
  void* symbol = ::dlsym(library, "OrtGetApiBase");
  if (symbol == nullptr) return missing("it has no OrtGetApiBase");
  using GetApiBase = const OrtApiBase*();
  const OrtApiBase* base = pointer_cast<GetApiBase>(symbol)();
  const OrtApi* api = base->GetApi(kApi);
  const std::string version = base->GetVersionString();
  if (api == nullptr) return missing("version " + version + " is too old, 1.18 is the oldest allowed");
  return Ort(api, version);
}

Status Ort::status_of(OrtStatus* status, std::string_view reason) const {
  if (status == nullptr) return Status::ok();
  const OrtErrorCode code = api_->GetErrorCode(status);
  std::string text = api_->GetErrorMessage(status);
  api_->ReleaseStatus(status);
  if (text.size() > kMaxErrorText) text.resize(kMaxErrorText);
  return {code == ORT_NOT_IMPLEMENTED ? Code::kUnimplemented : Code::kInternal, reason, std::move(text)};
}

}  // namespace tonnage::onnx_worker
