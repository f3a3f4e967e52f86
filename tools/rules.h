// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "tools/tidy_report.h"
#include "tools/tidy_tree.h"

// One function per file rules_*.cc: the whole tree in, findings out.
namespace tidy {

using Files = std::vector<File>;

// Includes: the order of folders and rooms (weft/layers.txt), operating-system headers, test headers, cycles.
void check_layers(const Files& files, Report& report);

// The form of files: licence, include guard, own header first, columns, errno, markers, names of machines, READMEs.
void check_form(const Files& files, Report& report);

// Expressions that compile and go wrong: awaits that GCC 12 miscompiles, a WEFT_TRY that leaks the memory of a new.
void check_expressions(const Files& files, Report& report);

// How large files, rooms and classes may be; and the largest of each as a table.
void check_sizes(const Files& files, Report& report);
void print_sizes(const Files& files);

// A type has a name of its own; and the names that several types have.
void check_names(const Files& files, Report& report);
void print_names(const Files& files);

// Sentences of comments and Markdown files; and how many of each kind every folder has, or each one with its place.
void check_english(const Files& files, Report& report);
void print_english_counts(const Files& files);
void print_english_findings(const Files& files);

}  // namespace tidy
