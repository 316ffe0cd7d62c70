// SPDX-License-Identifier: Apache-2.0
#include "onnx/onnx_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "base/unique_fd.h"
#include "onnx/protobuf_fields.h"

namespace tonnage::onnx_worker {
namespace {

namespace fs = std::filesystem;

// Numbers of onnx.proto.
constexpr std::uint64_t kIrVersion = 1, kTopGraph = 7, kOpset = 8, kTopFunction = 25;  // ModelProto
constexpr std::uint64_t kTensorName = 8, kExternalData = 13, kDataLocation = 14;       // TensorProto
constexpr std::uint64_t kKey = 1, kValue = 2;  // StringStringEntryProto, OperatorSetIdProto
constexpr std::uint64_t kStoredElsewhere = 1;  // TensorProto.DataLocation

// What may hold a tensor, and where: graphs in attributes of their nodes (If, Loop, Scan) have initializers
// of their own.
enum class Kind : std::uint8_t { kGraph, kFunction, kNode, kAttribute, kSparseTensor, kTensor };
struct Part {
  Kind whole;
  std::uint64_t number;
  Kind part;
};
constexpr std::array<Part, 14> kParts = {{{Kind::kGraph, 1, Kind::kNode},
                                          {Kind::kGraph, 5, Kind::kTensor},
                                          {Kind::kGraph, 15, Kind::kSparseTensor},
                                          {Kind::kFunction, 7, Kind::kNode},
                                          {Kind::kFunction, 11, Kind::kAttribute},
                                          {Kind::kNode, 5, Kind::kAttribute},
                                          {Kind::kAttribute, 5, Kind::kTensor},
                                          {Kind::kAttribute, 6, Kind::kGraph},
                                          {Kind::kAttribute, 10, Kind::kTensor},
                                          {Kind::kAttribute, 11, Kind::kGraph},
                                          {Kind::kAttribute, 22, Kind::kSparseTensor},
                                          {Kind::kAttribute, 23, Kind::kSparseTensor},
                                          {Kind::kSparseTensor, 1, Kind::kTensor},
                                          {Kind::kSparseTensor, 2, Kind::kTensor}}};
constexpr unsigned kDeepest = 100;  // as protobuf itself reads

std::string text_of(ByteView block) { return std::string(as_text(block)); }

std::string location_of(ByteView entry) {
  std::string key;
  std::string value;
  Fields fields(entry);
  while (const auto field = fields.next()) {
    if (field->number == kKey) key = text_of(field->block);
    if (field->number == kValue) value = text_of(field->block);
  }
  return key == "location" ? value : "";
}

Status no_model() { return invalid("bad_model_file", "the file is no ONNX model"); }

Status read_tensor(ByteView tensor_message, std::vector<ExternalTensor>& into) {
  ExternalTensor tensor;
  bool is_elsewhere = false;
  Fields fields(tensor_message);
  while (const auto field = fields.next()) {
    if (field->number == kTensorName) tensor.name = text_of(field->block);
    if (field->number == kDataLocation) is_elsewhere = field->value == kStoredElsewhere;
    if (field->number != kExternalData) continue;
    if (std::string location = location_of(field->block); !location.empty())
      tensor.location = std::move(location);
  }
  if (!fields.is_sound()) return no_model();
  if (is_elsewhere) into.push_back(std::move(tensor));
  return Status::ok();
}

// What cannot be walked to its end is refused: whoever reads it in another way might find more in it.
Status find_external(Kind kind, ByteView message, unsigned depth, std::vector<ExternalTensor>& into) {
  if (kind == Kind::kTensor) return read_tensor(message, into);
  if (depth == kDeepest) return invalid("bad_model_file", "its graphs lie too deep in each other");
  Fields fields(message);
  while (const auto field = fields.next()) {
    const auto* const found = std::ranges::find_if(
        kParts, [&](const Part& part) { return part.whole == kind && part.number == field->number; });
    if (found == kParts.end()) continue;
    TONNAGE_TRY(find_external(found->part, field->block, depth + 1, into));
  }
  return fields.is_sound() ? Status::ok() : no_model();
}

// The real path of what a tensor names; must lie in `folder`, which is real already.
Result<fs::path> resolve(const ExternalTensor& tensor, const fs::path& folder) {
  const auto refused = [&](std::string_view why) {
    return invalid("external_data", fmt::format("the weights '{}' lie in '{}', {}; allowed are files in the "
                                                "model's own folder",
                                                tensor.name, tensor.location, why));
  };
  std::error_code error;
  const fs::path real = fs::weakly_canonical(folder / tensor.location, error);
  if (error) return refused(error.message());
  const auto [end, _] = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
  if (end != folder.end()) return refused("outside the model's folder");
  if (!fs::is_regular_file(real, error)) return refused("which is no file");
  return real;
}

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) return refused(path, std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return refused(path, "it is no file");
    if (info.st_size == 0) return refused(path, "it is empty");
    MappedFile file;
    file.size_ = static_cast<std::size_t>(info.st_size);
    file.start_ = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (file.start_ == MAP_FAILED) return refused(path, std::strerror(errno));
    return file;
  }
  MappedFile(MappedFile&& other) noexcept
      : start_(std::exchange(other.start_, MAP_FAILED)), size_(other.size_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (start_ != MAP_FAILED) ::munmap(start_, size_);
  }
  ByteView bytes() const { return {static_cast<const std::byte*>(start_), size_}; }

 private:
  MappedFile() = default;
  static Status refused(const std::string& path, std::string_view why) {
    return invalid("bad_model_file", fmt::format("cannot read {}: {}", path, why));
  }

  void* start_ = MAP_FAILED;
  std::size_t size_ = 0;
};

}  // namespace

Result<OnnxFile> read_onnx(ByteView model) {
  OnnxFile file{.size = Bytes(model.size())};
  bool has_version = false;
  bool has_graph = false;
  Fields fields(model);
  while (const auto field = fields.next()) {
    if (field->number == kIrVersion) has_version = true;
    if (field->number == kTopGraph) {
      has_graph = true;
      TONNAGE_TRY(find_external(Kind::kGraph, field->block, 0, file.external));
    }
    if (field->number == kTopFunction)
      TONNAGE_TRY(find_external(Kind::kFunction, field->block, 0, file.external));
    if (field->number != kOpset) continue;
    std::string domain;
    std::uint64_t version = 0;
    Fields parts(field->block);
    while (const auto part = parts.next()) {
      if (part->number == kKey) domain = text_of(part->block);
      if (part->number == kValue) version = part->value;
    }
    file.opsets[domain] = version;
  }
  if (fields.is_sound() && has_version && has_graph) return file;
  // The version comes first in a file; what begins like a model and then ends too early was one once.
  if (has_version && fields.missing() > 0) {
    return invalid("bad_model_file",
                   fmt::format("the file is cut off: {} bytes are there, at least {} more are "
                               "missing",
                               model.size(), fields.missing()));
  }
  return no_model();
}

Result<OnnxFile> inspect_onnx(const std::string& path) {
  TONNAGE_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  TONNAGE_ASSIGN(OnnxFile file, read_onnx(mapped.bytes()));
  if (file.external.empty()) return file;
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(path).parent_path(), error);
  std::set<fs::path> counted;
  for (const ExternalTensor& tensor : file.external) {
    TONNAGE_ASSIGN(const fs::path real, resolve(tensor, folder));
    if (counted.insert(real).second) file.size += Bytes(fs::file_size(real, error));
  }
  return file;
}

}  // namespace tonnage::onnx_worker
