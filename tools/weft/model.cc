// SPDX-License-Identifier: MIT
#include "tools/weft/model.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "weft/msg/version.h"

namespace weft::cli {

namespace {

constexpr std::size_t kTextColumn = 30;  // of the descriptions of options

std::string version_text() { return std::string("weft ") + version(); }

std::string footer_of(const Command& command) {
  std::string text = "Examples:\n";
  for (const Example& example : command.examples) {
    text += "  " + std::string(example.line) + "\n      " + std::string(example.effect) + "\n";
  }
  return text + "\nExit codes: " + std::string(kExitCodes);
}

void complain(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// Prints the answer to --help or --version; gives the exit code.
int print(const std::string& text) {
  const int code = write_out(text);
  if (code == kExitFailed) {
    complain("weft: " + std::string(kOutputFull) + "\n");
  }
  return code;
}

bool is_option(std::string_view argument) { return argument.size() > 1 && argument[0] == '-'; }

// The option of an argument such as "--count", "--count=3" or "-n3"; null: the command has none. `alone`: its value is
// the next argument.
const CLI::Option* option_of(const CLI::App& app, std::string_view argument, bool& alone) {
  const bool is_long = argument.starts_with("--");
  const std::size_t equals = argument.find('=');
  const std::string name(is_long ? argument.substr(0, equals) : argument.substr(0, 2));
  alone = is_long ? equals == std::string_view::npos : argument.size() == 2;
  return app.get_option_no_throw(name);
}

// The places of the words of the command's name, if it stands first among the arguments, besides options and values.
std::optional<std::vector<std::size_t>> find_name(const CLI::App& app, std::string_view name,
                                                  const std::vector<std::string>& arguments) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") {
      return std::nullopt;
    }
    if (is_option(arguments[i])) {
      bool alone = false;
      const CLI::Option* const option = option_of(app, arguments[i], alone);
      i += option != nullptr && alone && option->get_expected_max() > 0 ? 1 : 0;
      continue;
    }
    const std::string_view word = name.substr(0, name.find(' '));
    if (arguments[i] != word) {
      return std::nullopt;
    }
    places.push_back(i);
    name.remove_prefix(std::min(name.size(), word.size() + 1));
    if (name.empty()) {
      return places;
    }
  }
  return std::nullopt;
}

std::string first_word(const std::vector<std::string>& arguments, std::size_t from) {
  const auto found = std::find_if(arguments.begin() + static_cast<std::ptrdiff_t>(std::min(from, arguments.size())),
                                  arguments.end(), [](const std::string& each) { return !is_option(each); });
  return found == arguments.end() ? std::string() : *found;
}

// The new name of the first argument that has one: of an option, or of a command of the former program weft-topics.
// Returns an empty text if there is none.
std::string former_name(const std::vector<std::string>& arguments, bool of_weft_topics) {
  struct Former {
    std::string_view word, before, now;
  };
  constexpr Former kNames[] = {{"ls", "`weft-topics ls`", "`weft topic ls`"},
                               {"pub", "`weft-topics pub`", "`weft topic pub`"},
                               {"sub", "`weft-topics sub`", "`weft topic sub`"},
                               {"tap", "`weft-topics tap`", "`weft topic tap`"},
                               {"streams", "`weft-topics streams`", "`weft stream ls`"},
                               {"kv", "`weft-topics kv`", "`weft kv`"},
                               {"--wait-subscribers", "--wait-subscribers", "--wait"}};
  for (const std::string& argument : arguments) {
    for (const auto& [word, before, now] : kNames) {
      if (std::string_view(argument).substr(0, argument.find('=')) == word && is_option(word) != of_weft_topics) {
        return "type " + std::string(now) + " instead of " + std::string(before);
      }
    }
  }
  return of_weft_topics ? "the commands of weft-topics are `weft topic`, `weft stream` and `weft kv`" : "";
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t blank = std::min(line.find_first_not_of(' '), line.size());
    const bool described = blank == 2 && line.size() > indent && line[indent - 1] == ' ' && line[indent] != ' ';
    const std::size_t under = described ? indent : blank;
    out.append(broken(line, kColumns, under)).append("\n");
  }
  return out;
}

Model::Model() : app(std::make_unique<CLI::App>("Send, receive, keep, measure and look at messages.", "weft")) {
  app->require_subcommand(1);
  app->set_version_flag("--version", version_text());
  app->get_formatter()->column_width(kTextColumn);
  app->get_formatter()->label("SUBCOMMAND", "COMMAND");
  app->footer("Every command has --json and --help with examples.\n\nExit codes: " + std::string(kExitCodes));
  for (const Command& command : commands()) {
    const std::size_t space = command.name.find(' ');
    CLI::App* parent = app.get();
    if (space != std::string_view::npos) {
      const std::string_view name = command.name.substr(0, space);
      if (parents.empty() || parents.back().first->name != name) {
        const auto all = groups();
        const auto group = std::find_if(all.begin(), all.end(), [&](const Group& each) { return each.name == name; });
        CLI::App* const made = app->add_subcommand(std::string(name), std::string(group->summary));
        made->group("Commands");
        made->require_subcommand(1);
        parents.emplace_back(&*group, made);
      }
      parent = app->get_subcommand(std::string(name));
    }
    const std::string word(command.name.substr(space == std::string_view::npos ? 0 : space + 1));
    CLI::App* const sub = parent->add_subcommand(word, std::string(command.summary));
    sub->group("Commands");
    sub->add_flag("-j,--json", json, "Print objects of JSON, one a line");
    rows.push_back({&command, sub, command.declare(*sub)});
    sub->footer(footer_of(command));
  }
}

Model::~Model() = default;

// The words of the command first: options may stand before and between them.
std::vector<std::string> Model::in_order(std::vector<std::string> arguments) const {
  for (const Row& row : rows) {
    const auto places = find_name(*row.app, row.command->name, arguments);
    if (!places) {
      continue;
    }
    std::vector<std::string> ordered;
    for (const std::size_t place : *places) {
      ordered.push_back(arguments[place]);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (std::find(places->begin(), places->end(), i) == places->end()) {
        ordered.push_back(std::move(arguments[i]));
      }
    }
    return ordered;
  }
  return arguments;
}

int Model::parse(const std::vector<std::string>& arguments) {
  const auto usage = [](const std::string& command, const std::string& text) {
    complain(command + ": " + printable(text) + "; `" + command + " --help` explains\n");
    return kExitUsage;
  };
  const std::string word = first_word(arguments, 0);
  const auto names = [&](const auto& rows_of, const std::string& name) {
    return std::any_of(rows_of.begin(), rows_of.end(),
                       [&](const auto& each) { return each.name == name || each.name.starts_with(name + " "); });
  };
  if (word == "topics") {
    complain("weft: " + former_name(arguments, true) + "; `weft --help` lists the commands\n");
    return kExitUsage;
  }
  if (!word.empty() && !names(commands(), word)) {
    complain("weft: no command is named '" + printable(word) + "'; `weft --help` lists them\n");
    return kExitUsage;
  }
  std::vector<std::string> reversed;  // the order of CLI11
  for (const std::string& argument : arguments) {
    const bool list = argument.starts_with('[') && argument.ends_with(']');
    reversed.insert(reversed.begin(), (list ? std::string(1, kListMark) : std::string()) + argument);
  }
  const auto chosen = [&] {
    std::string command = "weft";
    for (const CLI::App* at = app.get(); !at->get_subcommands().empty();) {
      at = at->get_subcommands()[0];
      command += " " + at->get_name();
    }
    return command;
  };
  try {
    app->parse(std::move(reversed));
    return -1;
  } catch (const CLI::CallForVersion&) {
    return print(version_text() + "\n");
  } catch (const CLI::CallForHelp&) {
    return print(wrapped(app->help(), kTextColumn));
  } catch (const CLI::ParseError& error) {
    const std::string command = chosen();
    const std::string second = names(groups(), word) ? first_word(arguments, 1) : std::string();
    if (!second.empty() && command == "weft " + word) {
      return usage(command, "no command is named '" + second + "'");
    }
    const std::string former = former_name(arguments, false);
    return usage(command, former.empty() ? error.what() : former);
  }
}

int Model::run(int argc, char** argv) {
  if (const int code = parse(in_order({argv + 1, argv + argc})); code >= 0) {
    return code;
  }
  for (const Row& row : rows) {
    if (!row.app->parsed()) {
      continue;
    }
    const std::string name(row.command->name);
    Console console(name);
    console.json = json;
    try {
      catch_stop_signals();
      return row.run(console);
    } catch (const Stopped&) {
      console.progress("");
      return kExitSignal + stop_signal();
    } catch (const Usage& usage) {
      console.note(std::string(usage.what()) + "; `weft " + name + " --help` explains");
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
