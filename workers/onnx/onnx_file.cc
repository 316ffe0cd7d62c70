// SPDX-License-Identifier: Apache-2.0
#include "onnx/onnx_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
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
constexpr std::uint64_t kIrVersion = 1, kGraph = 7, kOpset = 8;                   // ModelProto
constexpr std::uint64_t kInitializer = 5;                                         // GraphProto
constexpr std::uint64_t kTensorName = 8, kExternalData = 13, kDataLocation = 14;  // TensorProto
constexpr std::uint64_t kKey = 1, kValue = 2;  // StringStringEntryProto, OperatorSetIdProto
constexpr std::uint64_t kStoredElsewhere = 1;  // TensorProto.DataLocation
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

void find_external(ByteView graph, std::vector<ExternalTensor>& into) {
  Fields fields(graph);
  while (const auto field = fields.next()) {
    if (field->number != kInitializer) continue;
    ExternalTensor tensor;
    bool is_elsewhere = false;
    Fields parts(field->block);
    while (const auto part = parts.next()) {
      if (part->number == kTensorName) tensor.name = text_of(part->block);
      if (part->number == kDataLocation) is_elsewhere = part->value == kStoredElsewhere;
      if (part->number != kExternalData) continue;
      if (std::string location = location_of(part->block); !location.empty())
        tensor.location = std::move(location);
    }
    if (is_elsewhere) into.push_back(std::move(tensor));
  }
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
    if (field->number == kGraph) {
      has_graph = true;
      find_external(field->block, file.external);
    }
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
  return invalid("bad_model_file", "the file is no ONNX model");
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
