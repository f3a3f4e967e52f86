// SPDX-License-Identifier: MIT
#include "tools/weft/call.h"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "tools/weft/schema.h"
#include "weft/net/stream/endpoint.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

using serve::OwnedBytes;

constexpr Duration kLook = std::chrono::milliseconds(20);  // between two looks for a signal

// `endpoint` becomes the one of the connection below TLS.
serve::rpc::ClientOptions client_options(const CallOptions& options, std::string& endpoint) {
  const bool tls_options = !options.tls_certificate.empty() || !options.tls_key.empty() ||
                           !options.tls_authorities.empty() || !options.tls_name.empty() || options.tls_insecure;
  auto parsed = net::parse_endpoint(options.endpoint, false);
  if (!parsed) {
    throw Usage(printable(options.endpoint) + ": " + parsed.error().message());
  }
  serve::rpc::ClientOptions made;
  made.connection.reconnect_max = std::chrono::seconds(1);
  endpoint = options.endpoint;
  if (parsed->transport != net::Transport::tls_tcp) {
    if (tls_options) {
      throw Usage("options of TLS belong to a tls+tcp:// endpoint, not to " + printable(options.endpoint));
    }
    return made;
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    throw Usage("--tls-cert and --tls-key belong together");
  }
  net::TlsClientOptions tls;
  tls.ca_file = options.tls_authorities;
  tls.verify = !options.tls_insecure;
  tls.certificate_file = options.tls_certificate;
  tls.key_file = options.tls_key;
  std::string why;
  auto client = net::TlsClient::make(tls, &why);
  if (!client) {
    throw Failure("TLS: " + (why.empty() ? client.error().message() : printable(why)));
  }
  made.connection.tls = std::move(*client);
  made.connection.tls_name = options.tls_name;
  parsed->transport = net::Transport::tcp;
  endpoint = parsed->text();
  return made;
}

// Attempt: the first attempt to connect that failed, from the core to the command's thread.
class Attempt {
 public:
  void note(const Error& why) {
    const sync::LockGuard lock(mutex_);
    first_ = first_ ? first_ : std::optional<Error>(why);
  }
  [[nodiscard]] std::optional<Error> take_first() {  // once
    const sync::LockGuard lock(mutex_);
    return first_ && !std::exchange(taken_, true) ? first_ : std::nullopt;
  }

 private:
  sync::StdMutex mutex_;
  std::optional<Error> first_ WEFT_GUARDED_BY(mutex_);
  bool taken_ WEFT_GUARDED_BY(mutex_) = false;
};

// One call, and its outcome.
struct Asked {
  std::string endpoint{};
  std::string method{};
  std::string body{};
  serve::rpc::ClientOptions client{};
  Instant deadline = kNever;
  serve::rpc::MethodInfos methods{};  // without a method
  OwnedBytes answer{};
  std::string refusal{};
  Attempt failed{};
};

rt::Task<Result<void>> ask(Asked* asked) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  asked->client.connection.on_event = [asked](const serve::ClientEvent& event) {
    if (event.kind == serve::ClientEvent::Kind::unconnected) {
      asked->failed.note(event.why);
    }
  };
  auto client = serve::rpc::Client::open(host, asked->endpoint, std::move(asked->client));
  if (!client) {
    co_return client.error();
  }
  const Result<void> connected = co_await (*client)->connected(asked->deadline);
  if (!connected) {
    co_return connected;
  }
  serve::rpc::CallOptions options;
  options.timeout = time_left(asked->deadline, sys::now());
  options.refusal = &asked->refusal;
  if (asked->method.empty()) {
    auto methods = co_await (*client)->methods(options);
    if (!methods) {
      co_return methods.error();
    }
    asked->methods = std::move(*methods);
    co_return Result<void>();
  }
  auto answer = co_await (*client)->call_bytes(asked->method, as_bytes(asked->body), options);
  if (!answer) {
    co_return answer.error();
  }
  asked->answer = std::move(*answer);
  co_return Result<void>();
}

// On a core of its own. Ctrl-C cancels the call, also at the server. While no server listens, the call waits for one.
Result<void> run(Console& console, Asked& asked) {
  rt::RuntimeOptions options;
  options.cores = 1;
  options.wait_mode = sync::WaitMode::eco;
  const auto runtime = need(rt::Runtime::start(options), "a thread");
  std::stop_source stop;
  auto future = need(rt::spawn(runtime->core(0), ask(&asked), stop.get_token()), "a task");
  while (!future.wait_until(sys::now() + kLook)) {
    if (stop_signal() != 0) {
      stop.request_stop();
      (void)future.get();
    }
    throw_if_stopped();
    if (const std::optional<Error> why = asked.failed.take_first()) {
      console.note(printable(why->message()) + "; tries again until --timeout");
    }
  }
  return future.get();
}

void list(Console& console, const serve::rpc::MethodInfos& methods) {
  for (const serve::rpc::MethodInfo& method : methods) {
    if (console.json) {
      console.record({{"method", method.name}, {"number", std::uint64_t{method.number}}});
    } else {
      console.line(method.number == 0 ? method.name : method.name + " " + std::to_string(method.number));
    }
  }
}

}  // namespace

int call(Console& console, const CallOptions& options) {
  if (options.method.empty() && !options.schema.empty()) {
    throw Usage("--schema is for a call: METHOD is missing");
  }
  if (options.schema.empty() && (!options.request.empty() || !options.response.empty())) {
    throw Usage("--request and --response name tables of --schema");
  }
  std::optional<Schema> schema;
  if (!options.schema.empty()) {
    schema.emplace(options.schema);
  }
  Asked asked;
  asked.method = options.method;
  asked.client = client_options(options, asked.endpoint);
  if (!options.method.empty()) {
    if (!options.body.words.empty() || !options.body.file.empty()) {
      asked.body = value_of(options.body, "BODY");
    }
    if (schema) {
      asked.body = schema->to_bytes(asked.body.empty() ? "{}" : asked.body, options.request);
    }
  }
  asked.deadline = deadline_after(sys::now(), seconds(options.timeout));
  const Result<void> called = run(console, asked);
  if (!called) {
    const std::string what = options.method.empty() ? "the methods of " + printable(options.endpoint) : options.method;
    std::string text = called.error().message();
    const std::string_view kept = called.error().text();  // of a refusal the beginning
    if (asked.refusal.starts_with(kept) && text.ends_with(kept)) {
      text.replace(text.size() - kept.size(), kept.size(), asked.refusal);
    }
    throw Failure(what + ": " + printable(text));
  }
  if (options.method.empty()) {
    list(console, asked.methods);
    return 0;
  }
  const std::string_view answer = as_text(asked.answer.bytes());
  if (schema && !options.shown.raw && !options.shown.hex) {
    console.line(schema->to_json(answer, options.response));
    return 0;
  }
  show(console, options.shown, console.json ? Record{{"method", options.method}} : Record(), answer, {});
  return 0;
}

}  // namespace weft::cli
