// SPDX-License-Identifier: MIT
// A program for metrics_test.py with one of each thing that counts, and traffic through all of them. Prints the
// endpoint of its admin port and waits for the end of its input. With --tables: prints the tables of counters for
// docs/metrics.md. With --token TOKEN: the admin port has this token.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/logging/log.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/client_pool.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/rpc/balanced_client.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/udp/datagram_server.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/serve/web_client/websocket_client.h"
#include "weft/serve/web_client/websocket_client_counts.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/hub/counters.h"
#include "weft/topic/topics.h"
#include "weft/trace/tracer.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using Session = serve::SessionOf<serve::HeaderCodec>;
using Client = serve::Client<serve::HeaderCodec>;
using Pool = serve::ClientPool<serve::HeaderCodec>;

constexpr const CounterTable* kTables[] = {&kSocketTable,
                                           &serve::kServerTable,
                                           &serve::kClientTable,
                                           &serve::kClientPoolTable,
                                           &serve::kClientHostTable,
                                           &serve::kDispatchTable,
                                           &serve::rpc::kBalancedTable,
                                           &serve::rpc::kRpcTable,
                                           &serve::kHealthTable,
                                           &serve::kAdminTable,
                                           &serve::kDatagramTable,
                                           &trace::kTraceTable,
                                           &logging::kLogTable,
                                           &serve::web::kWebTable,
                                           &serve::web::kHttpClientTable,
                                           &serve::web::kWebSocketClientTable,
                                           &serve::kListenerTable,
                                           &rt::kRuntimeTable,
                                           &rt::kCoreTable,
                                           &rt::kCoreTurnTable,
                                           &rt::kExecutorTable,
                                           &rt::kEventBusTable,
                                           &kTopicsTable,
                                           &kKeptTable,
                                           &topic::kHubTable};

constexpr const sync::DurationRow* kHistograms[] = {&rt::kCoreLagRow, &serve::web::kHandlerTimesRow,
                                                    &serve::kDispatchTimesRow, &serve::rpc::kRpcTimesRow};

std::string text(std::string_view view) { return std::string(view); }

void print_histograms() {
  std::printf("\n### Histograms\n\n");
  std::printf("Of durations: a bucket for each power of two of nanoseconds from 2^10 to 2^34, which is 17 s.\n\n");
  std::printf("| metric | kind | unit | meaning | labels | measured in |\n|---|---|---|---|---|---|\n");
  for (const sync::DurationRow* row : kHistograms) {
    const std::size_t slash = row->where.rfind('/');
    std::printf("| `weft_%s_%s` | histogram | seconds | %s | `%s` | [%s](../weft/%s) |\n", text(row->thing).c_str(),
                text(row->metric).c_str(), text(row->help).c_str(), text(row->labels).c_str(),
                text(row->where.substr(slash + 1)).c_str(), text(row->where).c_str());
  }
}

void print_tables() {
  for (const CounterTable* table : kTables) {
    std::printf("\n### `weft_%s_…`\n\n%s\n\n", text(table->thing).c_str(), text(table->help).c_str());
    std::printf("| metric | kind | unit | meaning | in C++ | counted in |\n|---|---|---|---|---|---|\n");
    for (const CounterRow& row : table->rows) {
      std::string metric = "weft_" + text(table->thing) + "_" + text(row.metric);
      if (!row.label.empty()) {
        metric += "{" + text(row.label) + "=\"" + text(row.label_value) + "\"}";
      }
      const std::size_t slash = row.where.rfind('/');
      std::printf("| `%s` | %s | %s | %s | `%s` | [%s](../weft/%s) |\n", metric.c_str(),
                  row.kind == CounterKind::counter ? "counter" : "gauge", text(row.unit).c_str(),
                  text(row.help).c_str(), text(row.member).c_str(), text(row.where.substr(slash + 1)).c_str(),
                  text(row.where).c_str());
    }
  }
  print_histograms();
}

using Ping = serve::rpc::Method<"ping", serve::rpc::Empty, serve::rpc::Empty>;

rt::Task<Result<void>> ping(std::string endpoint) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::rpc::Client::open(host, endpoint));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 30s));
  WEFT_CO_TRY(co_await client->call<Ping>(serve::rpc::Empty()));
  co_return co_await client->close(sys::now() + 30s);
}

constexpr std::uint32_t kEcho = 1;
constexpr std::uint32_t kSilence = 2;  // the server never answers it

// Answers kEcho. run() shares the dispatchers of all cores, so that it can add them to the page.
struct Echo {
  serve::Dispatcher<Session> dispatcher;

  Echo() {
    dispatcher.time_handlers();
    (void)dispatcher.on(kEcho, [](Session& session, const serve::HeaderCodec::Frame& frame) {
      (void)session.send(frame.header, frame.body);
    });
    (void)dispatcher.on(kSilence, [](Session& /*session*/, const serve::HeaderCodec::Frame& /*frame*/) {});
  }
  void on_frame(Session& session, const serve::HeaderCodec::Frame& frame) { dispatcher.dispatch(session, frame); }
};

// Two sockets: five messages from `orders` to `desk`, and one from `desk` to a peer that does not exist.
Result<void> talk(Socket& orders, Socket& desk) {
  const std::string endpoint = WEFT_TRY(desk.bind("tcp://127.0.0.1:0"));
  WEFT_TRY(orders.connect(endpoint));
  for (int i = 0; i < 5; ++i) {
    WEFT_TRY(orders.send("order"));
    (void)WEFT_TRY(desk.recv_all());
  }
  WEFT_TRY(desk.send("nobody", More::yes));
  return desk.send("is dropped");
}

struct Asking {
  std::shared_ptr<serve::ClientHost> host;
  std::unique_ptr<Client> client;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<serve::rpc::BalancedClient> balanced;
};

// A client sends three requests that are answered and one that is not; a pool sends two that are answered.
rt::Task<Result<void>> ask(Asking* asking, std::string endpoint) {
  asking->host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  serve::ClientOptions patient;
  patient.late_max = Duration(-1);  // one request has no answer, and the connection stays until the page was read
  auto client = Client::open(asking->host, endpoint, patient);
  serve::PoolOptions options;
  options.connections = 2;
  options.breaker.emplace();
  auto pool = Pool::open(asking->host, endpoint, options);
  auto balanced = serve::rpc::BalancedClient::open(asking->host, {"ipc:///nowhere/at/all"});
  if (!client || !pool || !balanced) {
    co_return !client ? client.error() : !pool ? pool.error() : balanced.error();
  }
  asking->balanced = std::move(*balanced);
  asking->client = std::move(*client);
  asking->pool = std::move(*pool);
  const auto connected = co_await asking->client->connected(sys::now() + 30s);
  if (!connected) {
    co_return connected;
  }
  for (int i = 0; i < 3; ++i) {
    const auto answer = co_await asking->client->request({kEcho, 0}, as_bytes("hello"), sys::now() + 30s);
    if (!answer) {
      co_return answer.error();
    }
  }
  const auto silence = co_await asking->client->request({kSilence, 0}, as_bytes("hello"), sys::now() + 1ms);
  if (silence) {
    co_return Error(Errc::protocol_error, "silence was answered");
  }
  for (int i = 0; i < 2; ++i) {
    const auto answer = co_await asking->pool->request({kEcho, 0}, as_bytes("hello"), sys::now() + 30s);
    if (!answer) {
      co_return answer.error();
    }
  }
  co_return Result<void>();
}

struct Browsing {
  std::unique_ptr<serve::web::HttpClient> http;
  std::unique_ptr<serve::web::WebSocketClient> feed;
};

// A client with one request, and a WebSocket without a message.
rt::Task<Result<void>> browse(Browsing* browsing, std::string authority) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  auto http = serve::web::HttpClient::open(host);
  auto feed = co_await serve::web::WebSocketClient::connect(host, "ws://" + authority + "/feed");
  if (!http || !feed) {
    co_return http ? feed.error() : http.error();
  }
  const auto answer = co_await (*http)->get("http://" + authority + "/hello");
  if (!answer) {
    co_return answer.error();
  }
  browsing->http = std::move(*http);
  browsing->feed = std::move(*feed);
  co_return Result<void>();
}

// Prints where the page is, and waits for the end of the input.
void show(const serve::Admin& admin) {
  std::printf("%s\n", admin.endpoint().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

// A handle that hosts the hub of its fleet: two messages are stored, and one of them is a volatile one, too.
Result<void> keep(Topics& topics, Subscription& heard) {
  Stream orders = WEFT_TRY(topics.stream({.name = "orders", .survives = Survives::process}));
  WEFT_TRY(orders.publish("orders.eu", "first"));
  WEFT_TRY(orders.publish("orders.us", "second"));
  WEFT_TRY(heard.next_until(sys::now() + 30s));
  return {};
}

Result<void> run(const std::string& token, const net::TlsServerOptions& tls) {
  rt::RuntimeOptions two;
  two.cores = 2;
  const auto runtime = WEFT_TRY(rt::Runtime::start(two));
  WEFT_TRY(runtime->post(1, [] {}));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  std::mutex mutex;
  std::vector<std::shared_ptr<Echo>> echoes;
  const std::string endpoint = WEFT_TRY(server->listen<serve::HeaderCodec>("tcp://127.0.0.1:0", {}, [&] {
    struct Shared {
      std::shared_ptr<Echo> echo = std::make_shared<Echo>();
      void on_frame(Session& session, const serve::HeaderCodec::Frame& frame) { echo->on_frame(session, frame); }
    } service;
    const std::lock_guard lock(mutex);
    echoes.push_back(service.echo);
    return service;
  }));

  serve::AdminOptions options;
  options.scrapes = {1'000, 1'000};  // weft top asks it fifty times a second
  options.servers.push_back({"echo", server.get()});
  options.token = token;
  if (!tls.certificate_file.empty()) {
    options.tls = WEFT_TRY(net::TlsServer::make(tls));
  }
  serve::HealthCheck check;
  check.name = "db";
  check.run = [] { return serve::HealthResult{}; };
  options.health = WEFT_TRY(serve::HealthChecks::start({std::move(check)}));
  const auto admin = WEFT_TRY(serve::Admin::make(*runtime, std::move(options)));

  Context context;
  Socket orders = WEFT_TRY(context.socket(SocketType::dealer));
  Socket desk = WEFT_TRY(context.socket(SocketType::router));
  WEFT_TRY(talk(orders, desk));
  admin->add("orders", orders);
  admin->add("desk", desk);
  {
    Socket closed = WEFT_TRY(context.socket(SocketType::pull));
    admin->add("gone", closed);
  }

  Asking asking;
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), ask(&asking, endpoint)).get());
  admin->add("asking", *asking.client);
  admin->add("pool", *asking.pool);
  admin->add("balanced", *asking.balanced);
  admin->add("host", *asking.host);
  for (const auto& echo : echoes) {
    admin->add("echo", echo->dispatcher);
  }

  serve::web::Router routes;
  WEFT_TRY(routes.websocket("/feed", [](serve::web::WebSocketSession&, const serve::web::Message&) {}));
  WEFT_TRY(routes.get("/hello", [] { return "hello"; }));
  const serve::web::Site site{std::move(routes)};
  admin->add("shop", site);
  const auto shop = WEFT_TRY(serve::Server::make(*runtime));
  const std::string shop_at =
      WEFT_TRY(shop->listen<serve::web::HttpCodec>("tcp://127.0.0.1:0", {}, site.services(), site.codec()));
  Browsing browsing;
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), browse(&browsing, shop_at.substr(6))).get());
  admin->add("browser", *browsing.http);
  admin->add("feed", *browsing.feed);

  serve::rpc::Methods methods;
  WEFT_TRY(methods.add<Ping>([] {}));
  serve::rpc::ServiceOptions timed;
  timed.time_handlers = true;
  const serve::rpc::Service calls(std::move(methods), timed);
  admin->add("calls", calls);
  const std::string calls_at = WEFT_TRY(serve::rpc::listen(*shop, "tcp://127.0.0.1:0", calls));
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), ping(calls_at)).get());

  struct Ignore {
    void on_datagram(serve::DatagramSession& /*session*/, Bytes /*payload*/) {}
  };
  const auto game =
      WEFT_TRY(serve::DatagramServer::open(*runtime, "udp://127.0.0.1:0", {}, [](rt::Core&) { return Ignore(); }));
  admin->add("game", *game);

  trace::TracerOptions tracing;
  tracing.service = "shop";
  tracing.queue_spans = 2;
  const auto tracer = WEFT_TRY(trace::Tracer::make(tracing));
  for (int i = 0; i < 3; ++i) {
    (void)tracer->start("span");
  }
  admin->add("shop", *tracer);

  logging::LogOptions log_options;
  log_options.settings.file = "/dev/null";
  const auto log = WEFT_TRY(logging::Log::make(log_options));
  const logging::Logger logger = WEFT_TRY(log->logger("shop"));
  logger.info("opened");
  logger.debug("below its level");
  WEFT_TRY(log->flush_until(sys::now() + 30s));
  admin->add("shop", *log);

  const auto workers = WEFT_TRY(rt::ThreadPool::make_fixed(1));
  for (int i = 0; i < 4; ++i) {
    WEFT_TRY(workers->submit([] { return 0; }).get());
  }
  admin->add("workers", *workers);

  rt::EventBus bus;
  const auto subscription = WEFT_TRY(bus.subscribe<int>([](const int& /*event*/) {}));
  admin->add("news", bus);
  const auto spare = WEFT_TRY(rt::ThreadPool::make_fixed(1));
  admin->add("spare", *spare);
  if (admin->remove("spare") != 1) {
    return Error(Errc::protocol_error, "what was added cannot be removed");
  }

  TopicsOptions fleet;
  fleet.runtime_directory = WEFT_TRY(sys::make_private_directory());
  {
    Topics topics = WEFT_TRY(Topics::open(context, fleet));
    Subscription heard = WEFT_TRY(topics.subscribe("orders.eu"));
    const Result<void> kept = keep(topics, heard);
    admin->add("fleet", topics);
    if (kept) {
      show(*admin);
    }
    topics.close();
    std::filesystem::remove_all(fleet.runtime_directory);
    WEFT_TRY(kept);
  }
  (void)admin->stop(Instant());
  asking = {};
  (void)server->stop(Instant());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--tables") {
    print_tables();
    return 0;
  }
  net::TlsServerOptions tls;
  if (argc >= 5) {
    tls.certificate_file = argv[3];
    tls.key_file = argv[4];
  }
  if (argc == 6) {
    tls.client_ca_file = argv[5];
  }
  if (const auto result = run(argc >= 3 ? argv[2] : "", tls); !result) {
    std::fprintf(stderr, "metrics_side: %s\n", result.error().message().c_str());
    return result.error() == Errc::not_supported ? 77 : 1;
  }
}
