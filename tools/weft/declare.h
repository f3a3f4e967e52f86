// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/weft/source.h"
#include "tools/weft/table.h"

// Options and arguments of CLI11 in the forms that the commands share.
namespace weft::cli {

inline constexpr const char* kSecurity = "Security";
inline constexpr const char* kMessages = "Messages";
inline constexpr const char* kWaitHelp =
    "Begin when so many subscriptions of the topic are there (1); 0: at once, and early messages may be lost";

[[nodiscard]] const CLI::Validator& positive();  // 0 to 10^9
[[nodiscard]] const CLI::Validator& unmarked();  // drops kListMark

template <typename Number>
CLI::Option* number(CLI::App& app, const char* name, Number& into, const char* type, const char* help) {
  return app.add_option(name, into, help)->type_name(type)->check(positive());
}

CLI::Option* text(CLI::App& app, const char* name, std::string& into, const char* type, const char* help);
// One value for each time that the option stands there, so that no option swallows a PART.
CLI::Option* texts(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type, const char* help);
// Bytes: digits, or digits with K, M or G.
CLI::Option* bytes(CLI::App& app, const char* name, std::uint64_t& into, const char* help);
// A number of any size, as sequences and revisions are.
CLI::Option* sequence(CLI::App& app, const char* name, std::uint64_t& into, const char* help);

// --tls-cert, --tls-key, --tls-ca and --tls-name of a side that connects; --tls-insecure, if it has that. `certificate`
// is the purpose of the certificate, and `default_authorities` the default of --tls-ca, for the help.
template <typename Options>
void declare_tls(CLI::App& app, Options& options, const char* certificate, const char* default_authorities) {
  const auto add = [&app](const char* name, std::string& into, const char* type, const std::string& help) {
    text(app, name, into, type, help.c_str())->group(kSecurity);
  };
  add("--tls-cert", options.tls_certificate, "FILE", std::string("PEM: our certificate") + certificate);
  add("--tls-key", options.tls_key, "FILE", "PEM: its key");
  add("--tls-ca", options.tls_authorities, "FILE", std::string("PEM: whom to trust") + default_authorities);
  add("--tls-name", options.tls_name, "NAME", "The name in the other side's certificate; else the endpoint's host");
  if constexpr (requires { options.tls_insecure; }) {
    app.add_flag("--tls-insecure", options.tls_insecure, "Take any certificate, even a forged one")->group(kSecurity);
  }
}

// --file, --lines, --rate, --interval and --hex of a command that sends.
void declare_source(CLI::App& app, SourceOptions& source);

// The rows of topics/table.cc.
[[nodiscard]] std::vector<Command> topic_commands();

}  // namespace weft::cli
