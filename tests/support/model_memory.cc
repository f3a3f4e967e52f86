// SPDX-License-Identifier: MIT
#include "tests/support/model_memory.h"

#include <algorithm>

#include "weft/base/assert.h"

namespace weft::model {

namespace {

bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_consume ||
         order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace

void Knowledge::join_view(const std::array<std::uint16_t, kLocationsMax>& other) noexcept {
  for (std::size_t i = 0; i < kLocationsMax; ++i) {
    view[i] = std::max(view[i], other[i]);
  }
}

void Knowledge::join(const Knowledge& other) noexcept {
  join_view(other.view);
  for (std::size_t i = 0; i < kThreadsMax; ++i) {
    clock[i] = std::max(clock[i], other.clock[i]);
  }
}

void Memory::reset() {
  threads_ = {};
  for (std::size_t i = 0; i < kThreadsMax; ++i) {
    threads_[i].now.clock[i] = 1;
  }
  location_count_ = 0;
  sequential_ = light_ = heavy_ = {};
  shadows_.clear();
}

void Memory::fork(int parent, int child) {
  threads_[child].now.join(threads_[parent].now);
  tick(parent);
}

void Memory::join(int parent, int child) { threads_[parent].now.join(threads_[child].now); }

bool Memory::happened_before(const Clock& earlier, int thread) const noexcept {
  for (std::size_t i = 0; i < kThreadsMax; ++i) {
    if (earlier[i] > threads_[thread].now.clock[i]) {
      return false;
    }
  }
  return true;
}

// --- atomics ---

LocationId Memory::make_location(int thread, std::uint64_t initial) {
  WEFT_ASSERT(location_count_ < kLocationsMax);
  const auto id = static_cast<LocationId>(location_count_++);
  Location& location = locations_[id];
  location.history.clear();
  location.history.push_back({initial, {}});
  location.born = {};
  location.born[thread] = threads_[thread].now.clock[thread];
  location.touched = location.born;
  location.ended = false;
  return id;
}

const char* Memory::end_location(int thread, LocationId id) {
  Location& location = locations_[id];
  if (location.ended) {
    return "an atomic is destroyed twice";
  }
  location.ended = true;
  return happened_before(location.touched, thread) ? nullptr : "an atomic is destroyed while another thread uses it";
}

const char* Memory::check_access(int thread, LocationId id) {
  Location& location = locations_[id];
  if (location.ended) {
    return "an atomic is used after its end";
  }
  location.touched[thread] = threads_[thread].now.clock[thread];
  return happened_before(location.born, thread) ? nullptr : "an atomic is used before its construction is visible";
}

int Memory::visible(int thread, LocationId id, std::memory_order order) const {
  std::uint16_t oldest = threads_[thread].now.view[id];
  if (order == std::memory_order_seq_cst) {
    oldest = std::max(oldest, sequential_.view[id]);
  }
  return static_cast<int>(locations_[id].history.size()) - oldest;
}

std::uint64_t Memory::peek(LocationId id, int age) const {
  const auto& history = locations_[id].history;
  return history[history.size() - 1 - static_cast<std::size_t>(age)].value;
}

std::uint64_t Memory::load(int thread, LocationId id, int age, std::memory_order order) {
  const auto& history = locations_[id].history;
  const std::size_t index = history.size() - 1 - static_cast<std::size_t>(age);
  ThreadMemory& memory = threads_[thread];
  memory.now.view[id] = std::max(memory.now.view[id], static_cast<std::uint16_t>(index));
  memory.seen.join(history[index].handed_on);
  if (acquires(order)) {
    memory.now.join(history[index].handed_on);
  }
  if (order == std::memory_order_seq_cst) {
    sequential_.view[id] = std::max(sequential_.view[id], memory.now.view[id]);
  }
  tick(thread);
  return history[index].value;
}

void Memory::append(int thread, LocationId id, std::uint64_t value, std::memory_order order, const Knowledge* chain) {
  Location& location = locations_[id];
  ThreadMemory& memory = threads_[thread];
  memory.now.view[id] = static_cast<std::uint16_t>(location.history.size());
  Stored stored{value, releases(order) ? memory.now : memory.released};
  if (chain != nullptr) {
    stored.handed_on.join(*chain);
  }
  location.history.push_back(stored);
  if (order == std::memory_order_seq_cst) {
    sequential_.view[id] = memory.now.view[id];
  }
  tick(thread);
}

void Memory::store(int thread, LocationId id, std::uint64_t value, std::memory_order order) {
  append(thread, id, value, order, nullptr);
}

std::uint64_t Memory::begin_update(int thread, LocationId id, std::memory_order order) {
  return load(thread, id, 0, order);
}

void Memory::end_update(int thread, LocationId id, std::uint64_t value, std::memory_order order) {
  const Knowledge chain = locations_[id].history.back().handed_on;  // a read-modify-write continues a release sequence
  append(thread, id, value, order, &chain);
}

// --- fences ---

void Memory::fence(int thread, std::memory_order order) {
  ThreadMemory& memory = threads_[thread];
  if (acquires(order)) {
    memory.now.join(memory.seen);
  }
  if (order == std::memory_order_seq_cst) {
    memory.now.join_view(sequential_.view);
    sequential_.join_view(memory.now.view);
  }
  if (releases(order)) {
    memory.released = memory.now;
  }
  tick(thread);
}

void Memory::light_fence(int thread) {
  ThreadMemory& memory = threads_[thread];
  memory.now.join_view(heavy_.view);
  light_.join_view(memory.now.view);
  tick(thread);
}

void Memory::heavy_fence(int thread) {
  threads_[thread].now.join_view(light_.view);
  fence(thread, std::memory_order_seq_cst);
  heavy_.join_view(threads_[thread].now.view);
}

// --- plain memory ---

Memory::Shadow& Memory::shadow_of(const void* address) {
  for (Shadow& shadow : shadows_) {
    if (shadow.address == address) {
      return shadow;
    }
  }
  return shadows_.emplace_back(Shadow{address, {}, {}});
}

const char* Memory::plain_read(int thread, const void* address) {
  Shadow& shadow = shadow_of(address);
  shadow.reads[thread] = threads_[thread].now.clock[thread];
  return happened_before(shadow.writes, thread) ? nullptr
                                                : "data race: a read of plain data that another thread writes";
}

const char* Memory::plain_write(int thread, const void* address) {
  Shadow& shadow = shadow_of(address);
  shadow.writes[thread] = threads_[thread].now.clock[thread];
  if (!happened_before(shadow.writes, thread)) {
    return "data race: two threads write plain data";
  }
  return happened_before(shadow.reads, thread) ? nullptr : "data race: a write of plain data that another thread reads";
}

const char* Memory::end_range(int thread, const void* begin, std::size_t size) {
  const char* first = static_cast<const char*>(begin);
  for (const Shadow& shadow : shadows_) {
    const char* address = static_cast<const char*>(shadow.address);
    if (address >= first && address < first + size &&
        !(happened_before(shadow.reads, thread) && happened_before(shadow.writes, thread))) {
      return "memory is freed while another thread uses it";
    }
  }
  return nullptr;
}

}  // namespace weft::model
