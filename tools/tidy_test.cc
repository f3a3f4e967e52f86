// SPDX-License-Identifier: MIT
// Each rule of tidy is shown a planted mistake in a tree of its own and must name the file, the line and the rule.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

const std::string kLicence = "// SPDX-License-Identifier: MIT\n";
const std::string kHeader = kLicence + "#pragma once\n";

// A tree with two layers, low and high, that passes; each test plants one mistake.
class TidyTest : public ::testing::Test {
 protected:
  TidyTest() {
    std::string name = (fs::temp_directory_path() / "weft-tidy-test-").string() + std::string(6, 'X');
    root_ = ::mkdtemp(name.data());
    write("weft/layers.txt", "# lowest first\nlow:\nhigh: low\n");
    write("weft/low/README.md", "low\n");
    write("weft/low/a.h", kHeader);
    write("weft/high/README.md", "high\n");
    write("weft/high/b.h", kHeader + "#include \"weft/low/a.h\"\n");
    write("weft/high/b.cc", kLicence + "#include \"weft/high/b.h\"\n");
  }
  ~TidyTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }

  // Runs tidy; its whole output, with "passed" in front when it accepted the tree.
  [[nodiscard]] std::string run(const std::string& options = "") const {
    const fs::path out = fs::path(root_).concat(".out");
    const std::string command =
        "'" WEFT_TIDY_PROGRAM "' " + options + " '" + root_.string() + "' >'" + out.string() + "' 2>&1";
    const bool passed = std::system(command.c_str()) == 0;
    std::ifstream in(out);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    fs::remove(out);
    return (passed ? "passed\n" : "refused\n") + text;
  }

  void expect_refused(const std::string& place_and_rule) const {
    const std::string out = run();
    EXPECT_TRUE(out.starts_with("refused\n")) << out;
    EXPECT_NE(out.find("\n" + place_and_rule), std::string::npos) << "expected " << place_and_rule << "\n" << out;
    EXPECT_NE(out.find("; fix: "), std::string::npos) << out;
    EXPECT_NE(out.find(" 1 errors"), std::string::npos) << out;
  }

  // A folder with rooms that passes: a cellar, a kitchen and a bath that may use it, an attic that may use those three,
  // and a roof in the folder itself.
  void make_rooms() const {
    write("weft/layers.txt",
          "low:\nhigh: low\nhouse: low\n  cellar:\n  kitchen: cellar\n  bath: cellar\n  attic: cellar kitchen bath\n"
          "  .: cellar kitchen bath attic\n");
    for (const char* room : {"", "cellar/", "kitchen/", "bath/", "attic/"}) {
      write("weft/house/" + std::string(room) + "README.md", "room\n");
    }
    write("weft/house/cellar/c.h", kHeader + "#include \"weft/low/a.h\"\n");
    write("weft/house/kitchen/k.h", kHeader + "#include \"weft/house/cellar/c.h\"\n");
    write("weft/house/bath/b.h", kHeader + "#include \"weft/house/cellar/c.h\"\n");
    write("weft/house/attic/a.h", kHeader + "#include \"weft/house/kitchen/k.h\"\n");
    write("weft/house/roof.h", kHeader + "#include \"weft/house/attic/a.h\"\n");
    ASSERT_TRUE(run().starts_with("passed\n")) << run();
  }

  fs::path root_;
};

TEST_F(TidyTest, AcceptsATreeThatKeepsTheRules) {
  const std::string out = run();
  EXPECT_TRUE(out.starts_with("passed\n")) << out;
  EXPECT_NE(out.find(" 0 errors, 0 warnings"), std::string::npos) << out;
}

TEST_F(TidyTest, RefusesAnInclusionUpwardWithFileAndLine) {
  write("weft/low/upward.h", kHeader + "\n#include \"weft/high/b.h\"\n");
  expect_refused("weft/low/upward.h:4: [layer]");
}

TEST_F(TidyTest, RefusesTheUmbrellaHeaderInsideTheLibrary) {
  write("weft/weft.h", kHeader + "#include \"weft/high/b.h\"\n");
  write("weft/high/c.h", kHeader + "#include \"weft/weft.h\"\n");
  expect_refused("weft/high/c.h:3: [layer]");
}

TEST_F(TidyTest, RefusesAFolderWithoutAPlaceInTheOrder) {
  write("weft/drawer/README.md", "drawer\n");
  write("weft/drawer/c.h", kHeader);
  expect_refused("weft/drawer/c.h:1: [layer-unknown]");
}

TEST_F(TidyTest, RefusesAnOrderThatIsNotLowestFirst) {
  write("weft/layers.txt", "low: high\nhigh:\n");
  EXPECT_NE(run().find("weft/layers.txt:1: [layer-order]"), std::string::npos);
}

TEST_F(TidyTest, RefusesAnInclusionUpwardBetweenRooms) {
  make_rooms();
  write("weft/house/cellar/d.h", kHeader + "#include \"weft/house/attic/a.h\"\n");
  expect_refused("weft/house/cellar/d.h:3: [room]");
}

TEST_F(TidyTest, RefusesAnInclusionSidewaysBetweenRooms) {
  make_rooms();
  write("weft/house/kitchen/k.cc",
        kLicence + "#include \"weft/house/kitchen/k.h\"\n#include \"weft/house/bath/b.h\"\n");
  expect_refused("weft/house/kitchen/k.cc:3: [room]");
}

TEST_F(TidyTest, RefusesTheRootOfAFolderInItsRooms) {
  make_rooms();
  write("weft/house/attic/b.h", kHeader + "#include \"weft/house/roof.h\"\n");
  expect_refused("weft/house/attic/b.h:3: [room]");
}

TEST_F(TidyTest, RefusesARoomWithoutAPlaceInItsFolder) {
  make_rooms();
  write("weft/house/drawer/README.md", "drawer\n");
  write("weft/house/drawer/d.h", kHeader);
  expect_refused("weft/house/drawer/d.h:1: [room-unknown]");
}

TEST_F(TidyTest, RefusesARoomInAFolderWithoutRooms) {
  write("weft/low/deep/README.md", "deep\n");
  write("weft/low/deep/d.h", kHeader);
  expect_refused("weft/low/deep/d.h:1: [room-unknown]");
}

TEST_F(TidyTest, RefusesRoomsThatAreNotLowestFirst) {
  write("weft/layers.txt", "low:\nhigh: low\n  a: b\n  b:\n  .:\n");
  EXPECT_NE(run().find("weft/layers.txt:3: [layer-order]"), std::string::npos);
}

TEST_F(TidyTest, AllowsATestEveryRoomOfItsFolderButNoHigherFolder) {
  make_rooms();
  for (const char* name : {"c_test.cc", "c_fuzz.cc", "test_c.h", "test_d.cc"}) {
    const std::string start = std::string(name).ends_with(".h") ? kHeader : kLicence;
    write("weft/house/cellar/" + std::string(name), start + "#include \"weft/house/attic/a.h\"\n");
  }
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/low/c_test.cc", kLicence + "#include \"weft/house/attic/a.h\"\n");
  expect_refused("weft/low/c_test.cc:2: [layer]");
}

TEST_F(TidyTest, RefusesATestHeaderInTheLibrary) {
  write("weft/low/test_c.h", kHeader);
  write("weft/low/c_test.cc", kLicence + "#include \"weft/low/test_c.h\"\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "#include \"weft/low/test_c.h\"\n");
  expect_refused("weft/low/c.cc:2: [test-header]");
}

TEST_F(TidyTest, RefusesOperatingSystemHeadersOutsideSys) {
  write("weft/low/c.cc", kLicence + "#include <sys/epoll.h>\n");
  expect_refused("weft/low/c.cc:2: [os-header]");
}

TEST_F(TidyTest, AllowsOperatingSystemHeadersInSys) {
  write("weft/layers.txt", "low:\nsys:\nhigh: low\n");
  write("weft/sys/README.md", "sys\n");
  write("weft/sys/c.cc", kLicence + "#include <sys/epoll.h>\nint code() { return errno; }\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
}

TEST_F(TidyTest, RefusesErrnoOutsideSysButNotInProse) {
  write("weft/low/c.cc", kLicence + "// errno is not read here\nconst char* text = \"errno\";\nint os_errno;\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "int code() { return errno; }\n");
  expect_refused("weft/low/c.cc:2: [errno]");
}

TEST_F(TidyTest, RefusesAnAwaitInAConditionThatDeclaresNothing) {
  for (const char* code : {"if (co_await f()) {}", "if (!g(co_await f(1, 2))) {}", "while (a && b == co_await f()) {}",
                           "for (; co_await f();) {}", "switch (int(co_await f())) {}", "do {} while (co_await f());",
                           "if constexpr (x) {} else if (x && co_await f()) {}", "if (x)\n  if (\nco_await f()) {}"}) {
    write("weft/low/c.cc", kLicence + "T c() {\n" + code + "\n}\n");
    EXPECT_NE(run().find(": [await-in-condition]"), std::string::npos) << code;
  }
  write("weft/low/c.cc", kLicence + "T c() {\n\n  if (co_await f()) {}\n}\n");
  expect_refused("weft/low/c.cc:4: [await-in-condition]");
}

TEST_F(TidyTest, AllowsAnAwaitThatIsNamedOrBehindACondition) {
  for (const char* code :
       {"if (const auto r = co_await f(); !r) {}", "if (const bool b = co_await f()) {}", "if (x) { co_await f(); }",
        "while (auto& r = co_await f()) {}", "for (const auto x : co_await f()) {}",
        "for (int i = 0; co_await f(); ++i) {}", "switch (std::vector<int> v = co_await f(); v[0]) {}",
        "if (auto [a, b] = co_await f(); a) {}", "if (run([]() -> T { co_await f(); })) {}",
        "(void)co_await g(co_await f());", "// if (co_await f())", "co_return co_await f() ? 1 : 0;"}) {
    write("weft/low/c.cc", kLicence + "T c() {\n" + code + "\n}\n");
    EXPECT_TRUE(run().starts_with("passed\n")) << code << run();
  }
}

TEST_F(TidyTest, RefusesATryInTheArgumentsOfANew) {
  for (const char* code : {"return f(new T(1, WEFT_TRY(g())));", "::new (place(1)) a::T(WEFT_TRY(g()));",
                           "p = new a::T<int, B<C>>{\nx, h(WEFT_TRY(g()))};"}) {
    write("weft/low/c.cc", kLicence + "R c() {\n" + code + "\n}\n");
    EXPECT_NE(run().find(": [try-in-new]"), std::string::npos) << code;
  }
  write("weft/low/c.cc", kLicence + "R c() {\n\n  return new T(WEFT_TRY(g()));\n}\n");
  expect_refused("weft/low/c.cc:4: [try-in-new]");
  for (const char* code : {"int x = WEFT_TRY(g()); return new T(x);", "f(new T, g(WEFT_TRY(h())));",
                           "renew(WEFT_TRY(g()));", "// new T(WEFT_TRY(g()))"}) {
    write("weft/low/c.cc", kLicence + "R c() {\n" + code + "\n}\n");
    EXPECT_TRUE(run().starts_with("passed\n")) << code << run();
  }
}

TEST_F(TidyTest, RefusesAPathRelativeToTheIncluder) {
  write("weft/low/c.cc", kLicence + "#include \"a.h\"\n");
  expect_refused("weft/low/c.cc:2: [include-path]");
}

TEST_F(TidyTest, AllowsTestSupportInTestsOnly) {
  write("weft/low/c_test.cc", kLicence + "#include \"tests/support/model.h\"\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "#include \"tests/support/model.h\"\n");
  expect_refused("weft/low/c.cc:2: [include-path]");
}

TEST_F(TidyTest, RefusesABenchInTheLibrary) {
  write("bench/micro/low_c.cc", kLicence + "#include \"bench/micro/micro.h\"\n#include \"weft/low/a.h\"\n");
  write("bench/micro/README.md", "micro\n");
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/low/c_bench.cc", kLicence + "#include \"bench/micro/micro.h\"\n");
  expect_refused("weft/low/c_bench.cc:2: [include-path]");
}

TEST_F(TidyTest, RefusesACycleOfHeaders) {
  write("weft/low/c.h", kHeader + "#include \"weft/low/d.h\"\n");
  write("weft/low/d.h", kHeader + "#include \"weft/low/c.h\"\n");
  expect_refused("weft/low/d.h:3: [cycle]");
}

TEST_F(TidyTest, RefusesAHeaderWithoutPragmaOnce) {
  write("weft/low/c.h", kLicence);
  expect_refused("weft/low/c.h:1: [pragma-once]");
}

TEST_F(TidyTest, RefusesAFileWithoutItsLicenceLine) {
  write("weft/low/c.cc", "int x;\n");
  expect_refused("weft/low/c.cc:1: [spdx]");
}

TEST_F(TidyTest, RefusesTheOwnHeaderInSecondPlace) {
  write("weft/low/a.cc", kLicence + "#include <vector>\n#include \"weft/low/a.h\"\n");
  expect_refused("weft/low/a.cc:2: [own-header-first]");
}

TEST_F(TidyTest, CountsColumnsInCharactersNotBytes) {
  std::string wide;
  for (int i = 0; i < 117; ++i) {
    wide += "\xc2\xb5";
  }
  write("weft/low/c.cc", kLicence + "// " + wide + "\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "// " + wide + "s\n");
  expect_refused("weft/low/c.cc:2: [line-length]");
}

TEST_F(TidyTest, RefusesTheWholeOfStdButNotItsLiterals) {
  write("weft/low/c.cc", kLicence + "using namespace std::chrono_literals;\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "using  namespace std;\n");
  expect_refused("weft/low/c.cc:2: [using-namespace-std]");
}

TEST_F(TidyTest, RefusesMarkersInAnyTextFile) {
  write("notes.md", std::string("one\nFIX") + "ME later\n");
  expect_refused("notes.md:2: [marker]");
}

TEST_F(TidyTest, AcceptsAPromiseOnlyWithItsIssue) {
  write("notes.md", std::string("TO") + "DO(#12): later\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("notes.md", std::string("TO") + "DO: later\n");
  expect_refused("notes.md:1: [marker]");
}

TEST_F(TidyTest, WarnsOfLongFilesAndRefusesVeryLongOnes) {
  std::string lines = kLicence;
  for (int i = 0; i < 500; ++i) {
    lines += "\n";
  }
  write("weft/low/c.cc", lines);
  const std::string out = run();
  EXPECT_TRUE(out.starts_with("passed\nweft/low/c.cc:501: warning: [file-length]")) << out;
  for (int i = 0; i < 100; ++i) {
    lines += "\n";
  }
  write("weft/low/c.cc", lines);
  expect_refused("weft/low/c.cc:601: [file-length]");
}

TEST_F(TidyTest, RefusesARoomOfTwentySixStemsAndCountsNoTestTwice) {
  for (int i = 1; i < 25; ++i) {  // a.h is one
    const std::string stem = "weft/low/s" + std::to_string(i);
    for (const char* end : {".cc", "_test.cc", "_fuzz.cc", "_model_test.cc", "_property_test.cc"}) {
      write(stem + end, kLicence);
    }
  }
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/low/one_too_many.cc", kLicence);
  expect_refused("weft/low:1: [room-size] 26 stems");
}

TEST_F(TidyTest, RefusesALargeClassAndCountsItsMembersOnly) {
  write("weft/layers.txt", "low:\nhigh: low\nmsg: low\n  connection:\n");
  write("weft/msg/README.md", "msg\n");
  write("weft/msg/connection/README.md", "connection\n");
  std::string members;
  for (int i = 0; i < 19; ++i) {
    members += "  int number" + std::to_string(i) + (i % 2 == 0 ? "_ = 0;\n" : "_ WEFT_GUARDED_BY(lock(0)) = 0;\n");
  }
  const std::string start =
      kHeader + "template <class T> class alignas(64) Big final : public Base<T> {\n public:\n" +
      "  Big() noexcept : first_{1}, second_(2) { int local; }\n" +
      "  bool operator==(const Big& other) const = default;\n" +
      "  int call(int with = 3) const { return with; }  // not_a_member_;\n" +
      "  static constexpr int kMax = 4;\n  using Name = int;\n  enum class Kind { a, b };\n" +
      "  struct Nested { int one; int two; };\n  friend class Other;\n" + " private:\n  struct Later;\n" + members +
      "  std::map<int, std::function<void(int, int)>> table_;\n  Nested nested_{1, 2};\n" +
      "  alignas(64) std::atomic<int> word_{0};\n  void (*hook_)(int) = nullptr;\n" + "  unsigned bits_ : 3;\n";
  write("weft/msg/connection/big.h", start + "  int last_[4];\n};\n");
  EXPECT_TRUE(run("--numbers").find("          25  Big  weft/msg/connection/big.h:3") != std::string::npos)
      << run("--numbers");
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/msg/connection/big.h", start + "  int last_[4], one_too_many_;\n};\n");
  expect_refused("weft/msg/connection/big.h:3: [class-size] Big has 26 data members");
  write("weft/msg/connection/big.h", kHeader + "struct BigOptions {\n" + members + members + "};\n");
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
}

TEST_F(TidyTest, RefusesASecondTypeOfOneName) {
  write("weft/low/a.h", kHeader + "namespace low {\nclass Door;\nclass Door final : public Wall {};\n}\n");
  write("weft/high/c.h", kHeader + "namespace high {\nclass Door;\nstruct House {\n  struct Door {};\n};\n}\n");
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/low/b.h", kHeader + "namespace low {\n\ntemplate <typename T>\nstruct Door {};\n}\n");
  expect_refused("weft/low/b.h:6: [type-name] Door is also a type of weft/low/a.h");
  EXPECT_NE(run("--numbers").find("    2  Door: weft/low/a.h:5 weft/low/b.h:6\n"), std::string::npos)
      << run("--numbers");
  write("weft/low/b.h", kHeader + "namespace low::rpc {\nstruct Door {};\n}\n");  // a program writes rpc::Door
  EXPECT_TRUE(run().starts_with("passed\n")) << run();
  write("weft/high/c.h", kHeader + "namespace high::rpc {\nstruct Door {};\n}\n");
  expect_refused("weft/low/b.h:4: [type-name] rpc::Door is also a type of weft/high/c.h");
}

TEST_F(TidyTest, PrintsTheSizesOfRoomsAndTheirLargestFiles) {
  const std::string out = run("--numbers");
  EXPECT_NE(out.find("\nweft/high                    2     1  b.h, 3 lines\n"), std::string::npos) << out;
}

TEST_F(TidyTest, FindsSentencesWithoutASubjectAndWeakVerbsInCommentsAndProse) {
  write("weft/low/c.cc", kLicence + "// First. " + "What" +
                             " the sender leaves is\n// flushed.\nint x;  // it comes\n" +
                             "// to nothing\nconst char* text = \"Who sends\";\n");
  write("notes.md",
        "# What stands here\n\nOne, and `Who` too. Who sends? Who\nreads is\ntold apart.\n```\nWho codes\n```\n");
  const std::string out = run("--english");
  EXPECT_NE(out.find("weft/low/c.cc:2: [bare-subject]"), std::string::npos) << out;
  EXPECT_NE(out.find("weft/low/c.cc:4: [weak-phrase] `comes to nothing`"), std::string::npos) << out;
  EXPECT_NE(out.find("notes.md:3: [bare-subject]"), std::string::npos) << out;
  EXPECT_NE(out.find("notes.md:5: [weak-phrase] `told apart`"), std::string::npos) << out;
  EXPECT_NE(run("--numbers").find("\nweft/low                            1           1             0\n"),
            std::string::npos)
      << run("--numbers");
}

TEST_F(TidyTest, RefusesASentenceWithoutASubject) {
  write("notes.md", "Good.\nWhat the sender leaves is flushed.\n");
  expect_refused("notes.md:2: [bare-subject]");
}

TEST_F(TidyTest, RefusesAWeakPhrase) {
  write("notes.md", "The attempt comes to nothing.\n");
  expect_refused("notes.md:1: [weak-phrase]");
}

TEST_F(TidyTest, RefusesAPhraseThatTheRulesOfEnglishForbid) {
  for (const char* const text : {
           "The frame goes behind the last one.",
           "The name is no address.",
           "A line that is none of the list.",
           "Send lock, as the next two.",
           "It drops the message, and says so.",
           "The peer is told of the end.",
           "The hub knows the name.",
           "Nobody reads it.",
           "Every type but DGRAM has it.",
           "The headers are of use.",
           "It counts what was lost.",
           "Takes a number. False: there is no number.",
           "Null: no memory.",
           "It returns at once, or else waits.",
           "The thread works all the same.",
           "It fails for want of memory.",
       }) {
    write("notes.md", std::string("Good.\n") + text + "\n");
    SCOPED_TRACE(text);
    expect_refused("notes.md:2: [english] `");
  }
}

TEST_F(TidyTest, RefusesAForbiddenPhraseInATable) {
  write("notes.md", "| call | effect |\n|---|---|\n| `what()` | nobody reads it |\n");
  expect_refused("notes.md:3: [english] `nobody`");
}

TEST_F(TidyTest, TakesThePhrasesThatAreRightInTheirPlace) {
  write("notes.md",
        "The peer stays behind a proxy. There is no name, and it is no longer there. RFC 9112 says so; the table says "
        "so.\n"
        "What is a name? Of what kind is it? `what()` and \"nobody\" are quotes. It is not only this, but that. All "
        "but one.\n"
        "A known name, a wanted message. As the next step, it reads. Else it waits.\n");
  const std::string out = run();
  EXPECT_TRUE(out.starts_with("passed\n")) << out;
}

TEST_F(TidyTest, CountsTheWordsOfASentenceAcrossLines) {
  std::string words;
  for (int i = 0; i < 20; ++i) {
    words += " word";
  }
  write("weft/low/c.cc", kLicence + "//" + words + "\n//" + words + ". Another one.\n");
  EXPECT_EQ(run("--english").find("long-sentence"), std::string::npos) << run("--english");
  write("weft/low/c.cc", kLicence + "//" + words + " more\n//" + words + ". Another one.\n");
  const std::string out = run("--english");
  EXPECT_NE(out.find("weft/low/c.cc:2: [long-sentence] 41 words"), std::string::npos) << out;
  EXPECT_TRUE(out.starts_with("passed\n")) << out;
}

TEST_F(TidyTest, RefusesAFolderOfSourcesWithoutReadme) {
  fs::remove(root_ / "weft/low/README.md");
  expect_refused("weft/low/README.md:1: [readme]");
}

TEST_F(TidyTest, RefusesAReadmeThatIsTooLong) {
  write("weft/low/README.md", std::string(31, '\n'));
  expect_refused("weft/low/README.md:31: [readme]");
}

TEST_F(TidyTest, RefusesPathsOfOneMachine) {
  write("run.sh", std::string("cd /ho") + "me/someone/weft\n");
  expect_refused("run.sh:1: [machine-path]");
}

TEST_F(TidyTest, RefusesNamesOfRegistryHosts) {
  write("requirements.txt", std::string("\n--index-url https://pypi") + ".org/simple\n");
  expect_refused("requirements.txt:2: [registry-host]");
}

TEST_F(TidyTest, IgnoresWhatToolsGenerate) {
  write("build/junk.cc", "using namespace std;\n");
  write(".venv/lib/junk.md", std::string("FIX") + "ME\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
}

}  // namespace
