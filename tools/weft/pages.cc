// SPDX-License-Identifier: MIT
#include "tools/weft/pages.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <string_view>

#include "tools/weft/model.h"

namespace weft::cli {

namespace {

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The words after which a command's name goes on: that of a group, or none for weft itself.
struct Level {
  std::string name;
  std::vector<std::pair<std::string, std::string>> words;  // each with its summary
};

// weft itself, then each group.
std::vector<Level> levels_of(const Model& model) {
  std::vector<Level> levels(1);
  for (const Model::Row& row : model.rows) {
    const std::string_view name = row.command->name;
    const std::size_t space = name.find(' ');
    if (space == std::string_view::npos) {
      levels[0].words.emplace_back(name, row.command->summary);
      continue;
    }
    const std::string group(name.substr(0, space));
    if (levels.back().name != group) {
      const auto all = groups();
      const auto found = std::find_if(all.begin(), all.end(), [&](const Group& each) { return each.name == group; });
      levels[0].words.emplace_back(group, found->summary);
      levels.push_back({group, {}});
    }
    levels.back().words.emplace_back(name.substr(space + 1), row.command->summary);
  }
  return levels;
}

std::string joined(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string text;
  for (const auto& [word, summary] : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// "--bind -b ...": the words that an option begins with.
std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : options_of(app)) {
    for (const std::string& name : option->get_lnames()) {
      words += " --" + name;
    }
    for (const std::string& name : option->get_snames()) {
      words += " -" + name;
    }
  }
  return words.empty() ? words : words.substr(1);
}

std::string bash(const Model& model) {
  std::string cases;
  for (const Level& level : levels_of(model)) {
    const std::string options = level.name.empty() ? " " + words_of(*model.app) : " --help";
    cases += "    '" + (level.name.empty() ? "" : " " + level.name) + "') words='" + joined(level.words) + options +
             "' names=1 ;;\n";
  }
  for (const Model::Row& row : model.rows) {
    const std::string name = " " + std::string(row.command->name);
    cases += "    '" + name + "'|'" + name + " '*) words='" + words_of(*row.app) + "' ;;\n";
  }
  return "# Completion of weft for bash.\n"
         "_weft() {\n"
         "  local word words='' names='' typed='' current=${COMP_WORDS[COMP_CWORD]}\n"
         "  COMPREPLY=()\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    [[ $word == -* ]] || typed+=\" $word\"\n"
         "  done\n"
         "  case $typed in\n" +
         cases +
         "    *) return ;;\n"
         "  esac\n"
         "  if [[ -n $names || $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _weft weft\n";
}

// A description inside single quotes and brackets of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out = replaced(text, "'", "'\\''");
  out = replaced(out, "[", "\\[");
  out = replaced(out, "]", "\\]");
  return replaced(out, ":", "\\:");
}

std::string zsh(const Model& model) {
  std::string names;
  std::string words;
  std::string cases;
  for (const Level& level : levels_of(model)) {
    names += level.name.empty() ? "" : " " + level.name;
    words += "    '" + level.name + "') commands=(\n";
    for (const auto& [word, summary] : level.words) {
      words += "      '" + word + ":" + zsh_text(summary) + "'\n";
    }
    words += "    ) ;;\n";
  }
  for (const Model::Row& row : model.rows) {
    cases += "    '" + std::string(row.command->name) + "') _arguments";
    for (const CLI::Option* option : options_of(*row.app)) {
      for (const std::string& name : option->get_lnames()) {
        const bool file = option->get_type_name() == "FILE";
        const std::string value = option->get_expected_max() == 0 ? "" : ":" + option->get_type_name() + ":";
        cases += " \\\n      '*--" + name + "[" + zsh_text(option->get_description()) + "]" + value +
                 (file ? "_files" : "") + "'";
      }
    }
    cases += " \\\n      '*:: :_files' ;;\n";
  }
  return "#compdef weft\n"
         "# Completion of weft for zsh.\n"
         "_weft_commands() {\n"
         "  local -a commands\n"
         "  case $1 in\n" +
         words +
         "  esac\n"
         "  _describe command commands\n"
         "}\n"
         "_weft() {\n"
         "  local command=''\n"
         "  while :; do\n"
         "    if ((CURRENT == 2)); then\n"
         "      _weft_commands \"$command\"\n"
         "      return\n"
         "    fi\n"
         "    command=\"${command:+$command }$words[2]\"\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    [[ '" +
         names +
         " ' == *\" $command \"* ]] || break\n"
         "  done\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_weft \"$@\"\n";
}

std::string fish_text(const std::string& text) { return replaced(replaced(text, "\\", "\\\\"), "'", "\\'"); }

std::string fish(const Model& model) {
  std::string lines;
  for (const Level& level : levels_of(model)) {
    for (const auto& [word, summary] : level.words) {
      lines +=
          "complete -c weft -n '__weft_only " + level.name + "' -f -a " + word + " -d '" + fish_text(summary) + "'\n";
    }
  }
  for (const Model::Row& row : model.rows) {
    for (const CLI::Option* option : options_of(*row.app)) {
      if (option->get_positional()) {
        continue;
      }
      std::string names;
      for (const std::string& name : option->get_lnames()) {
        names += " -l " + name;
      }
      for (const std::string& name : option->get_snames()) {
        names += " -s " + name;
      }
      const bool file = option->get_type_name() == "FILE" || option->get_type_name() == "DIR";
      const std::string value = option->get_expected_max() == 0 ? "" : file ? " -r -F" : " -x";
      lines += "complete -c weft -n '__weft_begins " + std::string(row.command->name) + "'" + names + value + " -d '" +
               fish_text(option->get_description()) + "'\n";
    }
  }
  return "# Completion of weft for fish.\n"
         "function __weft_words\n"
         "  for word in (commandline -opc)[2..]\n"
         "    string match -q -- '-*' $word; or echo $word\n"
         "  end\n"
         "end\n"
         "function __weft_only\n"
         "  set -l words (__weft_words)\n"
         "  test \"$words\" = \"$argv\"\n"
         "end\n"
         "function __weft_begins\n"
         "  set -l words (__weft_words)\n"
         "  set -l count (count $argv)\n"
         "  test (count $words) -ge $count; and test \"$words[1..$count]\" = \"$argv\"\n"
         "end\n" +
         lines;
}

std::string roff(std::string_view text) {
  std::string out = replaced(std::string(text), "\\", "\\e");
  out = replaced(out, "-", "\\-");
  out = replaced(out, "'", "\\(aq");
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string option_paragraphs(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : options_of(app)) {
    std::string head = option->get_positional() ? option->get_name(true) : option->get_name(false, true);
    head = replaced(head, ",", ", ");
    const std::string type = option->get_expected_max() == 0 ? "" : " " + option->get_type_name();
    out += ".TP\n\\fB" + roff(head) + "\\fR" + roff(type) + "\n" + roff(option->get_description()) + "\n";
  }
  return out;
}

std::string page_name(std::string_view command) {
  return command.empty() ? "weft" : "weft-" + replaced(std::string(command), " ", "-");
}

std::string manual_of(const Model& model, const std::string& command) {
  const auto title = [](const std::string& name, const std::string& summary) {
    return ".TH " + roff(name) + " 1\n.SH NAME\n" + roff(name) + " \\- " + roff(summary) + "\n.SH SYNOPSIS\n";
  };
  const std::string codes = ".SH EXIT STATUS\n" + roff(kExitCodes) + "\n";
  if (command.empty()) {
    std::string page =
        title("weft", model.app->get_description()) + ".B weft\nCOMMAND [OPTION...] [ARGUMENT...]\n.SH COMMANDS\n";
    for (const Command& each : commands()) {
      page += ".TP\n.BR " + roff(page_name(each.name)) + " (1)\n" + roff(each.summary) + "\n";
    }
    return page + ".SH OPTIONS\n" + option_paragraphs(*model.app) + codes;
  }
  for (const Model::Row& row : model.rows) {
    if (row.command->name != command) {
      continue;
    }
    std::string page =
        title(page_name(command), std::string(row.command->summary)) + ".B weft " + roff(command) + "\n[OPTION...]";
    for (const CLI::Option* option : options_of(*row.app)) {
      page += option->get_positional() ? " " + roff(option->get_name(true)) : "";
    }
    page += "\n.SH OPTIONS\n" + option_paragraphs(*row.app) + ".SH EXAMPLES\n";
    for (const Example& example : row.command->examples) {
      page += ".TP\n\\fB" + roff(example.line) + "\\fR\n" + roff(example.effect) + "\n";
    }
    return page + codes + ".SH SEE ALSO\n.BR weft (1)\n";
  }
  throw Usage("no command is named '" + printable(command) + "'");
}

}  // namespace

std::string completion(const std::string& shell) {
  const Model model;
  if (shell == "bash") {
    return bash(model);
  }
  if (shell == "zsh") {
    return zsh(model);
  }
  if (shell == "fish") {
    return fish(model);
  }
  throw Usage("completion is for bash, zsh and fish, not for '" + printable(shell) + "'");
}

std::string manual(const std::string& command) { return manual_of(Model(), command); }

void write_manuals(const std::string& directory) {
  const Model model;
  const auto write = [&](std::string_view command) {
    const std::string path = directory + "/" + page_name(command) + ".1";
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << manual_of(model, std::string(command));
    if (!file.flush()) {
      throw Failure(printable(path) + ": the page cannot be written");
    }
  };
  write("");
  for (const Command& each : commands()) {
    write(each.name);
  }
}

}  // namespace weft::cli
