// SPDX-License-Identifier: MIT
#include "weft/nats/client/enter.h"

#include <exception>
#include <utility>

#include "weft/nats/protocol/credentials.h"
#include "weft/nats/protocol/nkey.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/dial.h"
#include "weft/sys/call.h"
#include "weft/sys/files/whole_file.h"

namespace weft::nats {

namespace {

constexpr Error kLateEntry(Errc::timed_out, "the server did not take the connection within connect_timeout");
constexpr Error kLateLookup(Errc::timed_out, "looking up the host's name took longer than lookup_timeout");
constexpr Error kNoTls(Errc::handshake_refused, "TLS is wanted, and the server offers none");
constexpr std::size_t kBytesEachTurn = 1024;  // of INFO

using Stream = std::unique_ptr<net::ByteStream>;

// Lets a coroutine wait for bytes.
class ReadableFd final : private rt::Watcher {
 public:
  explicit ReadableFd(rt::Loop& loop) noexcept : loop_(loop) {}
  ReadableFd(const ReadableFd&) = delete;
  ReadableFd& operator=(const ReadableFd&) = delete;
  ~ReadableFd() { loop_.unwatch(watch_); }

  [[nodiscard]] Result<void> watch(int fd) {
    watch_ = WEFT_TRY(loop_.watch(fd, sys::Interest::readable | sys::Interest::peer_closed, true, this));
    return {};
  }
  rt::AsyncEvent& ready() noexcept { return ready_; }

 private:
  void handle_event(const sys::PollEvent& /*event*/) override { ready_.set(); }

  rt::Loop& loop_;
  rt::Loop::WatchId watch_ = 0;
  rt::AsyncEvent ready_;
};

// The line without "INFO " and its end.
rt::Task<Result<std::string>> read_info_line(rt::Loop* loop, net::ByteStream* stream) {
  constexpr std::string_view kOperation = "INFO ";
  ReadableFd readable(*loop);
  Result<void> waited = readable.watch(stream->fd());
  std::string line;
  while (waited) {
    readable.ready().reset();
    std::uint8_t byte = 0;
    MutableBytes into(&byte, 1);
    const sys::IoResult result = stream->read({&into, 1});
    if (result.status == sys::IoResult::Status::failed) {
      const Error failure = stream->state().failure;
      co_return failure == Errc::ok ? sys::make_error(result.os_errno, "the connection failed") : failure;
    }
    if (result.status == sys::IoResult::Status::end_of_stream) {
      co_return Error(Errc::connection_closed, "the server closed before its INFO");
    }
    if (result.status == sys::IoResult::Status::would_block || result.bytes == 0) {
      waited = co_await readable.ready().wait();
      continue;
    }
    line += static_cast<char>(byte);
    if (line.size() <= kOperation.size() && line.back() != kOperation[line.size() - 1]) {
      co_return Error(Errc::incompatible_peer, "the peer is not a NATS server: it did not begin with INFO");
    }
    if (line.ends_with("\r\n")) {
      line.resize(line.size() - 2);
      line.erase(0, kOperation.size());
      co_return line;
    }
    if (line.size() == kInfoMax) {
      co_return Error(Errc::protocol_error, "the server's INFO is too long");
    }
    if (line.size() % kBytesEachTurn == 0) {
      waited = co_await rt::yield();
    }
  }
  co_return waited.error();
}

rt::Task<Result<Stream>> start_tls(serve::Shard* shard, const ClientOptions* options, const ServerUrl* url,
                                   Stream stream) {
  std::shared_ptr<net::TlsClient> tls = options->tls;
  if (tls == nullptr) {
    auto made = net::TlsClient::make({});
    if (!made) {
      co_return made.error();
    }
    tls = std::move(*made);
  }
  auto wrapped = tls->wrap(std::move(stream), options->tls_name.empty() ? url->host : options->tls_name);
  if (!wrapped) {
    co_return wrapped.error();
  }
  co_return co_await serve::shake_hands(*shard, std::move(*wrapped));
}

rt::Task<Result<Entered>> enter_at(serve::Shard* shard, const ClientOptions* options, const ServerUrl* url,
                                   serve::Dialling* dialling) {
  auto stream = co_await serve::Dialling::connect(dialling);
  if (!stream) {
    co_return stream.error();
  }
  Entered entered;
  entered.stream = std::move(*stream);
  if (options->tls_first) {
    auto secured = co_await start_tls(shard, options, url, std::move(entered.stream));
    if (!secured) {
      co_return secured.error();
    }
    entered.stream = std::move(*secured);
    entered.tls = true;
  }
  const auto line = co_await read_info_line(&shard->loop(), entered.stream.get());
  if (!line) {
    co_return line.error();
  }
  auto info = read_info(*line);
  if (!info) {
    co_return info.error();
  }
  entered.info = std::move(*info);
  const bool wanted = url->tls || options->tls != nullptr;
  if (!entered.tls && (wanted || entered.info.tls_required)) {
    if (!entered.info.tls_required && !entered.info.tls_available) {
      co_return kNoTls;
    }
    auto secured = co_await start_tls(shard, options, url, std::move(entered.stream));
    if (!secured) {
      co_return secured.error();
    }
    entered.stream = std::move(*secured);
    entered.tls = true;
  }
  co_return Result<Entered>(std::in_place, std::move(entered));
}

Result<std::string> sign_nonce(std::string_view seed, const ServerInfo& info, std::string* public_key) {
  if (info.nonce.empty()) {
    return Error(Errc::handshake_refused, "the server sent no nonce: it takes no nkey");
  }
  const NKey key = WEFT_TRY(NKey::from_seed(seed));
  if (key.kind() != KeyKind::user) {
    return Error(Errc::invalid_argument, "the seed is not that of a user");
  }
  if (public_key != nullptr) {
    *public_key = key.public_key();
  }
  return key.sign(as_bytes(info.nonce));
}

}  // namespace

rt::Task<Result<Entered>> enter(serve::Shard* shard, const ClientOptions* options, const ServerUrl* url) {
  const auto endpoint = net::parse_endpoint(url->endpoint(), false);
  if (!endpoint) {
    co_return endpoint.error();
  }
  serve::Dialling dialling(shard->loop(), *endpoint, options->socket, options->resolver);
  const auto looked_up = co_await rt::with_timeout(serve::Dialling::look_up(&dialling), options->lookup_timeout);
  if (!looked_up) {
    co_return looked_up.error() == Errc::timed_out ? kLateLookup : looked_up.error();
  }
  auto entered = co_await rt::with_timeout(enter_at(shard, options, url, &dialling), options->connect_timeout);
  if (!entered && entered.error() == Errc::timed_out) {
    co_return kLateEntry;
  }
  co_return entered;
}

Result<Secret> make_login(const ClientOptions& options, const ServerUrl& url, const ServerInfo& info, bool tls) {
  ConnectFields fields;
  fields.name = options.name;
  fields.echo = options.echo;
  fields.tls = tls;
  fields.headers = info.headers;
  UserCredentials credentials;
  Secret seed;
  std::string public_key;
  std::string signature;
  if (!url.user.empty()) {
    (url.password.text().empty() ? fields.token : fields.user) = url.user;
    fields.password = url.password.text();
  } else if (!options.credentials_file.empty()) {
    const Secret text(WEFT_TRY(sys::read_whole_file(options.credentials_file, kCredentialsMax)));
    credentials = WEFT_TRY(read_credentials(text.text()));
    fields.jwt = credentials.jwt.text();
    if (!info.nonce.empty()) {  // a server that requires no credentials sends none
      signature = WEFT_TRY(sign_nonce(credentials.seed.text(), info, nullptr));
    }
  } else if (!options.nkey_seed.text().empty() || !options.nkey_seed_file.empty()) {
    seed = options.nkey_seed;
    if (!options.nkey_seed_file.empty()) {
      seed = Secret(WEFT_TRY(sys::read_whole_file(options.nkey_seed_file, kCredentialsMax)));
    }
    signature = WEFT_TRY(sign_nonce(seed.text(), info, &public_key));
  } else if (!options.token.text().empty()) {
    fields.token = options.token.text();
  } else {
    fields.user = options.user;
    fields.password = options.password.text();
  }
  fields.nkey = public_key;
  fields.signature = signature;
  return write_connect(fields);
}

}  // namespace weft::nats
