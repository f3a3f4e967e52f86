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

}  // namespace weft::cli
