// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_docs.h"

#include <fmt/format.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tonnage::onnx_worker {
namespace {

struct TypePair {
  tensor::DataType ours;
  ONNXTensorElementDataType theirs;
};
constexpr TypePair kTypes[] = {
    {tensor::DataType::kBool, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
    {tensor::DataType::kUint8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},
    {tensor::DataType::kUint16, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16},
    {tensor::DataType::kUint32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32},
    {tensor::DataType::kUint64, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64},
    {tensor::DataType::kInt8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},
    {tensor::DataType::kInt16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16},
    {tensor::DataType::kInt32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},
    {tensor::DataType::kInt64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
    {tensor::DataType::kFp16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
    {tensor::DataType::kFp32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
    {tensor::DataType::kFp64, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
    {tensor::DataType::kBf16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16},
};

std::optional<tensor::DataType> our_type(ONNXTensorElementDataType type) {
  const auto* found = std::ranges::find(kTypes, type, &TypePair::theirs);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->ours);
}

struct Description {
  std::optional<tensor::DataType> type;
  std::vector<std::int64_t> dims;
};

Result<Description> describe(const Ort& ort, const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  TONNAGE_TRY(ort.status_of(ort->GetTensorElementType(info, &type), "runtime_error"));
  TONNAGE_TRY(ort.status_of(ort->GetDimensionsCount(info, &rank), "runtime_error"));
  Description description{our_type(type), std::vector<std::int64_t>(rank)};
  TONNAGE_TRY(ort.status_of(ort->GetDimensions(info, description.dims.data(), rank), "runtime_error"));
  return description;
}

// The calls of one side of a session.
struct Side {
  const char* kind;
  OrtStatus*(ORT_API_CALL* count)(const OrtSession*, std::size_t*);
  OrtStatus*(ORT_API_CALL* name)(const OrtSession*, std::size_t, OrtAllocator*, char**);
  OrtStatus*(ORT_API_CALL* type)(const OrtSession*, std::size_t, OrtTypeInfo**);
};

Result<wire::TensorDoc> doc_at(const Ort& ort, const OrtSession* session, const Side& side, std::size_t i) {
  OrtAllocator* allocator = nullptr;
  char* name = nullptr;
  TONNAGE_TRY(ort.status_of(ort->GetAllocatorWithDefaultOptions(&allocator), "runtime_error"));
  TONNAGE_TRY(ort.status_of(side.name(session, i, allocator, &name), "runtime_error"));
  wire::TensorDoc doc{.name = name, .type = {}, .dims = {}};
  allocator->Free(allocator, name);
  OrtTypeInfo* raw = nullptr;
  TONNAGE_TRY(ort.status_of(side.type(session, i, &raw), "runtime_error"));
  const Owned<OrtTypeInfo> owned(raw, ort->ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  TONNAGE_TRY(ort.status_of(ort->CastTypeInfoToTensorInfo(raw, &info), "runtime_error"));
  std::optional<tensor::DataType> type;
  if (info != nullptr) {
    TONNAGE_ASSIGN(Description description, describe(ort, info));
    type = description.type;
    doc.dims = std::move(description.dims);
  }
  if (!type) {
    return invalid("unsupported_model",
                   fmt::format("{} '{}' of the file is no tensor of numbers; nothing else crosses the wire",
                               side.kind, doc.name));
  }
  doc.type = *type;
  return doc;
}

Result<std::vector<wire::TensorDoc>> docs_of(const Ort& ort, const OrtSession* session, const Side& side) {
  std::size_t count = 0;
  TONNAGE_TRY(ort.status_of(side.count(session, &count), "runtime_error"));
  std::vector<wire::TensorDoc> docs;
  for (std::size_t i = 0; i < count; ++i) {
    TONNAGE_ASSIGN(wire::TensorDoc doc, doc_at(ort, session, side, i));
    docs.push_back(std::move(doc));
  }
  return docs;
}

std::string names_of(const std::vector<wire::TensorDoc>& docs) {
  std::string names;
  for (const wire::TensorDoc& doc : docs) names += (names.empty() ? "'" : ", '") + doc.name + "'";
  return names;
}

Result<std::vector<wire::TensorDoc>> in_order_of(const std::vector<wire::TensorDoc>& wanted,
                                                 std::vector<wire::TensorDoc> has, const char* kind) {
  if (wanted.empty()) return has;
  std::vector<wire::TensorDoc> ordered;
  for (const wire::TensorDoc& want : wanted) {
    const auto found = std::ranges::find(has, want.name, &wire::TensorDoc::name);
    if (found == has.end()) {
      return invalid("wrong_inputs", fmt::format("the file has no {} '{}'; it has {}", kind, want.name,
                                                 has.empty() ? "none" : names_of(has)));
    }
    ordered.push_back(*found);
    // A file may leave a shape open altogether.
    if (ordered.back().dims.empty()) ordered.back().dims = want.dims;
  }
  return ordered;
}

}  // namespace

Result<std::vector<wire::TensorDoc>> bind_inputs(const Ort& ort, const OrtSession* session,
                                                 const std::vector<wire::TensorDoc>& wanted) {
  TONNAGE_ASSIGN(auto has, docs_of(ort, session,
                                   {"input", ort->SessionGetInputCount, ort->SessionGetInputName,
                                    ort->SessionGetInputTypeInfo}));
  for (const wire::TensorDoc& doc : has) {
    if (!wanted.empty() && std::ranges::find(wanted, doc.name, &wire::TensorDoc::name) == wanted.end()) {
      return invalid("wrong_inputs",
                     fmt::format("the file needs an input '{}', which model.toml does not name", doc.name));
    }
  }
  return in_order_of(wanted, std::move(has), "input");
}

Result<std::vector<wire::TensorDoc>> bind_outputs(const Ort& ort, const OrtSession* session,
                                                  const std::vector<wire::TensorDoc>& wanted) {
  TONNAGE_ASSIGN(auto has, docs_of(ort, session,
                                   {"output", ort->SessionGetOutputCount, ort->SessionGetOutputName,
                                    ort->SessionGetOutputTypeInfo}));
  return in_order_of(wanted, std::move(has), "output");
}

Result<Owned<OrtValue>> wrap(const Ort& ort, const OrtMemoryInfo* memory, const kit::Tensor& tensor) {
  const auto* type = std::ranges::find(kTypes, tensor.type, &TypePair::ours);
  if (type == std::end(kTypes)) {
    return invalid("unsupported_model",
                   "onnxruntime has no tensors of type " + std::string(tensor::datatype_name(tensor.type)));
  }
  // The runtime wants a mutable pointer, but never writes to the inputs of a graph.
  void* data = const_cast<std::byte*>(tensor.data.data());
  const auto dims = tensor.shape.dims();
  OrtValue* value = nullptr;
  TONNAGE_TRY(ort.status_of(ort->CreateTensorWithDataAsOrtValue(memory, data, tensor.data.size(), dims.data(),
                                                                dims.size(), type->theirs, &value),
                            "model_error"));
  return Owned<OrtValue>(value, ort->ReleaseValue);
}

Result<kit::Tensor> view_of(const Ort& ort, OrtValue* value, const std::string& name) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  TONNAGE_TRY(ort.status_of(ort->GetTensorTypeAndShape(value, &raw), "bad_output"));
  const Owned<OrtTensorTypeAndShapeInfo> info(raw, ort->ReleaseTensorTypeAndShapeInfo);
  TONNAGE_ASSIGN(const Description description, describe(ort, raw));
  if (!description.type) return internal("bad_output", "output '" + name + "' is no tensor of numbers");
  TONNAGE_ASSIGN(const tensor::Shape shape, tensor::Shape::make(description.dims));
  void* data = nullptr;
  TONNAGE_TRY(ort.status_of(ort->GetTensorMutableData(value, &data), "bad_output"));
  return kit::Tensor{*description.type,
                     shape,
                     {static_cast<const std::byte*>(data), shape.bytes_of(*description.type).size()}};
}

}  // namespace tonnage::onnx_worker
