// SPDX-License-Identifier: MIT
#include "weft/trace/id_source.h"

#include <array>
#include <cstdint>
#include <exception>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/random.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"
#include "weft/zmtp/secure_random.h"

namespace weft::trace {

namespace {

struct ThreadIds {
  Random first{0};
  Random second{0};
  std::uint32_t generation = 0;  // of the process in which the generators were seeded
  bool seeded = false;
};

constinit thread_local ThreadIds thread_ids;

[[gnu::cold]] void seed(ThreadIds& ids) noexcept {
  std::array<std::uint8_t, 16> bytes{};
  std::uint64_t words[2];
  try {
    zmtp::SecureRandom random;
    random.fill(bytes);
    words[0] = load_big_endian<std::uint64_t>(bytes.data());
    words[1] = load_big_endian<std::uint64_t>(bytes.data() + 8);
  } catch (const std::exception&) {
    words[0] = mix_bits(static_cast<std::uint64_t>(sys::wall_now().time_since_epoch().count()));
    words[1] = mix_bits(reinterpret_cast<std::uintptr_t>(&ids) ^ sys::ticks());
  }
  ids.first = Random(words[0]);
  ids.second = Random(words[1]);
  ids.generation = sys::fork_generation();
  ids.seeded = true;
}

// The child of a fork has copies of its parent's generators: it makes new ones.
ThreadIds& own_ids() noexcept {
  ThreadIds& ids = thread_ids;
  if (!ids.seeded || ids.generation != sys::fork_generation()) [[unlikely]] {
    seed(ids);
  }
  return ids;
}

}  // namespace

TraceId random_trace_id() noexcept {
  ThreadIds& ids = own_ids();
  TraceId id;
  do {
    id = {ids.first.next(), ids.second.next()};
  } while (!id);
  return id;
}

SpanId random_span_id() noexcept {
  ThreadIds& ids = own_ids();
  SpanId id;
  do {
    id = {ids.second.next()};
  } while (!id);
  return id;
}

}  // namespace weft::trace
