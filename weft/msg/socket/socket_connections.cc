// SPDX-License-Identifier: MIT
// SocketCore: its connections, from the first handshake until the application has taken all their input.
#include <algorithm>
#include <utility>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/msg/socket/zap.h"

namespace weft::msg {

Pipe& SocketCore::pipe_of(Connection& connection) noexcept { return static_cast<Pipe&>(connection.pipe()); }

Result<std::unique_ptr<ZapRequest>> SocketCore::ask_authenticator(rt::Loop& loop, const ZapQuestion& question,
                                                                  ZapRequest::Done done) {
  return ask_zap(context_, loop, question, std::move(done));
}

void SocketCore::collect_signals() noexcept {
  if (share_.signals.load(std::memory_order_relaxed) == nullptr) [[likely]] {
    return;
  }
  PipeShare* signal = share_.signals.exchange(nullptr, std::memory_order_acquire);
  while (signal != nullptr) {
    auto* const pipe = static_cast<Pipe*>(signal);
    signal = pipe->next_signal.load(std::memory_order_relaxed);
    // Clear the flag before the pattern reads the pipe: input that comes later signals again.
    (void)pipe->signalled.exchange(false, std::memory_order_acq_rel);
    if (pipe->notes.attached) {
      pattern_->activate(*pipe);
    }
  }
}

void SocketCore::add_accepted(std::unique_ptr<net::Stream> stream, const std::string& endpoint) {
  auto connection = std::make_shared<Connection>(shared_from_this(), context_.io(), std::move(stream), endpoint);
  {
    const std::lock_guard lock(table_mutex_);
    if (closed_.load(std::memory_order_relaxed)) {
      return;
    }
    context_.connection_started();  // before close() can find the connection
    connections_.try_emplace(connection.get(), *this, connection);
    // Under the table lock: a change of the options comes wholly before this or wholly after.
    connection->apply_marks(options_copy());
  }
  context_.io().loop().post([connection] { connection->link().start(); });
}

bool SocketCore::connection_ready(Connection& connection, Bytes identity) {
  const std::scoped_lock lock(receive_mutex_, send_mutex_);
  Pipe& pipe = pipe_of(connection);
  if (closed_.load(std::memory_order_relaxed)) {
    return true;  // the connection only lingers: the pattern does not get it
  }
  pipe.notes.origin.peer = connection.link().peer_id();
  pipe.notes.other_end = connection.link().other_end();
  pattern_->attach(pipe);
  pipe.notes.attached = true;
  if (!pattern_->ready(pipe, identity)) {
    pattern_->detach(pipe);
    pattern_->deactivate(pipe);
    pipe.notes.attached = false;
    return false;
  }
  pipe.notes.ready = true;
  if (traits_.receives && !add_descriptor(connection)) {
    connection.poll_tag = 0;  // without a descriptor the I/O thread reads, and signals
  }
  return true;
}

void SocketCore::connection_lost(Connection& connection) {
  const std::scoped_lock lock(receive_mutex_, send_mutex_);
  Pipe& pipe = pipe_of(connection);
  pipe.notes.ready = false;
  if (!pipe.notes.attached) {
    return;
  }
  pattern_->lost(pipe);
  if (options_.immediate) {
    pattern_->detach(pipe);  // nothing may be queued for a peer that is not there
    share_.output_parker.wake_with_fence();
  }
}

void SocketCore::connection_finished(Connection& connection) {
  {
    const std::scoped_lock lock(receive_mutex_, send_mutex_);
    collect_signals();
    Pipe& pipe = pipe_of(connection);
    pipe.notes.ready = false;
    std::erase_if(share_.unflushed, [&](const auto& entry) { return entry.get() == &connection; });
    end_pipe(pipe);
    connection.send_side().abandon();
    bury_drained();
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for this very peer retries, and fails
  {
    const std::lock_guard lock(table_mutex_);
    for (auto& [name, connected] : connected_) {
      if (connected.get() == &connection) {
        connected = nullptr;
      }
    }
  }
  share_.output_parker.wake_with_fence();  // a sender that waits for room at this very peer retries, and fails
  end_feed_if_quiet();
  context_.connection_ended();
}

// The other end is gone for good. The application can still receive the pipe's input.
void SocketCore::end_pipe(Pipe& pipe) {
  pipe.notes.ended = true;
  if (pipe.notes.attached) {
    pattern_->detach(pipe);
    pattern_->activate(pipe);
  }
  bury_next_ = ended_.size();
  ended_.push_back(&pipe);
}

// Forgets ended pipes whose input was taken. Each call checks at most 64 of them in turn, the newest first.
void SocketCore::bury_drained() {
  constexpr std::size_t kLooks = 64;
  for (std::size_t looks = std::min(ended_.size(), kLooks); looks > 0 && !ended_.empty(); --looks) {
    const std::size_t i = bury_next_ < ended_.size() ? bury_next_ : 0;
    Pipe* pipe = ended_[i];
    bury_next_ = i;
    if (pipe->notes.attached && traits_.receives && !pipe->ending() && !pipe->drained()) {
      bury_next_ = i + 1;
      continue;
    }
    if (pipe->notes.attached) {
      pattern_->deactivate(*pipe);
      pipe->notes.attached = false;
    }
    collect_signals();
    ended_[i] = ended_.back();
    ended_.pop_back();
    const std::lock_guard lock(table_mutex_);
    remember(*pipe);
    if (pipe->connection() != nullptr) {
      connections_.erase(pipe->connection());
    } else {
      std::erase_if(inproc_pipes_, [&](const auto& owned) { return owned.get() == pipe; });
      inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
    }
  }
}

bool SocketCore::handle_subscription(Connection& connection, bool subscribe, Bytes topic) {
  {
    const std::lock_guard lock(send_mutex_);
    if (!closed_.load(std::memory_order_relaxed) &&
        !pattern_->handle_subscription(pipe_of(connection), subscribe, topic)) {
      return false;
    }
  }
  share_.output_parker.wake_with_fence();  // a sender may wait for subscribers
  return true;
}

Result<std::size_t> SocketCore::subscribers() {
  const std::lock_guard lock(send_mutex_);
  if (closed_.load(std::memory_order_relaxed) || terminated_.load(std::memory_order_relaxed)) {
    return refusal();
  }
  if (!traits_.takes_subscriptions && !(traits_.groups && !traits_.receives)) {
    return Error(Errc::not_supported, "no peer subscribes to a socket of this type");
  }
  return pattern_->subscribers();
}

}  // namespace weft::msg
