// SPDX-License-Identifier: Apache-2.0
// The bytes of every message body, written once: layout(io, body) names the fields in their order, and
// a Writer puts them where a Reader takes them, so that the two directions cannot disagree.
#pragma once

#include <concepts>
#include <type_traits>

#include "wire/messages.h"

namespace tonnage::wire::detail {

template <typename B, typename T>
concept Is = std::same_as<std::remove_const_t<B>, T>;

template <typename Io, Is<Hello> B>
void layout(Io& io, B& body) {
  io.number(body.version);
  io.zeros(6);
}
template <typename Io, Is<Load> B>
void layout(Io& io, B& body) {
  io.size63(body.slot_bytes);
  io.size63(body.output_bytes);
}
template <typename Io, Is<Loaded> B>
void layout(Io& io, B& body) {
  io.amount(body.weights);
  io.amount(body.live);
}
template <typename Io, Is<Failed> B>
void layout(Io& io, B& body) {
  io.text(body.reason);
  io.text(body.text);
}
template <typename Io, Is<Run> B>
void layout(Io& io, B& body) {
  io.number(body.slot);
  io.number(body.rows);
  io.number(body.length);
  io.zeros(4);
  io.amount(body.grant);
  io.tensors(body.inputs);
}
template <typename Io, Is<Done> B>
void layout(Io& io, B& body) {
  io.amount(body.peak);
  io.amount(body.live);
  io.amount(body.resident);
  io.duration(body.execution);
  io.tensors(body.outputs);
}
template <typename Io, Is<Need> B>
void layout(Io& io, B& body) {
  io.amount(body.output_bytes);
}
template <typename Io, Is<Region> B>
void layout(Io& io, B& body) {
  io.size63(body.output_bytes);
}
template <typename Io, Is<Error> B>
void layout(Io& io, B& body) {
  io.kind(body.kind);
  io.zeros(7);
  io.amount(body.peak);
  io.amount(body.live);
  io.amount(body.needed);
  io.text(body.text);
}
template <typename Io, Is<Trimmed> B>
void layout(Io& io, B& body) {
  io.amount(body.live);
  io.amount(body.resident);
}
template <typename Io, Is<Stats> B>
void layout(Io& io, B& body) {
  io.amount(body.live);
  io.amount(body.resident);
  io.number(body.batches);
  io.amount(body.libraries);
  io.amount(body.heap);
  io.amount(body.heap_used);
}
template <typename Io, typename B>
requires std::is_empty_v<B>
void layout(Io&, B&) {}

// Of one tensor: 88 bytes, dims beyond the rank are zero.
template <typename Io, Is<TensorLayout> T>
void layout(Io& io, T& tensor) {
  io.datatype(tensor.type);
  io.shape(tensor.shape, [&] {  // between rank and dims
    io.zeros(6);
    io.size63(tensor.offset);
    io.size63(tensor.bytes);
  });
}

inline constexpr std::uint32_t kMagic = 0x474e4e54;  // "TNNG" as it lies in memory
inline constexpr std::size_t kHeaderBytes = 24;
inline constexpr std::uint64_t kMax63 = (1ULL << 63U) - 1;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t type = 0;
  std::uint32_t size = 0;
  std::uint64_t ticket = 0;
};
template <typename Io, Is<Header> B>
void layout(Io& io, B& header) {
  io.number(header.magic);
  io.number(header.version);
  io.number(header.type);
  io.number(header.size);
  io.zeros(4);
  io.number(header.ticket);
}

}  // namespace tonnage::wire::detail
