// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/counter_table.h"
#include "weft/rt/core/core.h"
#include "weft/serve/session/session_limits.h"
#include "weft/serve/web/http_codec.h"
#include "weft/serve/web/router.h"
#include "weft/serve/web/web_counts.h"
#include "weft/serve/web/web_service.h"
#include "weft/sync/counter_block.h"

namespace weft::serve::web {

// Site: a router as the service of a listener, with bounds and counters.
//   web::Site site(std::move(router));
//   server->listen<web::HttpCodec>("tcp://*:8080", {.limits = web::session_limits()}, site.services(), site.codec());
// Several listeners may have the same site. A value; its copies are the same site. Affinity: any thread.
class Site {
 public:
  explicit Site(Router router, const HttpLimits& limits = {})
      : state_(std::make_shared<SiteState>(std::move(router))), limits_(limits) {}

  // For Server::listen(), both of the same site.
  [[nodiscard]] auto services() const {
    return [state = state_](rt::Core& core) { return WebService(state, core); };
  }
  [[nodiscard]] HttpCodec codec() const noexcept { return state_->codec(limits_); }

  [[nodiscard]] WebCounts counts() const { return state_->counts(); }
  // The same for a page of metrics: admin->add("shop", site).
  [[nodiscard]] CounterSource counter_source() const {
    return [state = state_](std::string_view name, CounterReadings& into) {
      into.push_back({&kWebTable, {{"web", std::string(name)}}, sync::read_counters(state->counts())});
    };
  }
  [[nodiscard]] sync::DurationSource duration_source() const {
    return [state = state_](std::string_view name, sync::DurationReadings& into) { state->read_times(name, into); };
  }

 private:
  std::shared_ptr<SiteState> state_;
  HttpLimits limits_;
};

// The bounds of time for a session that speaks HTTP: 30 s from accept to the first head, 30 s for a head from its first
// byte to its last, 30 s for a body after its head, 60 s without a request, 5 min for a handler. A peer that has ended
// its stream gets its answers: it may read on (RFC 9112 section 9.6).
[[nodiscard]] inline SessionLimits session_limits() {
  SessionLimits limits;
  limits.handshake_timeout = std::chrono::seconds(30);
  limits.frame_timeout = std::chrono::seconds(30);
  limits.body_timeout = std::chrono::seconds(30);
  limits.idle_timeout = std::chrono::seconds(60);
  limits.reply_timeout = std::chrono::minutes(5);
  limits.peer_left = PeerLeft::answer;
  return limits;
}

}  // namespace weft::serve::web
