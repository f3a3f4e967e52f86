// SPDX-License-Identifier: MIT
#include "tools/weft/model.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "weft/msg/version.h"

namespace weft::cli {

namespace {

std::string version_text() { return std::string("weft ") + version(); }

std::string footer_of(const Command& command) {
  std::string text = "Examples:\n";
  for (const Example& example : command.examples) {
    text += "  " + std::string(example.line) + "\n      " + std::string(example.effect) + "\n";
  }
  return text + "\nExit codes: " + std::string(kExitCodes);
}

bool has_command(std::string_view name) {
  const auto table = commands();
  return std::any_of(table.begin(), table.end(), [&](const Command& command) { return command.name == name; });
}

void print(std::FILE* stream, const std::string& text) { std::fwrite(text.data(), 1, text.size(), stream); }

}  // namespace

Model::Model() : app(std::make_unique<CLI::App>("Send, receive, measure and look at messages.", "weft")) {
  app->require_subcommand(1);
  app->set_version_flag("--version", version_text());
  app->get_formatter()->column_width(34);
  app->get_formatter()->label("SUBCOMMAND", "COMMAND");
  app->footer("Every command has --json and --help with examples.\n\nExit codes: " + std::string(kExitCodes));
  for (const Command& command : commands()) {
    CLI::App* sub = app->add_subcommand(std::string(command.name), std::string(command.summary));
    sub->group("Commands");
    sub->add_flag("-j,--json", json, "Print objects of JSON, one a line");
    runs.emplace_back(sub, command.declare(*sub));
    sub->footer(footer_of(command));
  }
}

Model::~Model() = default;

int Model::run(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-' && !has_command(argv[1])) {
    print(stderr, "weft: no command is named '" + printable(argv[1]) + "'; `weft --help` lists them\n");
    return kExitUsage;
  }
  std::vector<std::string> arguments;  // the last one first, the order of CLI11
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view argument = argv[i];
    const bool list = argument.starts_with('[') && argument.ends_with(']');
    arguments.push_back((list ? std::string(1, kListMark) : "") + argv[i]);
  }
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::CallForVersion&) {
    print(stdout, version_text() + "\n");
    return 0;
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app->get_subcommands();
    print(stdout, chosen.empty() ? app->help() : chosen[0]->help("weft"));
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app->get_subcommands();
    const std::string command = chosen.empty() ? "weft" : "weft " + chosen[0]->get_name();
    print(stderr, command + ": " + printable(error.what()) + "; `" + command + " --help` explains\n");
    return kExitUsage;
  }
  for (const auto& [sub, command] : runs) {
    if (!sub->parsed()) {
      continue;
    }
    Console console(sub->get_name());
    console.json = json;
    try {
      catch_stop_signals();
      return command(console);
    } catch (const Stopped&) {
      console.progress("");
      return kExitSignal + stop_signal();
    } catch (const Usage& usage) {
      console.note(std::string(usage.what()) + "; `weft " + sub->get_name() + " --help` explains");
      return kExitUsage;
    } catch (const std::exception& failure) {
      if (stop_signal() != 0) {  // the signal interrupted a call
        return kExitSignal + stop_signal();
      }
      console.note(failure.what());
      return kExitFailed;
    }
  }
  return kExitUsage;
}

}  // namespace weft::cli
