// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

#define FUZZER(name) extern "C" int weft_##name(const std::uint8_t* data, std::size_t size);
#include "fuzzers.inc"
#undef FUZZER

namespace {

using Input = std::vector<std::uint8_t>;

constexpr int kMutations = 2000;
constexpr std::size_t kLargest = 2048;  // bytes of a mutated input

struct Fuzzer {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
};

const Fuzzer kFuzzers[] = {
#define FUZZER(name) {#name, weft_##name},
#include "fuzzers.inc"
#undef FUZZER
};

const Input* running = nullptr;

// Prints the input that a fuzzer has when the process dies.
void show_input() {
  const char* digits = "0123456789abcdef";
  std::string line = "\nthe input: ";
  if (running != nullptr) {
    for (const std::uint8_t byte : *running) {
      line += digits[byte >> 4U];
      line += digits[byte & 15U];
    }
  }
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::vector<Input> corpus_of(const std::string& name) {
  std::vector<Input> inputs;
  std::ifstream file(std::string(WEFT_CORPUS) + "/" + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    Input input;
    for (std::size_t at = 0; at + 1 < line.size(); at += 2) {
      input.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(at, 2), nullptr, 16)));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// One to four changes: a bit, a byte, a piece that is cut out or doubled, or the end of another input.
Input mutated(Input input, const std::vector<Input>& corpus, std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(input.size());
    const std::size_t length = below(std::min<std::size_t>(input.size() - at, 16) + 1);
    const auto from = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0:
        if (!input.empty()) {
          input[at] = static_cast<std::uint8_t>(input[at] ^ (1U << below(8)));
        }
        break;
      case 1:
        if (!input.empty()) {
          input[at] = static_cast<std::uint8_t>(below(3) == 0 ? 255 * below(2) : below(256));
        }
        break;
      case 2: input.erase(from, to); break;
      case 3: {
        const Input piece(from, to);
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      case 4: input.insert(from, static_cast<std::uint8_t>(below(256))); break;
      default: {
        const Input& other = corpus[below(corpus.size())];
        input.resize(at);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())), other.end());
      }
    }
  }
  input.resize(std::min(input.size(), kLargest));
  return input;
}

class Replay : public testing::TestWithParam<Fuzzer> {
 protected:
  Replay() : before_(std::signal(SIGABRT, [](int) { show_input(); })) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    __sanitizer_set_death_callback(show_input);
#endif
  }
  ~Replay() override {
    running = nullptr;
    std::signal(SIGABRT, before_);
  }
  static void run(const Input& input) {
    running = &input;
    EXPECT_EQ(GetParam().run(input.data(), input.size()), 0);
  }

 private:
  void (*before_)(int);
};

TEST_P(Replay, TakesWhatWasFoundAndMutationsOfIt) {
  std::vector<Input> corpus = corpus_of(GetParam().name);
  EXPECT_FALSE(corpus.empty()) << "no corpus/" << GetParam().name << ".txt: see README.md";
  corpus.emplace_back();
  for (const Input& input : corpus) {
    run(input);
  }
  std::mt19937 random(20261125);
  for (int i = 0; i < kMutations; ++i) {
    run(mutated(corpus[random() % corpus.size()], corpus, random));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Replay, testing::ValuesIn(kFuzzers),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
