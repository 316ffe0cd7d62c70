// SPDX-License-Identifier: Apache-2.0
#include "torch/tensors.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <utility>

#include "torch/libtorch.h"

namespace tonnage::torch_worker {
namespace {

constexpr std::size_t kMaxErrorText = 600;

struct TypePair {
  tensor::DataType ours;
  c10::ScalarType theirs;
};
constexpr TypePair kTypes[] = {
    {tensor::DataType::kBool, c10::ScalarType::Bool},
    {tensor::DataType::kUint8, c10::ScalarType::Byte},
    {tensor::DataType::kUint16, c10::ScalarType::UInt16},
    {tensor::DataType::kUint32, c10::ScalarType::UInt32},
    {tensor::DataType::kUint64, c10::ScalarType::UInt64},
    {tensor::DataType::kInt8, c10::ScalarType::Char},
    {tensor::DataType::kInt16, c10::ScalarType::Short},
    {tensor::DataType::kInt32, c10::ScalarType::Int},
    {tensor::DataType::kInt64, c10::ScalarType::Long},
    {tensor::DataType::kFp16, c10::ScalarType::Half},
    {tensor::DataType::kFp32, c10::ScalarType::Float},
    {tensor::DataType::kFp64, c10::ScalarType::Double},
    {tensor::DataType::kBf16, c10::ScalarType::BFloat16},
};

Result<tensor::DataType> our_type(c10::ScalarType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.theirs == type) return pair.ours;
  }
  return internal("bad_output",
                  std::string("an output has type ") + c10::toString(type) + ", which the wire cannot carry");
}

Status check_output(const at::Tensor& tensor, tensor::DataType type, const wire::TensorDoc& doc) {
  const auto where = "output '" + doc.name + "' ";
  if (type != doc.type) {
    return internal("bad_output", where + "has type " + std::string(tensor::datatype_name(type)) +
                                      ", expected " + std::string(tensor::datatype_name(doc.type)));
  }
  if (static_cast<std::size_t>(tensor.dim()) != doc.dims.size()) {
    return internal("bad_output", where + "has rank " + std::to_string(tensor.dim()) + ", expected " +
                                      std::to_string(doc.dims.size()));
  }
  for (std::size_t i = 0; i < doc.dims.size(); ++i) {
    const std::int64_t size = tensor.size(static_cast<std::int64_t>(i));
    if (doc.dims[i] >= 0 && doc.dims[i] != size) {
      return internal("bad_output", where + "has size " + std::to_string(size) + " in dim " +
                                        std::to_string(i) + ", expected " + std::to_string(doc.dims[i]));
    }
  }
  return Status::ok();
}

}  // namespace

struct Outputs::Storage {
  std::vector<at::Tensor> tensors;
};

Outputs::Outputs() = default;
Outputs::~Outputs() = default;
Outputs::Outputs(Outputs&&) noexcept = default;
Outputs& Outputs::operator=(Outputs&&) noexcept = default;

struct OutputsBuilder {
  static Status add(Outputs& into, at::Tensor tensor, const wire::TensorDoc* doc) {
    TONNAGE_ASSIGN(const tensor::DataType type, our_type(tensor.scalar_type()));
    if (doc != nullptr) TONNAGE_TRY(check_output(tensor, type, *doc));
    if (!into.storage_) into.storage_ = std::make_unique<Outputs::Storage>();
    const auto sizes = tensor.sizes();
    TONNAGE_ASSIGN(const tensor::Shape shape, tensor::Shape::make({sizes.data(), sizes.size()}));
    into.tensors_.push_back(
        {type, shape, {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    into.storage_->tensors.push_back(std::move(tensor));
    return Status::ok();
  }
};

Result<Outputs> collect(std::vector<at::Tensor> tensors, const std::vector<wire::TensorDoc>& docs,
                        std::optional<c10::ScalarType> reduced) {
  if (!docs.empty() && tensors.size() != docs.size()) {
    return internal("bad_output", "the model returned " + std::to_string(tensors.size()) +
                                      " tensors, expected " + std::to_string(docs.size()));
  }
  Outputs out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor tensor = std::move(tensors[i]);
    if (!tensor.defined() || !tensor.device().is_cpu())
      return internal("bad_output", "output " + std::to_string(i) + " is not a CPU tensor");
    if (tensor.scalar_type() == reduced) {
      c10::ScalarType declared = c10::ScalarType::Float;
      if (!docs.empty()) {
        TONNAGE_ASSIGN(declared, torch_type(docs[i].type));
      }
      tensor = tensor.to(declared);
    }
    TONNAGE_TRY(OutputsBuilder::add(out, tensor.contiguous(), docs.empty() ? nullptr : &docs[i]));
  }
  return out;
}

std::string runtime_name() { return std::string("libtorch ") + TORCH_VERSION; }
std::string cpu_capability() { return at::get_cpu_capability(); }

void use_threads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
}

Status wake_device(const std::string& device) {
  return guarded("no_device", [&] {
    const at::Tensor ones = at::ones({64, 64}, at::TensorOptions().device(c10::Device(device)));
    (void)at::linear(ones, ones, ones[0]).cpu();
    return Status::ok();
  });
}

Result<c10::ScalarType> torch_type(tensor::DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == type) return pair.theirs;
  }
  return invalid("bad_datatype",
                 "libtorch has no tensors of type " + std::string(tensor::datatype_name(type)));
}

// from_blob wants a mutable pointer.
at::Tensor wrap(const kit::Tensor& input, c10::ScalarType type) {
  void* data = const_cast<std::byte*>(input.data.data());
  const auto dims = input.shape.dims();
  return at::from_blob(data, c10::IntArrayRef(dims.data(), dims.size()), at::TensorOptions().dtype(type));
}

std::string shortened(std::string_view text) {
  if (text.size() <= kMaxErrorText) return std::string(text);
  constexpr std::size_t kHead = 100;
  std::string out(text.substr(0, kHead));
  out += " … ";
  out += text.substr(text.size() - (kMaxErrorText - kHead));
  return out;
}

}  // namespace tonnage::torch_worker
