// SPDX-License-Identifier: MIT
#include "weft/net/transport/ipc.h"

#include <cerrno>

namespace weft::net {
namespace {

// Whether a listener may replace the file at `path`: a socket whose listener is gone, or an empty file that
// reserves the name, as mkstemp(3) makes it. libzmq also removes any other file.
bool may_replace(const std::string& path, const sys::SocketAddress& address) {
  const auto file = sys::identify_file(path);
  if (!file || !file->is_socket) {
    return file && file->is_empty;  // connecting to a plain file is refused too
  }
  if (sys::is_unix_stream_bound(address)) {
    return false;
  }
  const auto probe = sys::open_unix_connection(address, {});
  return !probe && probe.error().os_errno() == ECONNREFUSED;
}

Result<sys::Fd> listen_at_path(const std::string& path, const sys::SocketOptions& options) {
  const auto address = WEFT_TRY(sys::SocketAddress::from_path(path));
  // Between another binder's bind and listen its file looks stale. The lock keeps binders apart.
  const sys::Fd lock = sys::lock_parent_directory(path);
  auto fd = sys::open_unix_listener(address, options);
  if (fd || !(fd.error() == Errc::address_in_use) || !may_replace(path, address)) {
    return fd;
  }
  WEFT_TRY(sys::remove_file(path));
  return sys::open_unix_listener(address, options);
}

Result<BoundSocket> open_at_path(const std::string& path, const sys::SocketOptions& options) {
  BoundSocket bound;
  bound.fd = WEFT_TRY(listen_at_path(path, options));
  bound.text = "ipc://" + path;
  if (const auto identity = sys::identify_file(path)) {
    bound.file = sys::absolute_path(path);  // the working directory may change before close
    bound.identity = *identity;
  }
  return bound;
}

Result<BoundSocket> open_abstract(const std::string& name, const sys::SocketOptions& options) {
  BoundSocket bound;
  const auto address = WEFT_TRY(sys::SocketAddress::from_abstract(name));
  bound.fd = WEFT_TRY(sys::open_unix_listener(address, options));
  bound.text = "ipc://@" + name;
  return bound;
}

Result<BoundSocket> open_fresh(const sys::SocketOptions& options) {
  const std::string directory = WEFT_TRY(sys::make_private_directory());
  auto bound = open_at_path(directory + "/socket", options);
  if (bound) {
    bound->directory = directory;
  } else {
    static_cast<void>(sys::remove_directory(directory));
  }
  return bound;
}

Result<BoundSocket> open_listener(const Endpoint& endpoint, const sys::SocketOptions& options) {
  if (options.adopt_fd >= 0) {
    BoundSocket bound;  // the program that made the socket owns the file
    bound.fd = WEFT_TRY(sys::adopt_listener(options.adopt_fd, &sys::SocketAddress::is_unix));
    bound.text = "ipc://" + WEFT_TRY(sys::local_address(bound.fd.fd())).to_text();
    return bound;
  }
  if (endpoint.wildcard) {
    return open_fresh(options);
  }
  return endpoint.abstract ? open_abstract(endpoint.path, options) : open_at_path(endpoint.path, options);
}

Result<void> tune_accepted(int /*fd*/, const sys::SocketOptions& /*options*/) { return {}; }

Result<std::vector<sys::SocketAddress>> known_addresses(const Endpoint& endpoint) {
  return std::vector{endpoint.abstract ? WEFT_TRY(sys::SocketAddress::from_abstract(endpoint.path))
                                       : WEFT_TRY(sys::SocketAddress::from_path(endpoint.path))};
}

Result<sys::Connecting> begin_connect(const sys::SocketAddress& to, const Endpoint& /*endpoint*/,
                                      const sys::SocketOptions& options) {
  return sys::open_unix_connection(to, options);
}

}  // namespace

TransportRow ipc_transport() noexcept {
  return {Transport::ipc, &open_listener, &tune_accepted, &known_addresses, &begin_connect};
}

}  // namespace weft::net
