// SPDX-License-Identifier: MIT
#pragma once

#ifdef WEFT_HAVE_OPENSSL

#include <memory>
#include <string>
#include <utility>

#include "weft/net/tls/test_certificates.h"
#include "weft/net/tls/tls.h"
#include "weft/net/transport/layering.h"
#include "weft/sys/poll.h"
#include "weft/weft.h"

// TLS for the tests: one authority for the process, and one certificate that every socket has and demands.
namespace weft::conformance {

[[nodiscard]] inline net::test::TestAuthority& authority() {
  static net::test::TestAuthority made;
  return made;
}

[[nodiscard]] inline const net::test::CertificateFiles& certificate() {
  static const net::test::CertificateFiles made = authority().issue("peer");
  return made;
}

inline void give_certificate(Socket& socket, const net::test::CertificateFiles& files = certificate()) {
  EXPECT_TRUE(socket.set(option::tls_certificate, files.certificate));
  EXPECT_TRUE(socket.set(option::tls_key, files.key));
  EXPECT_TRUE(socket.set(option::tls_authorities, authority().file()));
}

// The stream of a peer that is not a socket of Weft, with the same certificate, after its handshake or its end.
[[nodiscard]] inline std::unique_ptr<net::ByteStream> put_test_tls(std::unique_ptr<net::ByteStream> below,
                                                                   bool accepted) {
  if (accepted) {
    below = net::TlsServer::make({certificate().certificate, certificate().key, authority().file()})
                .value()
                ->wrap(std::move(below))
                .value();
  } else {
    below = net::TlsClient::make({authority().file(), true, certificate().certificate, certificate().key})
                .value()
                ->wrap(std::move(below), "localhost")
                .value();
  }
  for (bool open = true; open && (!below->state().established || below->state().unsent);) {
    const bool writes = below->state().unsent;
    const sys::IoResult result = writes ? below->write({}) : below->read({});
    open = result.status != sys::IoResult::Status::failed && result.status != sys::IoResult::Status::end_of_stream;
    sys::PollFd polled{.fd = below->fd(), .want = writes ? sys::Interest::writable : sys::Interest::readable};
    if (open && !below->state().established && !sys::poll_fds({&polled, 1}, std::chrono::seconds(20)).value_or(0)) {
      break;
    }
  }
  return below;
}

}  // namespace weft::conformance

#endif
