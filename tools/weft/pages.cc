// SPDX-License-Identifier: MIT
#include "tools/weft/pages.h"

#include <CLI/CLI.hpp>
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
  std::string names;
  std::string cases;
  for (const auto& [sub, run] : model.runs) {
    names += " " + sub->get_name();
    cases += "    " + sub->get_name() + ") words='" + words_of(*sub) + "' ;;\n";
  }
  return "# Completion of weft for bash.\n"
         "_weft() {\n"
         "  local words current=${COMP_WORDS[COMP_CWORD]}\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W '" +
         names.substr(1) + " " + words_of(*model.app) +
         "' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "    *) return ;;\n"
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
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
  std::string cases;
  for (const auto& [sub, run] : model.runs) {
    names += "    '" + sub->get_name() + ":" + zsh_text(sub->get_description()) + "'\n";
    cases += "    " + sub->get_name() + ") _arguments";
    for (const CLI::Option* option : options_of(*sub)) {
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
         "_weft() {\n"
         "  local -a commands=(\n" +
         names +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_weft \"$@\"\n";
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

}  // namespace

std::string completion(const std::string& shell) {
  const Model model;
  if (shell == "bash") {
    return bash(model);
  }
  if (shell == "zsh") {
    return zsh(model);
  }
  throw Usage("completion is for bash and zsh, not for '" + printable(shell) + "'");
}

std::string manual(const std::string& command) {
  const Model model;
  const auto title = [](const std::string& name, const std::string& summary) {
    return ".TH " + roff(name) + " 1\n.SH NAME\n" + roff(name) + " \\- " + roff(summary) + "\n.SH SYNOPSIS\n";
  };
  const std::string codes = ".SH EXIT STATUS\n" + roff(kExitCodes) + "\n";
  if (command.empty()) {
    std::string page =
        title("weft", model.app->get_description()) + ".B weft\nCOMMAND [OPTION...] [ARGUMENT...]\n.SH COMMANDS\n";
    for (const Command& each : commands()) {
      const std::string name(each.name);
      page += ".TP\n.BR weft\\-" + name + " (1)\n" + roff(each.summary) + "\n";
    }
    return page + ".SH OPTIONS\n" + option_paragraphs(*model.app) + codes;
  }
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const Command& row = commands()[i];
    if (row.name != command) {
      continue;
    }
    std::string page =
        title("weft-" + command, std::string(row.summary)) + ".B weft " + roff(command) + "\n[OPTION...]";
    for (const CLI::Option* option : options_of(*model.runs[i].first)) {
      page += option->get_positional() ? " " + roff(option->get_name(true)) : "";
    }
    page += "\n.SH OPTIONS\n" + option_paragraphs(*model.runs[i].first) + ".SH EXAMPLES\n";
    for (const Example& example : row.examples) {
      page += ".TP\n\\fB" + roff(example.line) + "\\fR\n" + roff(example.effect) + "\n";
    }
    return page + codes + ".SH SEE ALSO\n.BR weft (1)\n";
  }
  throw Usage("no command is named '" + printable(command) + "'");
}

}  // namespace weft::cli
