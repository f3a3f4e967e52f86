// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/logging/log.h"
#include "weft/net/admit/admission.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/server_options.h"
#include "weft/serve/server/stop_signals.h"

namespace weft::serve::config {

// ListenerSettings: one [[listener]]. Its `options` have the TlsServer, the Admission and the LiveLimits, so a
// program passes
// them to Server::listen() as they are.
struct ListenerSettings {
  std::string name{};  // for the program; each once
  std::string endpoint{};
  ListenerOptions options{};
  net::TlsServerOptions tls{};        // no certificate_file: without TLS
  net::AdmissionOptions admission{};  // always in force, so that its bounds can change at run time
  std::shared_ptr<LiveLimits> live_limits{};
  std::string processes{};  // net::AcceptFilter::parse(): "uid:1000"
};

// Settings: the options of a server's parts, as a configuration sets them. A default is that of the option itself,
// except for `admin`, which has no endpoint: without one there is no admin port.
struct Settings {
  Settings() { admin.endpoint.clear(); }

  rt::RuntimeOptions runtime{};
  ServerOptions server{};
  StopOptions stop{};
  AdminOptions admin{};               // its `tls` and `token` are those of the next two
  net::TlsServerOptions admin_tls{};  // no certificate_file: without TLS
  std::string admin_token_file{};     // empty: without a token
  logging::LogOptions log{};
  std::vector<ListenerSettings> listeners{};
};

}  // namespace weft::serve::config
