// SPDX-License-Identifier: MIT
#include "weft/net/listener.h"

#include <algorithm>
#include <utility>

namespace weft::net {

Result<std::unique_ptr<Listener>> Listener::open(const Endpoint& endpoint, const sys::SocketOptions& options) {
  const TransportRow& row = transport_row(endpoint.transport);
  if (row.open_listener == nullptr) {
    return Error(Errc::not_supported, "this transport has no listener");
  }
  BoundSocket bound = WEFT_TRY(row.open_listener(endpoint, options));
  return std::unique_ptr<Listener>(new Listener(row, std::move(bound), options));
}

Result<std::unique_ptr<Listener>> Listener::share() const {
  BoundSocket same;
  same.fd = WEFT_TRY(bound_.fd.duplicate());
  same.text = bound_.text;
  sys::SocketOptions options = options_;
  options.adopt_fd = same.fd.fd();  // its end is not that of the endpoint
  std::unique_ptr<Listener> listener(new Listener(row_, std::move(same), options));
  listener->set_filter(filter_);
  return listener;
}

Result<std::unique_ptr<ByteStream>> Listener::try_accept() {
  if (!bound_.fd.valid()) {
    return Error(Errc::closed, "accept on a closed listener");
  }
  sys::Fd fd = WEFT_TRY(sys::accept_connection(bound_.fd.fd()));
  if (!filter_.admits(fd.fd())) {
    return Error(Errc::connection_failed, "the accept filter refuses this peer");
  }
  WEFT_TRY(row_.tune_accepted(fd.fd(), options_));
  return make_socket_stream(std::move(fd));
}

void Listener::hold_more(bool more) noexcept {
  if (bound_.fd.valid() && options_.adopt_fd < 0 && !inherited()) {
    (void)sys::set_backlog(bound_.fd.fd(), more ? std::max(options_.backlog, kHeldMax) : options_.backlog);
  }
}

void Listener::release() noexcept {
  options_.adopt_fd = bound_.fd.fd();
  bound_.file.clear();
  bound_.directory.clear();
}

void Listener::close() noexcept {
  if (!bound_.fd.valid()) {
    return;
  }
  if (!inherited()) {
    remove_files();  // first: while the socket is open, no other file can have its inode number
    if (options_.adopt_fd < 0) {
      sys::stop_listening(bound_.fd.fd());  // the sockets of share() may be open for a while
    }
  }
  bound_.fd.close();
}

void Listener::remove_files() noexcept {
  if (!bound_.file.empty()) {
    const auto identity = sys::identify_file(bound_.file);
    if (identity && *identity == bound_.identity) {
      static_cast<void>(sys::remove_file(bound_.file));
    }
  }
  if (!bound_.directory.empty()) {
    static_cast<void>(sys::remove_directory(bound_.directory));
  }
}

}  // namespace weft::net
