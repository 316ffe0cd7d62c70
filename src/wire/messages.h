// SPDX-License-Identifier: Apache-2.0
// The control messages between front and worker, as documented in docs/wire.md.
//
// Promises:
//  1. encode() and decode() are inverse; the byte layout is fixed, little-endian and versioned.
//  2. decode() believes nothing: a wrong magic, version, type, size, count, datatype, rank, negative
//     dim, overlong text or an offset outside 63 bits is a Status, never a crash.
//     Offsets against a segment's real size, alignment, and bytes against dims are proven by the
//     reader (batch, kit).
// Threads: values. Fails with: invalid_argument/bad_message (…/wrong_version for another version).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/spans.h"
#include "base/status.h"
#include "base/time.h"
#include "tensor/datatype.h"
#include "tensor/shape.h"

namespace tonnage::wire {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kMaxMessageBytes = 8192;
inline constexpr std::size_t kMaxTensors = 16;
inline constexpr std::size_t kMaxText = 1024;
inline constexpr std::uint32_t kInputSlots = 2;

// Where one tensor lies in a segment. dims include the row dim.
struct TensorLayout {
  tensor::DataType type = tensor::DataType::kFp32;
  tensor::Shape shape{};
  std::uint64_t offset = 0;  // aligned to 64
  std::uint64_t bytes = 0;

  bool operator==(const TensorLayout&) const = default;
};

// front → worker, first message; carries no fd.
struct Hello {
  std::uint16_t version = kVersion;
};
// front → worker. fds: [0] sealed memfd with the LoadDoc as JSON, [1..kInputSlots] input slots
// (read-only for the worker where possible), [last] output region.
struct Load {
  std::uint64_t slot_bytes = 0;
  std::uint64_t output_bytes = 0;
};
// worker → front. fds: [0] sealed memfd with the LoadedDoc as JSON.
struct Loaded {
  Bytes weights{};  // as counted by the worker's allocator; zero where it does not see them
  Bytes live{};     // live tensor bytes when ready: the baseline of retention
};
struct Failed {
  std::string reason{};  // stable word: bad_model_file, missing_weights, over_grant, …
  std::string text{};
};
// A device's allocator takes memory in segments, the last of which is rarely full: by so much what it has
// reserved may go beyond live + grant.
inline constexpr Bytes kSegmentSlack = mib(20);

// front → worker. Input i is input i of the LoadDoc.
struct Run {
  std::uint32_t slot = 0;
  std::uint32_t rows = 0;
  std::uint32_t length = 0;  // padded length; 0 where the model has no free dim
  Bytes grant{};             // tensor bytes that the batch may hold at its peak, above live
  std::vector<TensorLayout> inputs{};
};
// worker → front. Output i is output i of the LoadedDoc, in the output region.
struct Done {
  Bytes peak{};      // highest live tensor bytes during the batch minus live before it
  Bytes live{};      // live tensor bytes after it
  Bytes resident{};  // RssAnon as the worker sees it: telemetry, not truth
  Duration execution{};
  std::vector<TensorLayout> outputs{};
};
// worker → front: the outputs need a region of this size; answered by Region or Discard.
struct Need {
  Bytes output_bytes{};
};
// front → worker. fds: [0] the new output region, replacing the old one.
struct Region {
  std::uint64_t output_bytes = 0;
};
// front → worker: no region of that size. The worker drops the outputs and ends the run with an Error
// (bad_output), so that every run ends with exactly one Done or Error.
struct Discard {};
enum class ErrorKind : std::uint8_t {
  kOverGrant = 1,     // our allocator refused: the grant was too small
  kModelError = 2,    // the model threw
  kStickyDevice = 3,  // the device context is broken: replace the worker
  kBadOutput = 4,     // outputs do not fit the spec (type, rank, rows)
  kPressure = 5,      // the kernel refused memory inside the grant
  kBadRequest = 6,    // the run message or its offsets were refused by the worker
};
struct Error {
  ErrorKind kind = ErrorKind::kModelError;
  Bytes peak{};
  Bytes live{};
  Bytes needed{};  // over_grant: peak + the allocation that was refused
  std::string text{};
};
struct Trim {};
struct Trimmed {
  Bytes live{};
  Bytes resident{};
};
struct Stat {};
struct Stats {
  Bytes live{};
  Bytes resident{};
  std::uint64_t batches = 0;
  Bytes libraries{};  // RssAnon just before the model was loaded
  Bytes heap{};       // resident bytes of malloc, above those at that time; zero where it cannot tell
  Bytes heap_used{};  // of them allocated and not freed
};
struct Stop {};

using Body = std::variant<Hello, Load, Loaded, Failed, Run, Done, Need, Region, Discard, Error, Trim, Trimmed,
                          Stat, Stats, Stop>;
// The numbers in the header are the index in Body plus one.

struct Message {
  std::uint64_t ticket = 0;  // of the batch for run/done/error/need/region/discard, else 0
  Body body;
};

// Texts are cut at kMaxText; more than kMaxTensors tensors is a TONNAGE_CHECK.
std::vector<std::byte> encode(const Message& message);
// The same without an allocation; returns the size.
std::size_t encode_into(const Message& message, std::span<std::byte, kMaxMessageBytes> out);
Result<Message> decode(ByteView bytes);
std::string_view message_name(const Body& body);

}  // namespace tonnage::wire
