// SPDX-License-Identifier: Apache-2.0
#include "torch/archive.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <vector>

namespace tonnage::torch_worker {
namespace {

Status bad(std::string detail) { return invalid("bad_model_file", std::move(detail)); }

ArchiveKind kind_of(const std::vector<std::string>& records) {
  const auto has = [&](std::string_view name) { return std::ranges::find(records, name) != records.end(); };
  const auto starts = [&](std::string_view folder) {
    return std::ranges::any_of(records,
                               [&](const std::string& record) { return record.starts_with(folder); });
  };
  if (starts("data/aotinductor/")) return ArchiveKind::kCompiled;
  if (has("constants.pkl") && starts("code/")) return ArchiveKind::kScript;
  return has("data.pkl") ? ArchiveKind::kPickle : ArchiveKind::kOther;
}

std::string_view description(ArchiveKind kind) {
  switch (kind) {
    case ArchiveKind::kScript: return "a TorchScript archive (route \"trace\" or \"script\")";
    case ArchiveKind::kCompiled: return "a program that AOTInductor compiled (route \"aoti\")";
    case ArchiveKind::kPickle:
      return "what torch.save writes; that is a Python program in disguise, and nothing of it was run. "
             "Export the "
             "model with `python -m tonnage.export`";
    case ArchiveKind::kOther: break;
  }
  return "an archive without a model of this worker in it";
}

}  // namespace

Status check_archive(const std::string& path, ArchiveKind wanted) {
  if (!std::filesystem::is_regular_file(path)) return bad(path + " is not a file");
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    const ArchiveKind found = kind_of(reader.getAllRecords());
    if (found == wanted) return Status::ok();
    return bad(path + " is " + std::string(description(found)));
  } catch (const std::exception&) {
    return bad(
        path +
        " is no archive of torch, or is cut off: its directory, which lies at the end, cannot be read");
  }
}

}  // namespace tonnage::torch_worker
