// SPDX-License-Identifier: MIT
// An echo server on every core, and a client that sends one request. Without the client: `echo_server tcp://*:7000`,
// over TLS `echo_server tcp://*:7000 --tls CERTIFICATE KEY`.
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "weft/net/dialer.h"
#include "weft/net/tls/tls.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;

// [service]
struct Echo {
  void on_frame(serve::SessionOf<serve::HeaderCodec>& session, const serve::HeaderCodec::Frame& frame) {
    (void)session.send(frame.header, frame.body);
  }
};
// [service]

// One request by hand, as any client in any language sends it.
Result<std::string> ask(const std::string& endpoint, std::string_view text) {
  net::Dialer dialer(WEFT_TRY(net::parse_endpoint(endpoint, false)), {});
  for (auto progress = WEFT_TRY(dialer.begin()); progress != net::Progress::connected;) {
    std::this_thread::sleep_for(1ms);
    progress = WEFT_TRY(dialer.finish());
  }
  const auto stream = dialer.take_stream();
  std::uint8_t bytes[64];
  const auto size = WEFT_TRY(serve::encode_frame(serve::HeaderCodec(), {1, 0}, as_bytes(text), bytes));
  const Bytes request(bytes, size);
  (void)stream->write({&request, 1});
  for (std::size_t have = 0; have < size;) {
    MutableBytes into = MutableBytes(bytes).subspan(have);
    have += stream->read({&into, 1}).bytes;
    std::this_thread::yield();
  }
  return std::string(as_text(Bytes(bytes, size).subspan(serve::HeaderCodec::kHeaderSize)));
}

// [tls]
Result<void> use_tls(const char* certificate_file, const char* key_file, serve::ListenerOptions& options) {
  std::string why;  // the file and OpenSSL's reason
  auto tls = net::TlsServer::make({.certificate_file = certificate_file, .key_file = key_file}, &why);
  if (!tls) {
    std::fprintf(stderr, "echo_server: %s\n", why.c_str());
    return tls.error();
  }
  options.tls = *tls;  // (*tls)->reload() later: new connections get the files as they are then
  return {};
}
// [tls]

// [run]
Result<void> run(const char* endpoint, const serve::ListenerOptions& options) {
  const auto runtime = WEFT_TRY(rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string bound = WEFT_TRY(server->listen<serve::HeaderCodec>(
      endpoint != nullptr ? endpoint : "tcp://127.0.0.1:0", options, [] { return Echo(); }));
  std::printf("echoing at %s\n", bound.c_str());
  while (endpoint != nullptr) {
    std::this_thread::sleep_for(1h);
  }
  std::printf("%s\n", WEFT_TRY(ask(bound, "hello")).c_str());
  return server->stop(sys::now() + 5s);  // delivers queued frames
}
// [run]

int main(int count, char** arguments) {
  serve::ListenerOptions options;
  const bool tls = count == 5 && std::string_view(arguments[2]) == "--tls";
  if (tls && !use_tls(arguments[3], arguments[4], options)) {
    return 1;
  }
  if (const auto result = run(count > 1 ? arguments[1] : nullptr, options); !result) {
    std::fprintf(stderr, "echo_server: %s\n", result.error().message().c_str());
    return 1;
  }
}
