// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "weft/base/result.h"
#include "weft/net/admit/accept_filter.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/net/transport/transport.h"
#include "weft/sys/fork.h"
#include "weft/sys/socket.h"

namespace weft::net {

// Listener: a bound endpoint that accepts streams. Owner: the binding socket. Affinity: one thread at a time.
// Invariants:
// 1. After close() the endpoint is free, and the socket file and the directory that open() made are removed.
// 2. close() in a forked child closes only the child's descriptor. The file and the directory are the parent's.
class Listener {
 public:
  // address_in_use, address_unavailable, name_unresolved, not_supported (a transport without sockets). open()
  // looks up a host name and may wait for that; numeric addresses and interface names do not wait.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(const Endpoint& endpoint,
                                                              const sys::SocketOptions& options);
  // Another listener of the same socket, for another thread. The files of the socket stay this one's, and its close()
  // ends the other one's, too, unless the socket was adopted: then try_accept() there has invalid_argument.
  [[nodiscard]] Result<std::unique_ptr<Listener>> share() const;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(); }

  [[nodiscard]] int fd() const noexcept { return bound_.fd.fd(); }  // -1 after close
  // tcp://127.0.0.1:5555, tcp://0.0.0.0:5555, tcp://[::]:5555, ipc:///path, ipc://@name
  [[nodiscard]] const std::string& bound_endpoint() const noexcept { return bound_.text; }

  void set_filter(AcceptFilter filter) noexcept { filter_ = std::move(filter); }

  // Errors: would_block (no connection waits); resource_exhausted (out of descriptors or memory; stop watching fd() for
  // a while). Any other error concerns one connection only, and the listener continues.
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> try_accept();

  // More connections wait in the kernel than the option `backlog`, or twice as many. The kernel drops others, and
  // TCP tries again after a second. An adopted socket keeps its backlog.
  void hold_more(bool more) noexcept;

  [[nodiscard]] Result<sys::Fd> duplicate() const { return bound_.fd.duplicate(); }  // for another process
  // Another process has the socket: close() closes only this descriptor, and removes nothing.
  void release() noexcept;

  void close() noexcept;                                                        // idempotent
  [[nodiscard]] bool inherited() const noexcept { return birth_.elsewhere(); }  // in a forked child

 private:
  static constexpr int kHeldMax = 4096;  // with hold_more(true)

  Listener(const TransportRow& row, BoundSocket bound, const sys::SocketOptions& options)
      : row_(row), bound_(std::move(bound)), options_(options) {}
  void remove_files() noexcept;

  const TransportRow& row_;
  BoundSocket bound_;
  sys::SocketOptions options_;
  AcceptFilter filter_;
  const sys::Birth birth_;
};

}  // namespace weft::net
