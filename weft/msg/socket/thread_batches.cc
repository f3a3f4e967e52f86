// SPDX-License-Identifier: MIT
#include "weft/msg/socket/thread_batches.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

namespace {

using Listed = std::vector<std::weak_ptr<SocketCore>>;

// Destructors of other thread-local and static objects may still send and receive, so the pointer, which needs no
// destructor, is null if there is no list.
thread_local constinit Listed* this_threads_list = nullptr;
thread_local constinit bool thread_ends = false;

struct ListEnd {
  ~ListEnd() {
    thread_ends = true;
    delete std::exchange(this_threads_list, nullptr);
  }
};

Listed* make_list() {
  if (this_threads_list == nullptr && !thread_ends) {
    static thread_local const ListEnd end;
    this_threads_list = new Listed;
  }
  return this_threads_list;
}

// Two threads that send on one socket in turns, and never wait, list it again and again.
void drop_needless(Listed& list) {
  const auto before = [](const auto& a, const auto& b) { return a.owner_before(b); };
  const auto same = [&](const auto& a, const auto& b) { return !before(a, b) && !before(b, a); };
  std::erase_if(list, [](const auto& each) { return each.expired(); });
  std::sort(list.begin(), list.end(), before);
  list.erase(std::unique(list.begin(), list.end(), same), list.end());
}

}  // namespace

void list_at_this_thread(std::weak_ptr<SocketCore> core) noexcept {
  try {
    if (Listed* const list = make_list(); list != nullptr) {
      if (list->size() == list->capacity()) {
        drop_needless(*list);
        list->reserve(std::max<std::size_t>(8, 2 * list->size()));
      }
      list->push_back(std::move(core));
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

void flush_this_threads_batches() noexcept {
  Listed* const list = this_threads_list;
  if (list == nullptr || list->empty()) [[likely]] {
    return;
  }
  for (const std::weak_ptr<SocketCore>& each : *list) {
    if (const std::shared_ptr<SocketCore> core = each.lock(); core != nullptr) {
      core->flush_batches();
    }
  }
  list->clear();
}

}  // namespace weft::msg
