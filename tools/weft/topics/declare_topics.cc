// SPDX-License-Identifier: MIT
#include "tools/weft/topics/declare_topics.h"

namespace weft::cli {

void declare_local(CLI::App& app, FleetOptions& fleet) {
  text(app, "--fleet", fleet.fleet, "FLEET", "local (the default), or local:NAME")->group(kFleet);
  text(app, "--directory", fleet.directory, "DIR", "Where its programs meet; else the runtime directory of the user")
      ->group(kFleet);
}

void declare_shown(CLI::App& app, ShownOptions& shown) {
  app.add_flag("--hex", shown.hex, "Bytes are hexadecimal")->group(kMessages);
  app.add_flag("--raw", shown.raw, "Print the bodies as they are, with nothing between them")->group(kMessages);
}

void declare_count(CLI::App& app, std::uint64_t& count, const char* help) {
  number(app, "-n,--count", count, "N", help)->group(kMessages);
}

void declare_words(CLI::App& app, std::vector<std::string>& words, std::string& topic, const char* help) {
  text(app, "-t,--topic", topic, "TOPIC", "The topic, instead of the first argument")->group(kMessages);
  app.add_option("TOPIC", words, help)->type_name("[BODY]")->transform(unmarked());
}

void declare_headers(CLI::App& app, std::vector<std::string>& headers) {
  texts(app, "-H,--header", headers, "NAME:VALUE", "A header of each message; repeatable")->group(kMessages);
}

void declare_kept(CLI::App& app, FleetOptions& fleet) {
  text(app, "--fleet", fleet.fleet, "FLEET", "local (the default), local:NAME, or nats://HOST:PORT,...")->group(kFleet);
  text(app, "--directory", fleet.directory, "DIR", "Where the programs of a local fleet meet")->group(kFleet);
  text(app, "--hub", fleet.hub, "ENDPOINT",
       "tls+tcp://HOST:PORT, tcp://HOST:PORT, ipc://PATH: a hub of another host or user; else that of the fleet")
      ->group(kFleet);
  declare_tls(app, fleet, " for tls+tcp and tls", "");
  text(app, "--creds", fleet.credentials, "FILE", "Of a nats fleet: the credentials of its user")->group(kSecurity);
  text(app, "--curve-key", fleet.curve_key, "FILE",
       "For a hub at tcp://: our pair, as `weft keygen --out FILE` writes it")
      ->group(kSecurity);
  text(app, "--curve-server-key", fleet.curve_hub_key, "KEY", "The public key of that hub, or its file")
      ->group(kSecurity);
  text(app, "--space", fleet.space, "SPACE", "The first token of every name")->group(kFleet);
  number(app, "--timeout", fleet.timeout, "SECONDS", "For each answer (30) and each message (no end)")->group(kFleet);
}

}  // namespace weft::cli
