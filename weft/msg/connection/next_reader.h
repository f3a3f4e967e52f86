// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/assert.h"

namespace weft::msg {

// NextReader: the thread that reads a connection next, in four parts. A thread that reads takes the read baton first;
// this object decides which threads try to.
// Owner: the receive side. Affinity: see each part. Cost: a relaxed load or store; leave_rest() and report_credit()
// exchange at their transition only. Nothing is published with these states: the baton orders the bytes.
//
// Holder: the place of the baton between two reads. I/O thread.
//   link     The link keeps it: there is no connection, it goes down, or the link changes it for a moment.
//   threads  Whoever reads takes it: the threads of the application, or the I/O thread.
//
//            link_takes  link_gives
//   link     link        threads
//   threads  link        -
//
// Watcher: the thread that finds the next bytes. The I/O thread changes it, and leave_rest() is the application's.
//   poller   The I/O thread waits for the descriptor. A thread of the application that receives reads, too.
//   app      The application's threads wait for the descriptor: the link is in AppReaders::links.
//   asked    As poller, and a thread of the application left bytes in the reader, which no event of the poller reports.
//            It asked the I/O thread, which reads them or leaves them to the application.
//
//            leave_to_app  take_back  leave_rest  answer
//   poller   app           poller     asked *     poller
//   app      app           poller     app         app
//   asked    app           asked      asked       poller
//   * leave_rest() returns true: the caller sends the request.
//
// Pause: the reader stopped between two frames, at the mark of the channel or at the end of its turn. The holder of the
// baton changes it, and report_credit() is the consumer's.
//   none     It reads on with the next event.
//   stalled  It reads on after its next turn, or once the consumer reports credit.
//   resumed  The consumer reported credit, and asked the I/O thread.
//
//            begin_read  stop     report_credit
//   none     none        stalled  none
//   stalled  none        stalled  resumed *
//   resumed  none        stalled  resumed
//   * report_credit() returns true: the caller sends the request.
//
// Kernel: a hint whether a read may bring bytes. The holder of the baton, and a thread with the socket's receive lock.
//
//            report    read_some  read_all  end
//   readable readable  readable   drained   drained
//   drained  readable  readable   drained   drained
//
// A dash is a bug in Weft.
class NextReader {
 public:
  enum class Holder : std::uint8_t { link, threads };
  enum class Watcher : std::uint8_t { poller, app, asked };
  enum class Pause : std::uint8_t { none, stalled, resumed };
  enum class Kernel : std::uint8_t { readable, drained };

  [[nodiscard]] Holder holder() const noexcept { return holder_; }
  void link_takes() noexcept { holder_ = Holder::link; }
  void link_gives() noexcept {
    WEFT_ASSERT(holder_ == Holder::link);
    holder_ = Holder::threads;
  }

  [[nodiscard]] Watcher watcher() const noexcept { return watcher_.load(std::memory_order_relaxed); }
  void leave_to_app() noexcept { watcher_.store(Watcher::app, std::memory_order_relaxed); }
  void take_back() noexcept {  // no other thread changes `app`
    if (watcher() == Watcher::app) {
      watcher_.store(Watcher::poller, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool leave_rest() noexcept {
    Watcher expected = watcher();
    return expected == Watcher::poller &&
           watcher_.compare_exchange_strong(expected, Watcher::asked, std::memory_order_relaxed);
  }
  void answer() noexcept {  // no other thread changes `asked`
    if (watcher() == Watcher::asked) {
      watcher_.store(Watcher::poller, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] Pause pause() const noexcept { return pause_.load(std::memory_order_relaxed); }
  void begin_read() noexcept { pause_.store(Pause::none, std::memory_order_relaxed); }
  void stop() noexcept { pause_.store(Pause::stalled, std::memory_order_relaxed); }
  // A stall that is missed here is found by the consumer when the channel runs empty.
  [[nodiscard]] bool report_credit() noexcept {
    Pause expected = pause();
    return expected == Pause::stalled &&
           pause_.compare_exchange_strong(expected, Pause::resumed, std::memory_order_relaxed);
  }

  [[nodiscard]] Kernel kernel() const noexcept { return kernel_.load(std::memory_order_relaxed); }
  void report() noexcept { kernel_.store(Kernel::readable, std::memory_order_relaxed); }
  void read_some() noexcept { kernel_.store(Kernel::readable, std::memory_order_relaxed); }
  void read_all() noexcept { kernel_.store(Kernel::drained, std::memory_order_relaxed); }
  void end() noexcept { kernel_.store(Kernel::drained, std::memory_order_relaxed); }

 private:
  std::atomic<Watcher> watcher_{Watcher::poller};
  std::atomic<Pause> pause_{Pause::none};
  std::atomic<Kernel> kernel_{Kernel::readable};
  Holder holder_ = Holder::link;
};

}  // namespace weft::msg
