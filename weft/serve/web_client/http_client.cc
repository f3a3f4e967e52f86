// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/http_client.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "weft/net/http/url.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/web_client/http_pool.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;
using ExchangePtr = std::unique_ptr<HttpExchange>;

constexpr Error kClientEnded(Errc::closed, "the HTTP client is closed");
constexpr Error kNoHttp(Errc::invalid_argument, "a request of HTTP has a URL of http or https");
constexpr Error kPassed(Errc::timed_out, "the deadline had passed before the request");
constexpr Error kManyRedirects(Errc::not_permitted, "more than redirects_max redirects");
constexpr Error kDowngrade(Errc::not_permitted, "a redirect from https to http is not followed");
constexpr Error kNoReplay(Errc::not_permitted, "a body that a coroutine writes does not follow a redirect");
constexpr Error kNoTarget(Errc::protocol_error, "a redirect to something that is no URL of http or https");

// How far a request came over a connection that had ended.
enum class Lost : std::uint8_t { no, before_sent, before_answer };

// A request and the parts that a redirect changes. Owner: the frame of perform().
struct Asking {
  ClientRequest request;
  http::Url url;
  Instant deadline;
  bool whole;
};

rt::Task<Result<ExchangePtr>> ask_once(std::shared_ptr<HttpPool> pool, const Asking* asking, bool fresh, Lost* lost) {
  *lost = Lost::no;
  auto taken = co_await HttpPool::take(pool, &asking->url, asking->deadline, fresh);
  if (!taken) {
    co_return taken.error();
  }
  ExchangePtr exchange = std::move(*taken);
  if (const auto begun = exchange->begin(asking->request, asking->url, asking->whole); !begun) {
    const bool unsent = begun.error() == Errc::connection_closed;
    *lost = unsent && exchange->reused() ? Lost::before_sent : Lost::no;
    co_return begun.error().with_fate(unsent ? Fate::not_sent : Fate::outcome_unknown);
  }
  const Result<void> answered = co_await exchange->wait(asking->deadline);
  if (!answered) {
    *lost = exchange->died_unheard() ? Lost::before_answer : Lost::no;
    co_return answered.error();
  }
  co_return std::move(exchange);
}

rt::Task<Result<ExchangePtr>> ask(std::shared_ptr<HttpPool> pool, const Asking* asking) {
  Lost lost = Lost::no;
  auto first = co_await ask_once(pool, asking, false, &lost);
  const bool again = lost == Lost::before_sent || (lost == Lost::before_answer && asking->request.is_repeatable());
  if (!again) {
    co_return std::move(first);
  }
  const bool was_sent = lost == Lost::before_answer;
  pool->counts().repeated.add();
  auto second = co_await ask_once(pool, asking, true, &lost);
  if (was_sent && second.error().fate() == Fate::not_sent) {
    co_return second.error().with_fate(Fate::outcome_unknown);  // the first time it was
  }
  co_return std::move(second);
}

// Whether the answer sends the request elsewhere; then `where` is the reference.
bool is_redirect(const HttpExchange& exchange, std::string& where) {
  const unsigned status = exchange.status();
  if (status != 301 && status != 302 && status != 303 && status != 307 && status != 308) {
    return false;
  }
  http::AnswerHead head;
  (void)http::parse_answer_head({exchange.head_text().data(), exchange.head_text().size()}, head);
  const auto location = http::find_field(head.fields, "location");
  where = location.value_or("");
  return location.has_value();
}

// Turns the request to the place of a redirect.
Result<void> follow(HttpClientCounts& counts, Asking& asking, unsigned status, const std::string& where) {
  const auto next = http::resolve_url(asking.url, where);
  if (!next || next->websocket) {
    return kNoTarget;
  }
  if (asking.url.secure && !next->secure) {
    return kDowngrade;
  }
  const bool posts = asking.request.method() == "POST";
  if (status == 303 || (posts && (status == 301 || status == 302))) {
    asking.request.become_get();
  } else if (asking.request.producer()) {
    return kNoReplay;
  }
  if (next->origin() != asking.url.origin() && asking.request.has_credentials()) {
    asking.request.drop_credentials();
    counts.credentials_dropped.add();
  }
  asking.url = *next;
  return {};
}

rt::Task<Result<ClientResponse>> perform(std::shared_ptr<HttpPool> pool, ClientRequest request, bool whole) {
  if (const Error wrong = pool->used_elsewhere(); !(wrong == Errc::ok)) {
    co_return wrong.with_fate(Fate::not_sent);
  }
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled.with_fate(Fate::not_sent);
  }
  HttpClientCounts& counts = pool->counts();
  auto url = http::parse_url(request.url());
  Error mistake = request.error();
  if (mistake == Errc::ok) {
    mistake = pool->is_closed()                   ? kClientEnded
              : !url                              ? url.error()
              : url->websocket                    ? kNoHttp
              : request.deadline() <= pool->now() ? kPassed
                                                  : Error();
  }
  if (!(mistake == Errc::ok)) {
    counts.refused_mistake.add();
    co_return mistake.with_fate(Fate::not_sent);
  }
  const unsigned most = request.redirects_max().value_or(pool->options().redirects_max);
  const Instant deadline = std::min(request.deadline(), deadline_after(pool->now(), pool->options().total_timeout));
  Asking asking{std::move(request), std::move(*url), deadline, whole};
  for (unsigned redirects = 0;; ++redirects) {
    auto answered = co_await ask(pool, &asking);
    if (!answered) {
      const Error why = answered.error();  // if it was redirected, its first server has answered
      co_return redirects != 0 && why.fate() == Fate::not_sent ? why.with_fate(Fate::answered) : why;
    }
    ExchangePtr exchange = std::move(*answered);
    std::string where;
    if (most == 0 || !is_redirect(*exchange, where)) {
      std::string body = exchange->take_body();
      std::vector<char> head = exchange->take_head_text();
      if (whole) {
        exchange.reset();
      }
      co_return ClientResponse(std::move(head), std::move(body), asking.url.text(), std::move(exchange));
    }
    const Result<void> followed =
        redirects == most ? Result<void>(kManyRedirects) : follow(counts, asking, exchange->status(), where);
    (followed ? counts.redirects : counts.redirects_refused).add();
    if (!followed) {
      co_return followed.error().with_fate(Fate::answered);
    }
  }
}

}  // namespace

HttpClient::HttpClient(std::shared_ptr<HttpPool> pool) noexcept : pool_(std::move(pool)) {}

HttpClient::~HttpClient() {
  HttpPool& pool = *pool_;
  pool.farewell.begin(pool.host().core(), std::move(pool_));
}

Result<std::unique_ptr<HttpClient>> HttpClient::open(std::shared_ptr<ClientHost> host, HttpClientOptions options) {
  if (rt::Core::current() != &host->core()) {
    return Error(Errc::invalid_state, "an HTTP client is opened on the core of its host");
  }
  try {
    auto pool = std::make_shared<HttpPool>(std::move(host), std::move(options));
    return std::unique_ptr<HttpClient>(new HttpClient(std::move(pool)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for an HTTP client");
  }
}

rt::Task<Result<ClientResponse>> HttpClient::request(ClientRequest request) {
  return perform(pool_, std::move(request), true);
}

rt::Task<Result<ClientResponse>> HttpClient::stream(ClientRequest request) {
  return perform(pool_, std::move(request), false);
}

rt::Task<Result<ClientResponse>> HttpClient::get(std::string url, Instant deadline) {
  ClientRequest made = ClientRequest::get(std::move(url));
  made.set_deadline(deadline);
  return request(std::move(made));
}

rt::Task<Result<ClientResponse>> HttpClient::post(std::string url, std::string body, std::string_view content_type,
                                                  Instant deadline) {
  ClientRequest made = ClientRequest::post(std::move(url), std::move(body), content_type);
  made.set_deadline(deadline);
  return request(std::move(made));
}

rt::Task<Result<void>> HttpClient::close(Instant deadline) { return HttpPool::close(pool_, deadline); }

const HttpClientCounts& HttpClient::counts() const noexcept { return pool_->counts(); }

CounterSource HttpClient::counter_source() const {
  return [weak = std::weak_ptr<const HttpClientCounts>(pool_->shared_counts())](std::string_view name,
                                                                                CounterReadings& into) {
    if (const auto counts = weak.lock()) {
      into.push_back({&kHttpClientTable, {{"http_client", std::string(name)}}, sync::read_counters(*counts)});
    }
  };
}

}  // namespace weft::serve::web
