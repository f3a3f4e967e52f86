// SPDX-License-Identifier: MIT
// From ZeroMQ to sessions and back, on one thread: a publisher's message goes to the sessions that subscribed to its
// topic, a session's frame goes to a worker that pulls. No side waits for another: the gateway drops and counts
// messages without room. Without arguments the program is its own publisher, worker and client, once.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/rt/task/task_scope.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/server.h"
#include "weft/sync/counter.h"
#include "weft/sys/clock.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr const char* kHelp =
    "gateway [--listen ENDPOINT] [--sub ENDPOINT] [--push ENDPOINT] [--admin ENDPOINT]\n"
    "\n"
    "  --listen   where sessions connect to   (tcp://127.0.0.1:0)\n"
    "  --sub      where publishers connect to (tcp://127.0.0.1:*): messages of two parts, topic and text\n"
    "  --push     where workers connect to    (tcp://127.0.0.1:*): messages of one part\n"
    "  --admin    where to ask for /metrics, /healthz and /readyz over HTTP (nowhere)\n"
    "\n"
    "Sessions speak frames with a header of 12 bytes: version 2 (u8), flags (u8), kind (u32), size (u32), 0 (u16), "
    "all\n"
    "big endian. Kinds: 1 subscribe and 2 unsubscribe to the topic that the body is, which are answered by the same\n"
    "frame, or by 5 and why not; 3 send the body to a worker; 4, to the session: a topic, a zero byte, a text.\n"
    "Says its endpoints, a line each, and serves until its input ends; then it says what it counted.\n";

enum Kind : std::uint32_t { kSubscribe = 1, kUnsubscribe, kSend, kMessage, kRefused };
constexpr std::size_t kTopicsMax = 10'000;
constexpr std::size_t kTopicSizeMax = 255;

using Codec = serve::HeaderCodec;
using Session = serve::SessionOf<Codec>;

// Gateway: only the core's thread uses it, but for the counters, which any thread reads.
struct Gateway {
  struct Topic {
    serve::GroupId group{};
    std::size_t sessions = 0;
  };

  serve::Server* server = nullptr;
  AsyncSocket* in = nullptr;  // while pump() runs
  AsyncSocket* out = nullptr;
  std::map<std::string, Topic, std::less<>> topics;
  std::unordered_map<serve::SessionId, std::vector<std::string>> subscriptions;
  std::uint64_t groups = 0;  // groups made so far: numbers the next one
  sync::Counter published, unwanted, unpublished, sent, unsent;

  Result<void> subscribe(Session& session, std::string_view name) {
    std::vector<std::string>& own = subscriptions[session.id()];
    if (std::find(own.begin(), own.end(), name) != own.end()) {
      return {};
    }
    auto topic = topics.find(name);
    if (in == nullptr || name.size() > kTopicSizeMax || (topic == topics.end() && topics.size() >= kTopicsMax)) {
      return Error(Errc::resource_exhausted, "no more topics, or a long one");
    }
    if (topic == topics.end()) {
      WEFT_TRY(in->socket().subscribe(name));
      topic = topics.emplace(name, Topic{serve::GroupId{++groups}, 0}).first;
    }
    ++topic->second.sessions;
    own.emplace_back(name);
    if (const auto joined = session.join(topic->second.group); !joined) {
      unsubscribe(session, name);
      return joined;
    }
    return {};
  }
  void unsubscribe(Session& session, std::string_view name) {
    if (std::erase(subscriptions[session.id()], name) != 0) {
      leave(session, name);
    }
  }
  void forget(Session& session) {
    for (const std::string& name : subscriptions[session.id()]) {
      leave(session, name);
    }
    subscriptions.erase(session.id());
  }
  void leave(Session& session, std::string_view name) {
    const auto topic = topics.find(name);
    session.leave(topic->second.group);
    if (--topic->second.sessions == 0) {
      if (in != nullptr) {
        (void)in->socket().unsubscribe(name);
      }
      topics.erase(topic);
    }
  }

  void send(Bytes body) {
    auto message = Message::copy_of(body);
    const bool taken = message && out != nullptr && out->try_send(*std::move(message));
    (taken ? sent : unsent).add();
  }

  // ZeroMQ matches the beginning of a topic, the gateway the whole topic.
  void publish(const std::vector<Message>& parts) {
    const auto topic = topics.find(parts.front().text());
    if (topic == topics.end()) {
      return unwanted.add();
    }
    std::string body = topic->first + '\0';
    for (std::size_t i = 1; i < parts.size(); ++i) {
      body += parts[i].text();
    }
    const auto frame = serve::SharedFrame::encode(Codec(), {kMessage, 0}, as_bytes(body));
    const bool taken = frame && server->publish(topic->second.group, *frame);
    (taken ? published : unpublished).add();
  }
};

struct Service {
  Gateway* gateway;

  void on_frame(Session& session, const Codec::Frame& frame) {
    switch (frame.header.id) {
      case kSubscribe:
        if (const auto done = gateway->subscribe(session, as_text(frame.body)); !done) {
          (void)session.send({kRefused, 0}, as_bytes(done.error().message()));
          return;
        }
        break;
      case kUnsubscribe: gateway->unsubscribe(session, as_text(frame.body)); break;
      case kSend: return gateway->send(frame.body);
      default: (void)session.send({kRefused, 0}, as_bytes("no such kind")); return;
    }
    (void)session.send(frame.header, frame.body);
  }
  void on_close(Session& session, const Error& /*why*/) { gateway->forget(session); }
};

// Reads and writes both sockets on the core. Ends with the core.
rt::Task<Result<void>> pump(Gateway* gateway, Socket sub, Socket push) {
  rt::Loop& loop = rt::Core::current()->loop();
  auto in = AsyncSocket::make(loop, std::move(sub));
  auto out = AsyncSocket::make(loop, std::move(push));
  if (!in || !out) {
    co_return in ? out.error() : in.error();
  }
  gateway->in = &*in;
  gateway->out = &*out;
  Result<std::vector<Message>> parts = co_await in->recv_all();
  while (parts) {
    gateway->publish(*parts);
    parts = co_await in->recv_all();
  }
  gateway->in = gateway->out = nullptr;
  co_return parts.error();
}

struct Endpoints {
  std::string listen = "tcp://127.0.0.1:0", sub = "tcp://127.0.0.1:*", push = "tcp://127.0.0.1:*", admin;
};

// A worker, a publisher and a client of the gateway at these endpoints. The client is a STREAM socket: plain TCP.
Result<void> try_out(Context& context, const Endpoints& bound) {
  Socket worker = WEFT_TRY(context.socket(SocketType::pull));
  Socket publisher = WEFT_TRY(context.socket(SocketType::xpub));
  Socket client = WEFT_TRY(context.socket(SocketType::stream));
  WEFT_TRY(worker.connect(bound.push));
  WEFT_TRY(publisher.connect(bound.sub));
  WEFT_TRY(client.connect(bound.listen));
  const std::string gateway = std::string(WEFT_TRY(client.recv()).text());
  WEFT_TRY(client.recv());  // empty: the connection stands

  const auto say = [&](Kind kind, std::string_view body) -> Result<void> {
    std::uint8_t bytes[64];
    const auto size = WEFT_TRY(serve::encode_frame(Codec(), {kind, 0}, as_bytes(body), bytes));
    WEFT_TRY(client.send(gateway, More::yes));
    return client.send(Bytes(bytes, size));
  };
  WEFT_TRY(say(kSubscribe, "news"));
  WEFT_TRY(publisher.recv());  // the subscription has arrived
  WEFT_TRY(publisher.send("news", More::yes));
  WEFT_TRY(publisher.send("the gateway works"));
  WEFT_TRY(say(kSend, "work for somebody"));
  std::printf("the worker got: %s\n", std::string(WEFT_TRY(worker.recv()).text()).c_str());

  std::string heard;  // the answer to the subscription, then the message
  while (heard.find("works") == std::string::npos) {
    WEFT_TRY(client.recv());
    heard += WEFT_TRY(client.recv()).text();
  }
  std::printf("the client got: %s\n", heard.substr(heard.find('\0', heard.rfind("news")) + 1).c_str());
  return {};
}

Result<void> run(const Endpoints& wanted, bool alone) {
  Context context;
  Socket sub = WEFT_TRY(context.socket(SocketType::sub));
  Socket push = WEFT_TRY(context.socket(SocketType::push));
  Endpoints bound;
  bound.sub = WEFT_TRY(sub.bind(wanted.sub));
  bound.push = WEFT_TRY(push.bind(wanted.push));

  rt::RuntimeOptions one_core;
  one_core.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(one_core));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  Gateway gateway;
  gateway.server = server.get();
  const auto pumping = rt::spawn(runtime->core(0).loop(), pump(&gateway, std::move(sub), std::move(push)));

  serve::ListenerOptions listener;
  listener.limits.slow_consumer = serve::SlowConsumer::drop_oldest;  // a slow session loses its oldest news
  bound.listen = WEFT_TRY(server->listen<Codec>(wanted.listen, listener, [&gateway] { return Service{&gateway}; }));
  std::printf("%s\n%s\n%s\n", bound.listen.c_str(), bound.sub.c_str(), bound.push.c_str());

  std::unique_ptr<serve::Admin> admin;
  if (!wanted.admin.empty()) {
    serve::AdminOptions options;
    options.endpoint = wanted.admin;
    options.servers.push_back({"gateway", server.get()});
    admin = WEFT_TRY(serve::Admin::make(*runtime, std::move(options)));
    std::printf("%s\n", admin->endpoint().c_str());
  }
  std::fflush(stdout);
  if (alone) {
    WEFT_TRY(try_out(context, bound));
  } else {
    while (std::getchar() != EOF) {
    }
  }
  admin.reset();
  (void)server->stop(sys::now() + 1s);
  (void)runtime->stop(sys::now() + 1s);
  const auto number = [](const sync::Counter& counter) { return static_cast<unsigned long long>(counter.value()); };
  std::printf("published %llu, unwanted %llu, dropped %llu, dropped by slow sessions %llu; sent %llu, dropped %llu\n",
              number(gateway.published), number(gateway.unwanted), number(gateway.unpublished),
              static_cast<unsigned long long>(server->counters().dropped_oldest), number(gateway.sent),
              number(gateway.unsent));
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  Endpoints wanted;
  const std::map<std::string_view, std::string*> options = {
      {"--listen", &wanted.listen}, {"--sub", &wanted.sub}, {"--push", &wanted.push}, {"--admin", &wanted.admin}};
  for (int i = 1; i < count; i += 2) {
    const auto option = options.find(arguments[i]);
    if (option == options.end() || i + 1 == count) {
      const bool asked = std::string_view(arguments[i]) == "--help";
      std::fputs(kHelp, asked ? stdout : stderr);
      return asked ? 0 : 2;
    }
    *option->second = arguments[i + 1];
  }
  if (const auto result = run(wanted, count == 1); !result) {
    std::fprintf(stderr, "gateway: %s\n", result.error().message().c_str());
    return 1;
  }
}
