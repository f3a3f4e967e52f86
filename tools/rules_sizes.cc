// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tools/class_members.h"
#include "tools/rules.h"

namespace tidy {
namespace {

constexpr std::size_t kMaxFileLines = 600;
constexpr std::size_t kComfortableLines = 400;  // past this: a warning
constexpr std::size_t kMaxStems = 25;           // of a room
constexpr std::size_t kMaxMembers = 25;         // of a class of weft/
constexpr std::size_t kClassesShown = 10;

// Options have a member each.
std::size_t max_members(const ClassSize& found) {
  return found.name.ends_with("Options") ? found.members : kMaxMembers;
}

// "x" for x.h, x.cc, x_test.cc and its other tests and fuzzers: tests travel with their stem.
std::string stem_of(const std::filesystem::path& path) {
  static const std::vector<std::string_view> suffixes{"_conformance_test", "_property_test", "_model_test", "_test",
                                                      "_fuzz"};
  std::string stem = path.stem().string();
  for (const std::string_view suffix : suffixes) {
    if (stem.ends_with(suffix)) {
      stem.resize(stem.size() - suffix.size());
      break;
    }
  }
  return stem;
}

struct Room {
  std::size_t files = 0;
  std::set<std::string> stems;
  std::size_t largest = 0;
  std::string largest_file;
};

// The C++ files of each folder of weft/, by the folder's path.
std::map<std::string, Room> rooms_of(const Files& files) {
  std::map<std::string, Room> rooms;
  for (const File& file : files) {
    const std::filesystem::path path = file.path;
    const std::string folder = path.parent_path().generic_string();
    if (!file.path.starts_with("weft/") || !is_cpp(file.path) || folder == "weft") {
      continue;
    }
    Room& room = rooms[folder];
    ++room.files;
    room.stems.insert(stem_of(path));
    if (file.lines.size() > room.largest) {
      room.largest = file.lines.size();
      room.largest_file = path.filename().string();
    }
  }
  return rooms;
}

void check_file_length(const File& file, Report& report) {
  const std::size_t count = file.lines.size();
  const std::string what = std::to_string(count) + " lines";
  if (count > kMaxFileLines) {
    report.error(file.path, count, "file-length", what,
                 "find the second thing that hides in this file and move it out");
  } else if (count > kComfortableLines) {
    report.warning(file.path, count, "file-length", what, "look for the second thing that hides in this file");
  }
}

}  // namespace

void check_sizes(const Files& files, Report& report) {
  for (const File& file : files) {
    if (is_cpp(file.path) || file.path.ends_with(".py")) {
      check_file_length(file, report);
    }
    if (is_cpp(file.path) && file.path.starts_with("weft/")) {
      for (const ClassSize& found : classes_of(file)) {
        if (found.members > max_members(found)) {
          report.error(file.path, found.line, "class-size",
                       found.name + " has " + std::to_string(found.members) + " data members",
                       "find the second thing that hides in this class and make it a class of its own");
        }
      }
    }
  }
  for (const auto& [path, room] : rooms_of(files)) {
    if (room.stems.size() > kMaxStems) {
      report.error(path, 1, "room-size", std::to_string(room.stems.size()) + " stems",
                   "find the second room that hides in this one and give it a folder");
    }
  }
}

void print_sizes(const Files& files) {
  std::printf("%-24s %5s %5s  largest file\n", "room", "files", "stems");
  for (const auto& [path, room] : rooms_of(files)) {
    std::printf("%-24s %5zu %5zu  %s, %zu lines\n", path.c_str(), room.files, room.stems.size(),
                room.largest_file.c_str(), room.largest);
  }
  std::multimap<std::size_t, std::string, std::greater<>> classes;
  for (const File& file : files) {
    if (file.path.starts_with("weft/") && is_cpp(file.path)) {
      for (const ClassSize& found : classes_of(file)) {
        classes.emplace(found.members, found.name + "  " + file.path + ":" + std::to_string(found.line));
      }
    }
  }
  std::printf("\ndata members  class\n");
  std::size_t shown = 0;
  for (const auto& [members, name] : classes) {
    if (++shown > kClassesShown) {
      break;
    }
    std::printf("%12zu  %s\n", members, name.c_str());
  }
}

}  // namespace tidy
