// SPDX-License-Identifier: MIT
// Counts the words of a file, or of a text of its own, on every core: each core has its own table, and map_reduce()
// adds the tables. ./word_count [file]
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/sharded.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;

using Table = std::map<std::string, std::size_t, std::less<>>;

bool is_space(char byte) { return std::isspace(static_cast<unsigned char>(byte)) != 0; }

struct Words {  // of one core
  Table counts;

  void add(std::string_view text) {
    for (auto at = text.begin(); at != text.end();) {
      const auto begin = std::find_if_not(at, text.end(), is_space);
      at = std::find_if(begin, text.end(), is_space);
      if (begin != at) {
        ++counts[std::string(begin, at)];
      }
    }
  }
};

// The part of the text for one of several cores; no part begins or ends inside a word.
std::string_view part_of(std::string_view text, std::size_t core, std::size_t cores) {
  const auto border = [text](std::size_t at) {
    return static_cast<std::size_t>(std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_space) -
                                    text.begin());
  };
  const std::size_t begin = core == 0 ? 0 : border(text.size() * core / cores);
  return text.substr(begin, border(text.size() * (core + 1) / cores) - begin);
}

rt::Task<Result<Table>> count_words(rt::Sharded<Words>* words, std::shared_ptr<const std::string> text) {
  auto adding = words->invoke_on_all(
      [text, cores = words->size()](Words& mine) { mine.add(part_of(*text, rt::Core::current()->index(), cores)); });
  WEFT_CO_TRY(co_await std::move(adding));
  co_return co_await words->map_reduce([](Words& mine) { return std::move(mine.counts); }, Table(),
                                       [](Table& all, const Table& part) {
                                         for (const auto& [word, count] : part) {
                                           all[word] += count;
                                         }
                                       });
}

std::string read_text(const char* path) {
  if (path != nullptr) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    text += "the warp stays and the weft goes to and fro\n";
  }
  return text;
}

Result<void> run(const char* path) {
  const auto text = std::make_shared<const std::string>(read_text(path));
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto words = WEFT_TRY(rt::Sharded<Words>::start(*runtime));  // a Words on each core

  auto counting = WEFT_TRY(rt::spawn(runtime->core(0), count_words(words.get(), text)));
  const Table all = WEFT_TRY(counting.get());
  WEFT_TRY(words->stop(sys::now() + std::chrono::seconds(5)));  // ends each Words on its own core

  Words alone;
  alone.add(*text);
  if (alone.counts != all) {
    return Error(Errc::other, "one core alone counts other words");
  }
  std::vector<std::pair<std::string, std::size_t>> most(all.begin(), all.end());
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < std::min<std::size_t>(most.size(), 3); ++i) {
    std::printf("%8zu %s\n", most[i].second, most[i].first.c_str());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto result = run(argc > 1 ? argv[1] : nullptr); !result) {
    std::fprintf(stderr, "word_count: %s\n", result.error().message().c_str());
    return 1;
  }
}
