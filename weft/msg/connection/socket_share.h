// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/list.h"
#include "weft/msg/connection/turn.h"
#include "weft/msg/message/message_drops.h"
#include "weft/sync/mutex.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/zmtp/wire_type.h"

namespace weft::msg {

class Connection;
class Link;

// Differs between any two threads of a process, also if one of them has ended: the system gives a new thread the
// memory, and so each address, of an ended one. Never 0.
[[nodiscard]] inline std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  static thread_local constinit std::uint64_t number = 0;
  if (number == 0) [[unlikely]] {
    number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return number;
}

// PipeShare: the members that a pipe and the connection under it both touch.
// Owner: the socket, as part of its pipe; it lives until the connection has finished and its input was taken.
struct PipeShare {
  std::atomic<PipeShare*> next_signal{nullptr};  // in SocketShare::signals
  std::atomic<bool> signalled{false};
};

// AppReaders: the connections of a socket that its own threads read. While these threads receive, they wait for the
// descriptors themselves, and the I/O thread does not wait for input there.
// Owner: the socket. Affinity: the I/O thread; in one of the lists of IoService while it has links.
struct AppReaders : ListHook {
  List<Link> links;
  bool active = false;     // the threads receive; otherwise the I/O thread takes the links back
  std::uint64_t seen = 0;  // app_read_count() at the last check
  std::uint32_t idle_turns = 0;
};

// SocketShare: the members that a socket and its connections both touch while messages move.
// Owner: the socket. Affinity: any thread; `unflushed` has the send lock.
// Cost: a plain struct, so that no message passes a virtual call on its way between the two.
struct SocketShare {
  // The socket type's treatment of messages. Immutable.
  struct Traits {
    zmtp::WireType wire;  // the type in the handshake
    bool receives;
    bool takes_subscriptions;
    bool single_part;
    bool groups;
  };

  SocketShare(const Traits& type_traits, sync::WaitMode mode) noexcept : traits(type_traits), wait_mode(mode) {}

  // The connection put something into the channel of `pipe`: the socket's next receiver finds it, a sleeper wakes.
  void signal_input(PipeShare& pipe) noexcept {
    // A pipe is listed once. acq_rel: the receiver that takes the list sees the parts queued before.
    if (!pipe.signalled.exchange(true, std::memory_order_acq_rel)) {
      PipeShare* head = signals.load(std::memory_order_relaxed);
      do {
        pipe.next_signal.store(head, std::memory_order_relaxed);
        // Release pairs with the acquire of the receiver that takes the list.
      } while (!signals.compare_exchange_weak(head, &pipe, std::memory_order_release, std::memory_order_relaxed));
    }
    input_parker.wake_with_fence();
  }
  [[nodiscard]] bool app_waits() const noexcept { return waiting.load(std::memory_order_relaxed) > 0; }
  [[nodiscard]] std::uint64_t app_read_count() const noexcept { return app_reads.load(std::memory_order_relaxed); }
  void note_app_read() noexcept { app_reads.store(app_read_count() + 1, std::memory_order_relaxed); }

  const Traits traits;
  const sync::WaitMode wait_mode;
  // Senders of other sockets load the parkers for each message. Each wait writes the members after the parkers, which
  // therefore begin a cache line: in the parkers' line they made an inproc round trip 5 % slower. 64 bytes suffice;
  // with sync::kLineSize inproc PUSH took 5 % longer.
  sync::Parker input_parker;
  sync::Parker output_parker;
  alignas(64) std::atomic<int> waiting{0};  // threads of the application that wait for input
  std::atomic<std::uint64_t> app_reads{0};  // reads from the kernel by threads of the application; a hint
  std::atomic<PipeShare*> signals{nullptr};
  std::atomic<Duration::rep> send_timeout{-1};  // the option; negative: none

  Turn turn;  // receive lock: of the application's present call
  // The socket's locks. A thread that spins for its peer holds one, and stops once another thread needs it.
  const sync::Mutex* receive_mutex = nullptr;
  const sync::Mutex* send_mutex = nullptr;

  std::vector<std::shared_ptr<Connection>> unflushed;  // with a batch that the socket flushes before a call waits
  std::atomic<bool> has_unflushed{false};              // a hint to the sender itself
  // Send lock: the number of the thread that lists the socket; 0: none.
  std::uint64_t flushing_thread = 0;
  AppReaders app_readers;

  MessageDrops drops;
  // Messages of ended inproc pipes: those that still wait for a socket to bind, and those that one got later.
  std::atomic<std::uint64_t> left_behind{0};
  std::atomic<std::uint64_t> sent_late{0};
};

}  // namespace weft::msg
