// SPDX-License-Identifier: MIT
// Topics, step by step like docs/topics.md: in a process, on a host, between hosts, and kept on disk. The
// program runs every step in a directory of its own, and ends.
#include "weft/topic/topics.h"

#include <array>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/net/dialer.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/topic/async_topics.h"

namespace {

using namespace std::chrono_literals;

std::string directory;  // of this run

weft::Instant soon() { return weft::sys::now() + 20s; }

// Prints the received text; an error if it is not the text of the guide.
weft::Result<void> expect(std::string_view came, std::string_view said) {
  std::printf("  %.*s\n", int(came.size()), came.data());
  return came == said ? weft::Result<void>() : weft::Error(weft::Errc::other, "the guide says something else");
}

weft::Result<void> in_a_process(weft::Context& context) {
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, {.fleet = "inproc:market"}));
  weft::Subscription prices = WEFT_TRY(topics.subscribe("px.*"));
  weft::Publisher apple = WEFT_TRY(topics.publisher("px.AAPL"));

  weft::Headers headers;
  WEFT_TRY(headers.add("Currency", "USD"));
  WEFT_TRY(apple.publish("188.20", headers));  // never waits

  const weft::TopicMessage message = WEFT_TRY(prices.next());
  WEFT_TRY(expect(message.topic(), "px.AAPL"));
  WEFT_TRY(expect(message.text(), "188.20"));
  WEFT_TRY(expect(message.header("Currency"), "USD"));
  return expect(message.filter(), "px.*");
}

weft::Result<void> on_a_host(weft::Context& context) {
  weft::TopicsOptions options;            // fleet = "local"
  options.runtime_directory = directory;  // only this demonstration: by default all programs of a user meet
  weft::Topics here = WEFT_TRY(weft::Topics::open(context, options));
  weft::Topics there = WEFT_TRY(weft::Topics::open(context, options));  // in a program: another process

  weft::Subscription prices = WEFT_TRY(there.subscribe("px.AAPL"));
  weft::Publisher apple = WEFT_TRY(here.publisher("px.AAPL"));
  WEFT_TRY(apple.wait_subscribers(1, weft::sys::now() + 5s));  // from now on nothing is published into the void
  WEFT_TRY(apple.publish("188.20"));
  return expect(WEFT_TRY(prices.next_until(soon())).text(), "188.20");
}

weft::Result<void> between_hosts(weft::Context& context) {
  weft::TopicsOptions first;
  first.fleet = "tcp://";              // no host is known yet
  first.listen = "tcp://127.0.0.1:0";  // in a program: "tcp://0.0.0.0:7300"
  weft::Topics one = WEFT_TRY(weft::Topics::open(context, first));

  weft::TopicsOptions second;
  second.fleet = one.endpoint();  // in a program: "tcp://10.0.0.1:7300,10.0.0.2:7300", the same everywhere
  second.listen = "tcp://127.0.0.1:0";
  weft::Topics two = WEFT_TRY(weft::Topics::open(context, second));

  WEFT_TRY(two.sync(weft::sys::now() + 5s));  // every listed peer has sent its roster
  weft::Subscription news = WEFT_TRY(one.subscribe("news.>"));
  weft::Publisher publisher = WEFT_TRY(two.publisher("news.de.berlin"));
  WEFT_TRY(publisher.wait_subscribers(1, soon()));
  WEFT_TRY(publisher.publish("rain"));
  return expect(WEFT_TRY(news.next_until(soon())).text(), "rain");
}

weft::Result<void> filters(weft::Topics& topics) {
  weft::Subscription s = WEFT_TRY(topics.subscribe({"player.1", "px.*.close", "news.>"}));
  WEFT_TRY(s.add(weft::Filter::prefix("log.err")));          // bytes, as a SUB of ZeroMQ
  WEFT_TRY(s.add(weft::Filter::glob("user.*.st[ao]rt?d")));  // Redis' PSUBSCRIBE
  WEFT_TRY(s.remove("px.*.close"));                          // each can be taken back

  for (const char* topic :
       {"player.10", "player.1", "px.AAPL.close", "news", "news.de.berlin", "log.errors", "user.7.started"}) {
    weft::Publisher publisher = WEFT_TRY(topics.publisher(topic));
    WEFT_TRY(publisher.publish("-"));
  }
  for (const char* topic : {"player.1", "news.de.berlin", "log.errors", "user.7.started"}) {
    const weft::TopicMessage came = WEFT_TRY(s.next());
    WEFT_TRY(expect(came.topic(), topic));
  }
  return expect(s.try_next() ? "more" : "no more", "no more");
}

weft::Result<void> slow_subscriber(weft::Topics& topics) {
  weft::SubscriptionOptions options;
  options.full = weft::Full::drop_oldest;  // or drop_newest, newest_per_topic, end
  options.queue_messages_max = 2;
  weft::Subscription slow = WEFT_TRY(topics.subscribe("tick", options));
  weft::Publisher tick = WEFT_TRY(topics.publisher("tick"));
  for (const char* number : {"1", "2", "3", "4", "5"}) {
    WEFT_TRY(tick.publish(number));
  }
  const weft::TopicMessage message = WEFT_TRY(slow.next());
  WEFT_TRY(expect(message.text(), "4"));
  return expect(std::to_string(message.missed()), "3");
}

weft::Result<void> requests(weft::Topics& topics) {
  const weft::Service upper =
      WEFT_TRY(topics.serve("svc.upper", {.group = "workers"}, [](const weft::TopicMessage& asked) {
        std::string text(asked.text());
        for (char& c : text) {
          c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }
        return weft::Message::copy_of(text);
      }));
  const weft::TopicMessage answer = WEFT_TRY(topics.request("svc.upper", "hello", weft::sys::now() + 5s));
  WEFT_TRY(expect(answer.text(), "HELLO"));
  const auto nobody = topics.request("svc.none", "hello", weft::sys::now() + 5s);
  return expect(nobody ? "an answer" : "unreachable at once", "unreachable at once");
}

weft::Result<void> owners(weft::Context& context) {
  weft::TopicsOptions options;
  options.runtime_directory = directory;
  options.presence = 10s;  // nodes() of the others keeps this handle so long when it is silent
  options.node = "ann";
  weft::Topics ann = WEFT_TRY(weft::Topics::open(context, options));
  options.node = "bob";
  weft::Topics bob = WEFT_TRY(weft::Topics::open(context, options));
  WEFT_TRY(bob.sync(soon()));

  const weft::Owned world = WEFT_TRY(ann.create("world.7", weft::sys::now() + 5s));
  const auto taken = bob.create("world.7", weft::sys::now() + 5s);  // conflict: ann lives
  WEFT_TRY(expect(taken ? "two owners" : "one owner", "one owner"));
  const std::vector<std::string> worlds = WEFT_TRY(bob.list("world.*"));
  WEFT_TRY(expect(worlds.front(), "world.7"));

  std::vector<weft::NodeInfo> others = bob.nodes();
  if (others.empty()) {
    others = WEFT_TRY(bob.watch_nodes({}, weft::sys::now() + 5s));
  }
  return expect(others.front().node, "ann");
}

// --- sessions of a server ---

using Lines = weft::serve::DelimiterCodec;
constexpr weft::serve::GroupId kRoom{7};

struct Listener {
  void on_open(weft::serve::SessionOf<Lines>& session) {
    (void)session.join(kRoom);
    (void)session.send({}, weft::as_bytes("welcome"));
  }
  void on_frame(weft::serve::SessionOf<Lines>& /*session*/, const weft::serve::BodyFrame& /*frame*/) {}
};

weft::rt::Task<weft::Result<void>> forward_room(weft::rt::Core* core, weft::Context* context,
                                                weft::serve::Server* server) {
  weft::TopicsOptions options;
  options.fleet = "inproc:rooms";
  weft::Result<weft::AsyncTopics> topics = co_await weft::AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  // One subscription, and one frame for all sessions of the group, on every core.
  const auto forwarding = topics->forward("room.7.>", *server, kRoom, [](const weft::TopicMessage& message) {
    return weft::serve::SharedFrame::encode(Lines(), {}, message.body());
  });
  if (!forwarding) {
    co_return forwarding.error();
  }
  (void)co_await weft::rt::sleep(1h);  // until the task is cancelled
  co_return weft::Result<void>();
}

// A client of the server that reads lines.
class Reader {
 public:
  static weft::Result<Reader> connect(const std::string& endpoint) {
    weft::net::Dialer dialer(WEFT_TRY(weft::net::parse_endpoint(endpoint, false)), {});
    for (auto progress = WEFT_TRY(dialer.begin()); progress != weft::net::Progress::connected;) {
      weft::sys::PollFd polled{.fd = dialer.fd(), .want = weft::sys::Interest::writable};
      WEFT_TRY(weft::sys::poll_fds({&polled, 1}, 20s));
      progress = WEFT_TRY(dialer.finish());
    }
    return Reader(dialer.take_stream());
  }
  weft::Result<void> say(std::string line) {
    line += '\n';
    weft::Bytes bytes = weft::as_bytes(line);
    return stream_->write({&bytes, 1}).bytes == line.size() ? weft::Result<void>() : weft::Errc::connection_closed;
  }
  weft::Result<std::string> line() {
    while (input_.find('\n') == std::string::npos) {
      weft::sys::PollFd polled{.fd = stream_->fd(), .want = weft::sys::Interest::readable};
      if (WEFT_TRY(weft::sys::poll_fds({&polled, 1}, 20s)) == 0) {
        return weft::Errc::timed_out;
      }
      std::uint8_t bytes[256];
      weft::MutableBytes into(bytes);
      input_.append(weft::as_text(weft::Bytes(bytes).first(stream_->read({&into, 1}).bytes)));
    }
    const std::string line = input_.substr(0, input_.find('\n'));
    input_.erase(0, line.size() + 1);
    return line;
  }

 private:
  explicit Reader(std::unique_ptr<weft::net::ByteStream> stream) : stream_(std::move(stream)) {}
  std::unique_ptr<weft::net::ByteStream> stream_;
  std::string input_;
};

weft::Result<void> to_sessions(weft::Context& context) {
  weft::rt::RuntimeOptions cores;
  cores.cores = 2;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(cores));
  const auto server = WEFT_TRY(weft::serve::Server::make(*runtime));
  const std::string endpoint =
      WEFT_TRY(server->listen<Lines>("tcp://127.0.0.1:0", {}, [] { return Listener(); }, Lines()));
  const auto stop = std::make_unique<std::stop_source>();  // not on the stack: GCC 12 warns in vain
  auto forwarding = WEFT_TRY(
      weft::rt::spawn(runtime->core(0), forward_room(&runtime->core(0), &context, server.get()), stop->get_token()));

  Reader client = WEFT_TRY(Reader::connect(endpoint));
  const std::string welcome = WEFT_TRY(client.line());
  WEFT_TRY(expect(welcome, "welcome"));
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, {.fleet = "inproc:rooms"}));
  weft::Publisher ann = WEFT_TRY(topics.publisher("room.7.ann"));
  WEFT_TRY(ann.wait_subscribers(1, soon()));
  WEFT_TRY(ann.publish("hello"));
  const std::string said = WEFT_TRY(client.line());
  WEFT_TRY(expect(said, "hello"));
  stop->request_stop();
  WEFT_TRY(forwarding.get());
  return server->stop(soon());
}

// --- one session of a server ---

// The topics of each core's sessions, which the core's thread alone uses.
using OfCores = std::array<std::optional<weft::SessionTopics>, 2>;

struct Greeter {
  OfCores* of_cores;

  void on_open(weft::serve::SessionOf<Lines>& /*session*/) {}
  // The client sends the name of its user: a real server checks a password first.
  void on_frame(weft::serve::SessionOf<Lines>& session, const weft::serve::BodyFrame& frame) {
    auto& topics = of_cores->at(session.id().core());
    const auto added = topics ? topics->add("user." + std::string(weft::as_text(frame.body)), session.id())
                              : weft::Result<void>(weft::Errc::closed);
    (void)session.send({}, weft::as_bytes(added ? "you are here" : "come later"));
  }
  void on_close(weft::serve::SessionOf<Lines>& session, const weft::Error& /*why*/) {
    if (auto& topics = of_cores->at(session.id().core())) {
      topics->remove_all(session.id());
    }
  }
};

// One of these on each core that has sessions.
weft::rt::Task<weft::Result<void>> reach_sessions(weft::rt::Core* core, weft::Context* context,
                                                  weft::serve::Server* server, OfCores* of_cores) {
  weft::TopicsOptions options;
  options.fleet = "inproc:users";
  weft::Result<weft::AsyncTopics> topics = co_await weft::AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  auto of_sessions = topics->session_topics(*server, [](const weft::TopicMessage& message) {
    return weft::serve::SharedFrame::encode(Lines(), {}, message.body());
  });
  if (!of_sessions) {
    co_return of_sessions.error();
  }
  of_cores->at(core->index()) = *std::move(of_sessions);
  (void)co_await weft::rt::sleep(1h);  // until the task is cancelled
  of_cores->at(core->index()).reset();
  co_return weft::Result<void>();
}

// Any process of the fleet.
weft::Result<void> whisper(weft::Context& context) {
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, {.fleet = "inproc:users"}));
  weft::Publisher user = WEFT_TRY(topics.publisher("user.42"));
  WEFT_TRY(user.wait_subscribers(1, soon()));
  return user.publish("for your eyes only");
}
weft::Result<void> be_user(weft::Context& context, const std::string& endpoint) {
  Reader client = WEFT_TRY(Reader::connect(endpoint));
  std::string answer;
  while (answer != "you are here") {
    WEFT_TRY(client.say("42"));
    answer = WEFT_TRY(client.line());
  }
  WEFT_TRY(whisper(context));
  const std::string whispered = WEFT_TRY(client.line());
  return expect(whispered, "for your eyes only");
}

weft::Result<void> to_one_session(weft::Context& context) {
  weft::rt::RuntimeOptions cores;
  cores.cores = 2;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(cores));
  const auto server = WEFT_TRY(weft::serve::Server::make(*runtime));
  OfCores of_cores;
  const std::string endpoint =
      WEFT_TRY(server->listen<Lines>("tcp://127.0.0.1:0", {}, [&] { return Greeter{&of_cores}; }, Lines()));
  std::stop_source stop;
  const auto reach = [&](unsigned core) {
    weft::rt::Core* const of = &runtime->core(core);
    return weft::rt::spawn(*of, reach_sessions(of, &context, server.get(), &of_cores), stop.get_token());
  };
  auto first = WEFT_TRY(reach(0));
  auto second = WEFT_TRY(reach(1));
  const auto done = be_user(context, endpoint);
  stop.request_stop();
  WEFT_TRY(first.get());
  WEFT_TRY(second.get());
  WEFT_TRY(server->stop(soon()));
  return done;
}

// --- kept topics ---

weft::Result<void> keep(weft::Context& context) {
  weft::TopicsOptions options;
  options.runtime_directory = directory;
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, options));

  weft::Stream orders = WEFT_TRY(topics.stream({.name = "orders", .topics = {"orders.>", "dead.>"}}));
  const weft::Published kept = WEFT_TRY(orders.publish("orders.eu", "a chair"));  // on the disk
  WEFT_TRY(expect(std::to_string(kept.sequence), "1"));

  // The caller's own id makes a publish that is tried again one message.
  WEFT_TRY(orders.publish("orders.eu", "a table", {.id = "17"}));
  const weft::Published again = WEFT_TRY(orders.publish("orders.eu", "a table", {.id = "17"}));
  WEFT_TRY(expect(again.duplicate ? "stored before" : "stored", "stored before"));

  // Many under way: the call waits for a place, wait() for the answer.
  std::vector<weft::PendingPublish> pending;
  for (int i = 0; i < 100; ++i) {
    pending.push_back(WEFT_TRY(orders.publish_later("orders.us", std::to_string(i))));
  }
  for (weft::PendingPublish& each : pending) {
    WEFT_TRY(each.wait());
  }

  // From the beginning, in order; then the new ones.
  weft::Reader reader = WEFT_TRY(orders.read({.filter = "orders.eu"}));
  const weft::KeptMessage oldest = WEFT_TRY(reader.next());
  WEFT_TRY(expect(oldest.text(), "a chair"));
  return expect(WEFT_TRY(reader.next()).text(), "a table");
}

weft::Result<void> consume(weft::Topics& topics) {
  weft::Stream orders = WEFT_TRY(topics.stream({.name = "orders", .topics = {"orders.>", "dead.>"}}));
  weft::ConsumerOptions how;
  how.filter = "orders.eu";
  how.ack_wait = 30s;              // from next() on: a silent member loses the message after this time
  how.tries_max = 3;               // then the message is a dead letter
  how.retry_waits = {10ms, 50ms};  // after a refusal
  how.dead_letters = "dead.orders";
  weft::Consumer billing = WEFT_TRY(orders.consumer("billing", how));

  weft::Delivery chair = WEFT_TRY(billing.next_until(soon()));
  WEFT_TRY(expect(chair.text(), "a chair"));
  chair.ack();  // gathered; ack_confirmed() waits until the acknowledgement itself is kept

  for (int tries = 0; tries < 3; ++tries) {
    weft::Delivery table = WEFT_TRY(billing.next_until(soon()));
    WEFT_TRY(expect(table.text(), "a table"));
    table.retry();
  }
  weft::Reader dead = WEFT_TRY(orders.read({.filter = "dead.>"}));
  return expect(WEFT_TRY(dead.next_until(soon())).text(), "a table");
}

weft::Result<void> keys_and_values(weft::Topics& topics) {
  weft::KeyValue config = WEFT_TRY(topics.key_value("config", {.history = 5}));
  weft::KeyValueWatch watch = WEFT_TRY(config.watch("db.*"));

  const std::uint64_t first = WEFT_TRY(config.put("db.host", "alpha"));
  WEFT_TRY(config.update("db.host", "beta", first));  // conflict, if another program changed it since
  const weft::KeyValueEntry value = WEFT_TRY(config.value("db.host"));
  WEFT_TRY(expect(value.text(), "beta"));
  const auto taken = config.create("db.host", "gamma");  // conflict: it has a value
  WEFT_TRY(expect(taken ? "made" : "taken", "taken"));

  std::string newest;
  while (newest != "beta") {
    newest = WEFT_TRY(watch.next_until(soon())).text();  // a value that was replaced meanwhile may be left out
  }
  return {};
}

weft::Result<void> run() {
  weft::Context context;
  weft::TopicsOptions options;
  options.runtime_directory = directory;
  weft::Topics topics = WEFT_TRY(weft::Topics::open(context, options));
  const auto step = [](const char* name, weft::Result<void> result) {
    std::printf("%s%s\n", name, result ? "" : ": failed");
    return result;
  };
  WEFT_TRY(step("in a process", in_a_process(context)));
  WEFT_TRY(step("on a host", on_a_host(context)));
  WEFT_TRY(step("between hosts", between_hosts(context)));
  WEFT_TRY(step("filters", filters(topics)));
  WEFT_TRY(step("a slow subscriber", slow_subscriber(topics)));
  WEFT_TRY(step("requests", requests(topics)));
  WEFT_TRY(step("owners and presence", owners(context)));
  WEFT_TRY(step("to the sessions of a server", to_sessions(context)));
  WEFT_TRY(step("to one session", to_one_session(context)));
  const auto kept = keep(context);
  if (!kept && kept.error() == weft::Errc::not_supported) {
    std::printf("kept topics: %s\n", kept.error().message().c_str());
    return {};
  }
  WEFT_TRY(step("kept topics", kept));
  WEFT_TRY(step("a consumer", consume(topics)));
  return step("keys and values", keys_and_values(topics));
}

}  // namespace

int main() {
  char made[] = "/tmp/weft-topics-XXXXXX";
  if (::mkdtemp(made) == nullptr) {
    std::perror("topics");
    return 1;
  }
  directory = made;
  const auto result = run();
  std::filesystem::remove_all(directory);
  if (!result) {
    std::fprintf(stderr, "topics: %s\n", result.error().message().c_str());
    return 1;
  }
}
