// SPDX-License-Identifier: MIT
#include "weft/serve/server/admin.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/net/http/field.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/inspect/access.h"
#include "weft/serve/inspect/admin_page.h"
#include "weft/serve/inspect/core_health.h"
#include "weft/serve/inspect/debug_html.h"
#include "weft/serve/inspect/debug_pages.h"
#include "weft/serve/inspect/session_survey.h"
#include "weft/serve/web/answer.h"
#include "weft/serve/web/date.h"
#include "weft/serve/web/http_codec.h"
#include "weft/sys/clock.h"

namespace weft::serve {

namespace {

constexpr Error kNotRemote(Errc::invalid_argument,
                           "an admin port that other machines reach needs AdminOptions::remote, tls and token");
constexpr Error kNoTls(Errc::invalid_argument,
                       "an admin port that other machines reach needs TLS: AdminOptions::tls is null");
constexpr Error kNoToken(Errc::invalid_argument,
                         "an admin port that other machines reach needs a token: AdminOptions::token is empty");

// Whether the port may listen there.
Result<void> check_access(const AdminOptions& options) {
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(options.endpoint, true));
  if (!options.token.empty()) {
    WEFT_TRY(check_admin_token(options.token));
  }
  WEFT_TRY(check_admin_hosts(options.hosts));
  if (!reached_from_afar(endpoint)) {
    return {};
  }
  return !options.remote          ? Result<void>(kNotRemote)
         : options.tls == nullptr ? Result<void>(kNoTls)
         : options.token.empty()  ? Result<void>(kNoToken)
                                  : Result<void>();
}

// A browser's page has no token, and does not reach ipc.
bool takes_any_host(const AdminOptions& options) {
  const auto endpoint = net::parse_endpoint(options.endpoint, true);
  const bool tcp = endpoint && endpoint->transport == net::Transport::tcp;
  return options.hosts.empty() && (!tcp || !options.token.empty());
}

constexpr Duration kHealthStep =
    std::chrono::milliseconds(1);  // the first wait for answers; each further one is twice it
constexpr Duration kHealthStepMax = std::chrono::milliseconds(20);

struct Shared {
  std::shared_ptr<const MetricSources> sources;
  AdminOptions options;
  std::vector<std::shared_ptr<CoreHealth>> health;  // of each runtime
  std::vector<InspectedServer> servers;
  bool any_host = false;
  std::shared_ptr<AdminCounters> counts;  // the core of the port counts
};

class AdminService {
 public:
  using HttpSession = web::HttpSession;

  AdminService(std::shared_ptr<const Shared> shared, rt::Core& core) : shared_(std::move(shared)), core_(core) {}

  // Polite connections that stay do not keep others out: the one that was idle for the longest time makes room.
  void on_open(HttpSession& session) {
    peers_.push_back({&session, core_.loop().now(), false});
    if (peers_.size() <= shared_->options.connections_max) {
      return;
    }
    const auto idlest = std::min_element(peers_.begin(), peers_.end() - 1, [](const Peer& a, const Peer& b) {
      return a.asking != b.asking ? b.asking : a.active < b.active;
    });
    const bool none = idlest == peers_.end() - 1 || idlest->asking;
    (none ? session : *idlest->session).abort();
    peers_.erase(none ? peers_.end() - 1 : idlest);
  }

  void on_frame(HttpSession& session, const web::HttpFrame& frame) {
    const web::HttpRequest& request = frame.header;
    web::Answer answer = web::Answer::to(request);
    // no handler takes a body that was requested
    answer.keep_alive = answer.keep_alive && request.part == web::Part::whole;
    note_active(session, false);
    unsigned refusal = refusal_of(request);
    const AdminPage page = page_of(request.head.path);
    const auto query = SessionsQuery::parse(page == AdminPage::sessions ? request.head.query : std::string_view());
    if (refusal == 0 && !query) {
      return send(session, answer, web::Response(400, query.error().message() + "\n"));
    }
    if (refusal == 0 && is_debug(page) && !looks_.try_take(shared_->options.looks, core_.loop().now())) {
      shared_->counts->rate.add();
      refusal = 429;
    }
    if (refusal != 0 || !asks_cores(page)) {
      return send(session, answer, refusal != 0 ? refusal_response(refusal) : response_to(page));
    }
    note_active(session, true);
    session.pause_reading();  // answers leave in the order of the requests
    session.begin_reply();
    if (!session.spawn(answer_later(session, answer, page, *query))) {
      session.end_reply();
      session.resume_reading();
      send(session, answer, web::status_response(500));
    }
  }

  void on_close(HttpSession& session, const Error& /*why*/) {
    std::erase_if(peers_, [&session](const Peer& peer) { return peer.session == &session; });
  }

 private:
  struct Peer {
    HttpSession* session;
    Instant active;  // the last request, or the beginning
    bool asking;     // its answer is not ready
  };

  void note_active(const HttpSession& session, bool asking) noexcept {
    for (Peer& peer : peers_) {
      if (peer.session == &session) {
        peer.active = core_.loop().now();
        peer.asking = asking;
      }
    }
  }

  // The status that refuses the request, which is counted; 0: it is answered.
  [[nodiscard]] unsigned refusal_of(const web::HttpRequest& request) const {
    if (request.refusal != net::http::HttpRefusal::none) {
      return net::http::status_of(request.refusal);
    }
    const AdminPage page = page_of(request.head.path);
    const AdminOptions& options = shared_->options;
    AdminCounters& counts = *shared_->counts;
    if (!shared_->any_host && !is_admin_host(request.head.host, options.hosts)) {
      counts.host.add();
      return 421;
    }
    const bool shown = page != AdminPage::none && (options.debug_pages || !is_debug(page));
    if (!options.token.empty() && (page != AdminPage::debug || !shown) &&  // which has no data, and asks for the token
        !bears_token(net::http::find_field(request.head.fields, "Authorization").value_or(""), options.token)) {
      counts.token.add();
      return 401;
    }
    if (!shown) {
      return 404;
    }
    return request.head.method == "GET" || request.head.is_head() ? 0 : 405;
  }

  // Asks the cores, and answers when they have, or after the timeout.
  rt::Task<> answer_later(HttpSession& session, web::Answer answer, AdminPage page, SessionsQuery query) {
    std::optional<OneAtATime> alone;
    while (page == AdminPage::sessions && surveys_) {
      const auto slept = co_await rt::sleep(kHealthStepMax);
      if (!slept) {
        co_return;
      }
    }
    if (page == AdminPage::sessions) {
      alone.emplace(surveys_);
    }
    ask(page, query);
    // The first step also lets a core answer that was late when it was asked before.
    Duration timeout = Duration::max();
    for (Duration step = kHealthStep; waits(page, timeout); step = std::min(2 * step, kHealthStepMax)) {
      const auto slept = co_await rt::sleep(step);
      if (!slept) {
        co_return;
      }
      timeout = shared_->options.health_timeout;
    }
    note_active(session, false);
    send(session, answer, response_after(page, query));
    session.resume_reading();
    session.end_reply();
  }

  // While one request has it, others wait: each server has one survey of its sessions at a time.
  class OneAtATime {
   public:
    explicit OneAtATime(bool& taken) noexcept : taken_(taken) { taken_ = true; }
    OneAtATime(const OneAtATime&) = delete;
    OneAtATime& operator=(const OneAtATime&) = delete;
    ~OneAtATime() { taken_ = false; }

   private:
    bool& taken_;
  };

  void ask(AdminPage page, const SessionsQuery& query) const {
    const Instant now = sys::now();
    if (page != AdminPage::sessions) {
      for (const auto& cores : shared_->health) {
        cores->ask(now);
      }
      return;
    }
    for (const InspectedServer& server : shared_->servers) {
      if (query.takes(server)) {
        server.survey->ask(now, server.epoch(), query.order, query.limit);
      }
    }
  }

  [[nodiscard]] bool waits(AdminPage page, Duration timeout) const noexcept {
    const Instant now = sys::now();
    if (page == AdminPage::sessions) {
      return std::any_of(shared_->servers.begin(), shared_->servers.end(),
                         [=](const InspectedServer& server) { return server.survey->waits(now, timeout); });
    }
    return std::any_of(shared_->health.begin(), shared_->health.end(),
                       [=](const auto& cores) { return cores->waits(now, timeout); });
  }

  web::Response response_after(AdminPage page, const SessionsQuery& query) const {
    try {
      return page == AdminPage::health  ? health()
             : page == AdminPage::cores ? json(cores_page(shared_->health, shared_->servers, sys::now()))
                                        : json(sessions_page(shared_->servers, query, sys::now()));
    } catch (...) {  // no memory
      return web::status_response(500);
    }
  }

  static web::Response json(std::string text) {
    web::Response response(std::move(text), "application/json");
    response.set("Cache-Control", "no-store");
    return response;
  }

  [[nodiscard]] web::Response health() const {
    std::string complaints;
    for (const auto& cores : shared_->health) {
      complaints += cores->complaints(sys::now());
    }
    if (shared_->options.health != nullptr) {
      complaints += shared_->options.health->complaints(true);
    }
    return complaints.empty() ? web::Response("alive\n") : web::Response(503, "not alive\n" + complaints);
  }

  void send(HttpSession& session, const web::Answer& answer, const web::Response& response) {
    if (!web::send_response(session, answer, response, date_.text(core_.loop().now()))) {
      session.close();
    }
  }

  static web::Response refusal_response(unsigned refusal) {
    if (refusal == 421) {
      return {421,
              "421 Misdirected Request: this port is 127.0.0.1, [::1], localhost, or a name of AdminOptions::hosts\n"};
    }
    web::Response response = web::status_response(refusal);
    if (refusal == 405) {
      response.set("Allow", "GET, HEAD");
    }
    if (refusal == 401) {
      response.set("WWW-Authenticate", "Bearer realm=\"admin\"");
    }
    return response;
  }

  // For a page that asks no core.
  web::Response response_to(AdminPage page) {
    try {
      switch (page) {
        case AdminPage::metrics: return metrics();
        case AdminPage::debug: return debug();
        case AdminPage::traces:
          return json(traces_page(*shared_->sources, core_.loop().now(), sys::wall_now().time_since_epoch().count()));
        case AdminPage::handlers: return json(handlers_page(*shared_->sources, core_.loop().now()));
        default: return readiness();
      }
    } catch (...) {  // a function of the program threw, or no memory
      return web::status_response(500);
    }
  }

  static web::Response debug() {
    web::Response response(std::string(kDebugPage), "text/html; charset=utf-8");
    response.set("Content-Security-Policy", kDebugPolicy);
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Cache-Control", "no-store");
    return response;
  }

  web::Response metrics() {
    if (!scrapes_.try_take(shared_->options.scrapes, core_.loop().now())) {
      shared_->counts->rate.add();
      return web::status_response(429);
    }
    PrometheusWriter writer;
    shared_->sources->write(writer);
    if (shared_->options.metrics) {
      shared_->options.metrics(writer);
    }
    return {std::string(writer.text()), PrometheusWriter::kContentType};
  }

  web::Response readiness() {
    std::string reasons;
    for (const NamedServer& named : shared_->options.servers) {
      add_reason(named.name, named.server->ready(), reasons);
    }
    if (shared_->options.ready) {
      add_reason("", shared_->options.ready(), reasons);
    }
    std::string remarks;
    if (shared_->options.health != nullptr) {
      reasons += shared_->options.health->complaints(false);
      remarks = shared_->options.health->remarks();
    }
    return reasons.empty() ? web::Response("ready\n" + remarks) : web::Response(503, "not ready\n" + reasons + remarks);
  }
  static void add_reason(const std::string& name, const Result<void>& ready, std::string& reasons) {
    if (!ready) {
      reasons += name.empty() ? name : name + ": ";
      reasons += ready.error().message() + "\n";
    }
  }

  std::shared_ptr<const Shared> shared_;
  rt::Core& core_;
  net::TokenBucket scrapes_;
  net::TokenBucket looks_;
  bool surveys_ = false;  // a request asks for sessions
  web::DateClock date_;
  std::vector<Peer> peers_;  // those that are open
};

std::vector<std::shared_ptr<CoreHealth>> health_of(rt::Runtime& runtime, const std::vector<NamedServer>& servers) {
  std::vector<rt::Runtime*> runtimes = {&runtime};
  for (const NamedServer& named : servers) {
    if (std::find(runtimes.begin(), runtimes.end(), &named.server->runtime()) == runtimes.end()) {
      runtimes.push_back(&named.server->runtime());
    }
  }
  std::vector<std::shared_ptr<CoreHealth>> health;
  health.reserve(runtimes.size());
  for (rt::Runtime* const one : runtimes) {
    health.push_back(std::make_shared<CoreHealth>(*one));
  }
  return health;
}

std::vector<InspectedServer> inspected(const std::vector<NamedServer>& servers) {
  std::vector<InspectedServer> made;
  for (const NamedServer& named : servers) {
    const Server* const server = named.server;
    made.push_back({named.name, &server->runtime(), [server] { return server->epoch(); },
                    [server](unsigned core) { return server->counters(core); }, [server] { return server->sessions(); },
                    std::make_shared<SessionSurvey>(server->runtime())});
  }
  return made;
}

}  // namespace

Result<std::unique_ptr<Admin>> Admin::make(rt::Runtime& runtime, AdminOptions options) {
  WEFT_TRY(check_access(options));
  for (const NamedServer& named : options.servers) {
    if (named.server == nullptr) {
      return Error(Errc::invalid_argument, "a server of the admin port is null");
    }
  }
  ServerOptions server_options;
  server_options.stall_after = Duration::zero();                   // its one core serves this port alone
  server_options.sessions_max = 2 * options.connections_max + 16;  // with those that end
  server_options.memory_max = server_options.core_memory_max = 64u * 1024 * 1024;
  rt::RuntimeOptions own;
  own.cores = 1;
  own.pinning = rt::Pinning::never;
  own.wait_mode = sync::WaitMode::eco;
  own.lane_capacity = 64;
  own.foreign_lanes = 1;
  own.thread_name = "admin";
  auto thread = WEFT_TRY(rt::Runtime::start(own));
  auto server = WEFT_TRY(Server::make(*thread, server_options));
  ListenerOptions listener;
  listener.accept = AcceptMode::hand_off;
  listener.spare_descriptors = options.spare_descriptors;
  listener.tls = options.tls;
  listener.limits.handshake_timeout = options.request_timeout;
  listener.limits.idle_timeout = options.idle_timeout;
  listener.limits.peer_left = PeerLeft::answer;  // a scraper may end its stream after its request
  listener.limits.message_rate = {100, 32};      // pipelined requests do not occupy a core
  web::HttpLimits limits;
  limits.head_max = options.head_max;
  limits.body_max = limits.framing_max = 8 * 1024;
  const web::HttpCodec codec(limits);
  const std::string endpoint = options.endpoint;
  const auto sources = std::make_shared<MetricSources>();
  for (const NamedServer& named : options.servers) {
    sources->add(named.name, *named.server);
  }
  sources->add("", runtime);
  if (options.health != nullptr) {
    sources->add("", *options.health);
  }
  const auto counts = std::make_shared<AdminCounters>();
  sources->add("", [counts](std::string_view /*name*/, CounterReadings& into) {
    into.push_back({&kAdminTable, {}, sync::read_counters(*counts)});
  });
  auto health = health_of(runtime, options.servers);
  auto servers = inspected(options.servers);
  const bool any_host = takes_any_host(options);
  const auto shared = std::make_shared<const Shared>(
      Shared{sources, std::move(options), std::move(health), std::move(servers), any_host, counts});
  std::string bound = WEFT_TRY(server->listen<web::HttpCodec>(
      endpoint, listener, [shared](rt::Core& core) { return AdminService(shared, core); }, codec));
  return std::unique_ptr<Admin>(new Admin(sources, counts, std::move(thread), std::move(server), std::move(bound)));
}

AdminCounts Admin::refusals() const noexcept {
  AdminCounts values;
  sync::add_counters(values, *counts_);
  return values;
}

}  // namespace weft::serve
