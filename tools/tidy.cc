// SPDX-License-Identifier: MIT
// tidy [--numbers] [--english] ROOT: the layering and style rules of this repository, as a program; tidy_test.cc proves
// that every rule bites. Prints `file:line: [rule] what is wrong; fix: what to do`, and exits 1 when there is an error;
// warnings do not count. --numbers prints the sizes of rooms, files and classes, and how many sentences each folder
// has to rewrite; --english prints each of those sentences.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tools/rules.h"

int main(int argc, char** argv) {
  bool numbers = false;
  bool english = false;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]).starts_with("--"); ++i) {
    const std::string_view option = argv[i];
    numbers = numbers || option == "--numbers";
    english = english || option == "--english";
  }
  if (i != argc - 1 || !std::filesystem::is_directory(argv[i])) {
    std::fprintf(stderr, "usage: tidy [--numbers] [--english] ROOT\n");
    return 2;
  }
  const tidy::Files files = tidy::read_tree(std::filesystem::canonical(argv[i]));
  tidy::Report report;
  tidy::check_layers(files, report);
  tidy::check_form(files, report);
  tidy::check_expressions(files, report);
  tidy::check_sizes(files, report);
  tidy::check_names(files, report);
  tidy::check_english(files, report);
  if (numbers) {
    tidy::print_sizes(files);
    tidy::print_names(files);
    tidy::print_english_counts(files);
  }
  if (english) {
    tidy::print_english_findings(files);
  }
  return report.print(files.size()) ? 0 : 1;
}
