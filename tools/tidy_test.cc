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
  [[nodiscard]] std::string run() const {
    const fs::path out = fs::path(root_).concat(".out");
    const std::string command = "'" WEFT_TIDY_PROGRAM "' '" + root_.string() + "' >'" + out.string() + "' 2>&1";
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

TEST_F(TidyTest, RefusesAnotherFoldersInternalHeader) {
  write("weft/low/internal/README.md", "internal\n");
  write("weft/low/internal/secret.h", kHeader);
  write("weft/high/c.cc", kLicence + "#include \"weft/low/internal/secret.h\"\n");
  expect_refused("weft/high/c.cc:2: [internal]");
}

TEST_F(TidyTest, RefusesAnInternalHeaderInAPublicOne) {
  write("weft/low/internal/README.md", "internal\n");
  write("weft/low/internal/secret.h", kHeader);
  write("weft/low/c.h", kHeader + "#include \"weft/low/internal/secret.h\"\n");
  expect_refused("weft/low/c.h:3: [internal]");
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

TEST_F(TidyTest, AllowsTheHarnessInBenchesOnly) {
  write("weft/low/c_bench.cc", kLicence + "#include \"bench/micro/micro.h\"\n");
  EXPECT_TRUE(run().starts_with("passed\n"));
  write("weft/low/c.cc", kLicence + "#include \"bench/micro/micro.h\"\n");
  expect_refused("weft/low/c.cc:2: [include-path]");
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
  write("weft/low/c.cc", lines + lines);
  expect_refused("weft/low/c.cc:1002: [file-length]");
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
