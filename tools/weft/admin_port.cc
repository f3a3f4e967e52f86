// SPDX-License-Identifier: MIT
#include "tools/weft/admin_port.h"

#include <utility>

#include "tools/weft/console.h"
#include "tools/weft/dial.h"
#include "weft/net/stream/endpoint.h"
#include "weft/net/tls/tls.h"

namespace weft::cli {

namespace {

net::Endpoint parse(const std::string& text) {
  auto endpoint = net::parse_endpoint(text, false);
  if (!endpoint) {
    throw Usage("the admin port " + printable(text) + ": " + endpoint.error().message());
  }
  if (endpoint->transport != net::Transport::tcp && endpoint->transport != net::Transport::tls_tcp &&
      endpoint->transport != net::Transport::ipc) {
    throw Usage("an admin port is a tcp://, a tls+tcp:// or an ipc:// endpoint, not " + printable(text));
  }
  return std::move(*endpoint);
}

// An address of IPv6 without its zone, which is not for the other end.
std::string authority(const std::string& name, std::uint16_t port) {
  const bool v6 = name.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + name.substr(0, name.find('%')) + "]" : name;
  return host + ":" + std::to_string(port);
}

std::unique_ptr<net::ByteStream> start_tls(const AdminPort& port, const std::string& name,
                                           std::unique_ptr<net::ByteStream> below, Instant end) {
  const std::string what = "connect " + printable(port.endpoint);
  net::TlsClientOptions options;
  options.ca_file = port.tls_authorities;
  options.verify = !port.tls_insecure;
  options.certificate_file = port.tls_certificate;
  options.key_file = port.tls_key;
  std::string why;
  const auto tls = net::TlsClient::make(options, &why);
  if (!tls) {
    throw Failure(what + ": " + (why.empty() ? tls.error().message() : printable(why)));
  }
  auto stream = need((*tls)->wrap(std::move(below), name), what + ": the name " + printable(name));
  while (!stream->state().established) {
    const sys::IoResult got = stream->read({});
    if (got.status == sys::IoResult::Status::failed || got.status == sys::IoResult::Status::end_of_stream) {
      const Error failure = stream->state().failure;
      throw Failure(what + ": " + (failure == Errc::ok ? "the port ended the handshake of TLS" : failure.message()));
    }
    if (got.status == sys::IoResult::Status::would_block && !stream->state().established &&
        !wait_stream(*stream, sys::Interest::readable, end)) {
      throw Failure(what + ": the handshake of TLS did not end in time");
    }
  }
  return stream;
}

}  // namespace

void check_admin_port(const AdminPort& port) {
  const net::Endpoint endpoint = parse(port.endpoint);
  if (port.tls_certificate.empty() != port.tls_key.empty()) {
    throw Usage("--tls-cert and --tls-key belong together");
  }
  const bool tls_options =
      !port.tls_certificate.empty() || !port.tls_authorities.empty() || !port.tls_name.empty() || port.tls_insecure;
  if (tls_options && endpoint.transport != net::Transport::tls_tcp) {
    throw Usage("options of TLS belong to a tls+tcp:// endpoint, not to " + printable(port.endpoint));
  }
}

std::string host_of(const AdminPort& port) {
  const net::Endpoint endpoint = parse(port.endpoint);
  return endpoint.transport == net::Transport::ipc
             ? "localhost"
             : authority(port.tls_name.empty() ? endpoint.host : port.tls_name, endpoint.port);
}

std::unique_ptr<net::ByteStream> dial_admin(const AdminPort& port, Instant end) {
  const net::Endpoint endpoint = parse(port.endpoint);
  auto stream = net::make_socket_stream(dial(endpoint, port.endpoint, end));
  if (endpoint.transport != net::Transport::tls_tcp) {
    return stream;
  }
  return start_tls(port, port.tls_name.empty() ? endpoint.host : port.tls_name, std::move(stream), end);
}

bool wait_stream(const net::ByteStream& stream, sys::Interest want, Instant end) {
  return wait_ready(stream.fd(), stream.state().unsent ? want | sys::Interest::writable : want, end);
}

}  // namespace weft::cli
