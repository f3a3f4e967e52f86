// SPDX-License-Identifier: MIT
#include <algorithm>

#include "weft/logging/level.h"
#include "weft/net/stream/endpoint.h"
#include "weft/serve/config/read.h"
#include "weft/serve/inspect/access.h"
#include "weft/sys/files/whole_file.h"

namespace weft::serve::config {

namespace {

// Whole: the checks of one draft.
class Whole {
 public:
  Whole(Draft& draft, Problems& problems) : draft_(draft), problems_(problems) {}

  void check(const std::string& directory) {
    check_admin(directory);
    check_log(directory, draft_.settings.log.settings);
    auto& listeners = draft_.settings.listeners;
    for (std::size_t i = 0; i < listeners.size(); ++i) {
      const std::string path = "listener[" + std::to_string(i) + "]";
      check_listener(path, listeners[i]);
      const auto same = [&](const ListenerSettings& other) { return other.name == listeners[i].name; };
      if (!listeners[i].name.empty() && std::any_of(listeners.begin(), listeners.begin() + i, same)) {
        refuse(path + ".name", "another listener has the name " + quote(listeners[i].name));
      }
      for (std::string* const file :
           {&listeners[i].tls.certificate_file, &listeners[i].tls.key_file, &listeners[i].tls.client_ca_file}) {
        place_beside(directory, *file);
      }
    }
  }

  void make_gates(bool open_files) {
    if (open_files) {
      open_admin_files();
    }
    auto& listeners = draft_.settings.listeners;
    for (std::size_t i = 0; i < listeners.size(); ++i) {
      const std::string path = "listener[" + std::to_string(i) + "]";
      ListenerOptions& options = listeners[i].options;
      listeners[i].live_limits = std::make_shared<LiveLimits>();
      options.live_limits = listeners[i].live_limits;
      if (auto admission = net::Admission::make(listeners[i].admission)) {
        options.admission = *std::move(admission);
      } else {
        refuse(path + ".admission", admission.error().message());
      }
      if (open_files && !listeners[i].tls.certificate_file.empty()) {
        std::string why;
        auto tls = net::TlsServer::make(listeners[i].tls, &why);
        if (tls) {
          options.tls = *std::move(tls);
        } else {
          refuse(path + ".tls.certificate_file", why.empty() ? tls.error().message() : why);
        }
      }
    }
  }

 private:
  // The problem is at the key; at its table if the key is not set.
  void refuse(const std::string& key, std::string text) {
    auto at = draft_.origins.find(key);
    if (at == draft_.origins.end()) {
      at = draft_.origins.find(key.substr(0, key.find('.')));
    }
    problems_.add({at == draft_.origins.end() ? Origin() : at->second, key, std::move(text)});
  }

  static void place_beside(const std::string& directory, std::string& file) {
    if (!file.empty() && !file.starts_with('/')) {
      file = directory + "/" + file;
    }
  }

  void check_admin(const std::string& directory) {
    Settings& settings = draft_.settings;
    net::TlsServerOptions& tls = settings.admin_tls;
    for (std::string* const file : {&tls.certificate_file, &tls.key_file, &settings.admin_token_file}) {
      place_beside(directory, *file);
    }
    if (tls.certificate_file.empty() != tls.key_file.empty()) {
      refuse(tls.key_file.empty() ? "admin.tls.key_file" : "admin.tls.certificate_file",
             "a certificate and its key are set together");
    }
    if (settings.admin.endpoint.empty()) {
      return;
    }
    check_endpoint("admin.endpoint", settings.admin.endpoint);
    if (const auto good = check_admin_hosts(settings.admin.hosts); !good) {
      refuse("admin.hosts", good.error().message());
    }
    const auto endpoint = net::parse_endpoint(settings.admin.endpoint, true);
    if (endpoint && reached_from_afar(*endpoint) &&
        (!settings.admin.remote || tls.certificate_file.empty() || settings.admin_token_file.empty())) {
      refuse("admin.endpoint",
             "an admin port that other machines reach needs admin.remote = true, admin.token_file, and the files of "
             "admin.tls");
    }
  }

  void open_admin_files() {
    Settings& settings = draft_.settings;
    if (!settings.admin_tls.certificate_file.empty()) {
      std::string why;
      auto tls = net::TlsServer::make(settings.admin_tls, &why);
      if (tls) {
        settings.admin.tls = *std::move(tls);
      } else {
        refuse("admin.tls.certificate_file", why.empty() ? tls.error().message() : why);
      }
    }
    if (!settings.admin_token_file.empty()) {
      auto token = sys::read_whole_file(settings.admin_token_file, kAdminTokenMax + 2);  // with an end of line
      if (!token) {
        return refuse("admin.token_file", settings.admin_token_file + ": " + token.error().message());
      }
      token->erase(std::min(token->find_first_of("\r\n"), token->size()));
      if (const auto good = check_admin_token(*token); !good) {
        return refuse("admin.token_file", settings.admin_token_file + ": " + good.error().message());
      }
      settings.admin.token = *std::move(token);
    }
  }

  void check_endpoint(const std::string& key, const std::string& endpoint) {
    if (const auto parsed = net::parse_endpoint(endpoint, true); !parsed) {
      refuse(key, quote(endpoint) + " is refused: " + parsed.error().message());
    }
  }

  void check_log(const std::string& directory, logging::LogSettings& log) {
    for (const std::string& rule : log.levels) {
      if (!logging::parse_level_rule(rule)) {
        refuse("logging.levels", quote(rule) + " is not a component and its level, like \"serve.session=warning\"");
      }
    }
    if (!log.file.empty() && !log.file.starts_with('/')) {
      log.file = directory + "/" + log.file;
    }
  }

  void check_listener(const std::string& path, ListenerSettings& listener) {
    if (listener.endpoint.empty()) {
      refuse(path + ".endpoint", "this key is required");
    } else {
      check_endpoint(path + ".endpoint", listener.endpoint);
    }
    if (auto filter = net::AcceptFilter::parse("", listener.processes)) {
      listener.options.filter = *std::move(filter);
    } else {
      refuse(path + ".processes", quote(listener.processes) + " is refused: " + filter.error().message());
    }
    const net::TlsServerOptions& tls = listener.tls;
    if (tls.certificate_file.empty() != tls.key_file.empty()) {
      refuse(path + (tls.key_file.empty() ? ".tls.key_file" : ".tls.certificate_file"),
             "a certificate and its key are set together");
    }
    if (!tls.client_ca_file.empty() && tls.certificate_file.empty()) {
      refuse(path + ".tls.client_ca_file", "it needs tls.certificate_file and tls.key_file");
    }
  }

  Draft& draft_;
  Problems& problems_;
};

}  // namespace

void check_together(const std::string& directory, Draft& draft, Problems& problems) {
  Whole(draft, problems).check(directory);
}

void make_gates(bool open_files, Draft& draft, Problems& problems) { Whole(draft, problems).make_gates(open_files); }

}  // namespace weft::serve::config
