// SPDX-License-Identifier: MIT
#include "weft/serve/config/config.h"

#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/logging/log.h"
#include "weft/serve/config/test_config.h"
#include "weft/serve/server/test_client.h"

namespace weft::serve::config {
namespace {

using Subject = test::ConfigFileTest;

class ConfigReloadTest : public Subject {
 protected:
  static std::string text(const std::string& server, const std::string& listener = "") {
    return "[server]\n" + server + "[[listener]]\nendpoint = \"tcp://127.0.0.1:0\"\n" + listener;
  }
  void expect_refused(const std::string& text, const std::string& problem) {
    const auto before = config_->current();
    write(text);
    EXPECT_EQ(config_->reload(&problems_).error(), Errc::invalid_argument);
    EXPECT_EQ(told(), problem);
    EXPECT_EQ(config_->current(), before);
  }

  std::unique_ptr<Config> config_;
};

TEST_F(ConfigReloadTest, ANewSnapshotReplacesTheOldOneWhichStaysAsItIs) {
  ProgramKeys keys;
  const auto motto = keys.text("motto", "one", "A text", Change::at_run_time);
  config_ = load(text("sessions_max = 5\n"), keys);
  ASSERT_NE(config_, nullptr) << told();
  const auto first = config_->current();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> changes;
  config_->on_change([&](const Snapshot& now, const Snapshot& before) {
    changes.emplace_back(now.generation(), before.generation());
    EXPECT_EQ(config_->current().get(), &now);
    EXPECT_EQ(config_->reload().error(), Errc::invalid_state);  // one at a time
  });
  write(text("sessions_max = 6\n") + "[app]\nmotto = \"two\"\n");
  ASSERT_TRUE(config_->reload(&problems_)) << told();
  EXPECT_EQ(config_->current()->server.sessions_max, 6u);
  EXPECT_EQ(config_->current()->get(motto), "two");
  EXPECT_EQ(first->server.sessions_max, 5u);
  EXPECT_EQ(first->get(motto), "one");
  EXPECT_EQ(changes, (decltype(changes){{2, 1}}));
}

TEST_F(ConfigReloadTest, OneWrongValueOrOneKeyOfTheStartRefusesTheWholeFile) {
  ProgramKeys keys;
  (void)keys.integer("workers", 4, {1, 64}, "Threads", Change::at_start);
  config_ = load(text("cores = 2\nsessions_max = 5\n"), keys);
  ASSERT_NE(config_, nullptr) << told();
  int changes = 0;
  config_->on_change([&](const Snapshot&, const Snapshot&) { ++changes; });
  expect_refused(text("cores = 2\nsessions_max = 0\n"), "3:1: server.sessions_max: 0 is not in 1 to 1000000000\n");
  expect_refused(text("cores = 3\nsessions_max = 9\n"),
                 "2:1: server.cores: this key changes only at a start: 2 is in use, and not 3\n");
  expect_refused(text("sessions_max = 9\n"),
                 " server.cores: this key changes only at a start: 2 is in use, and not 0\n");
  expect_refused(text("cores = 2\nsessions_max = 9\n", "backlog = 7\n"),
                 "6:1: listener[0].backlog: this key changes only at a start: 1024 is in use, and not 7\n");
  expect_refused(text("cores = 2\nsessions_max = 9\n") + "[app]\nworkers = 5\n",
                 "7:1: app.workers: this key changes only at a start: 4 is in use, and not 5\n");
  expect_refused("[server]\ncores = 2\n", " listener: listeners come and go only at a start: 1 in use, and not 0\n");
  std::filesystem::remove(file_);
  EXPECT_EQ(config_->reload(&problems_).error(), Errc::not_found);
  EXPECT_FALSE(problems_.empty());
  EXPECT_EQ(changes, 0);
  write(text("cores = 2\nsessions_max = 9\n"));
  EXPECT_TRUE(config_->reload(&problems_)) << told();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(config_->current()->generation(), 2u);
}

TEST_F(ConfigReloadTest, OneTextOfAListIsNotTwoWithItsQuotes) {
  ProgramKeys keys;
  (void)keys.texts("tags", {}, "Tags", Change::at_start);
  config_ = load("[app]\ntags = [\"a\", \"b\"]\n", keys);
  ASSERT_NE(config_, nullptr) << told();
  write("[app]\ntags = ['a\", \"b']\n");
  EXPECT_FALSE(config_->reload(&problems_));
  EXPECT_EQ(told().find("2:1: app.tags: this key changes only at a start: "), 0u) << told();
  write("[app]\ntags = ['a', 'b']\n");
  EXPECT_TRUE(config_->reload(&problems_)) << told();
}

TEST_F(ConfigReloadTest, AGovernedLogGetsItsNewSettingsOrTheFileIsRefused) {
  config_ = load("[logging]\nfile = \"one\"\nlevels = [\"shop=debug\"]\nrepeats_max = 0\n");
  ASSERT_NE(config_, nullptr) << told();
  const auto log = logging::Log::make(config_->current()->log).value();
  config_->govern(*log);
  const logging::Logger shop = log->logger("shop.orders").value();
  EXPECT_TRUE(shop.writes(logging::Level::debug));
  shop.info("first");
  ASSERT_TRUE(log->flush_until(sys::now() + serve::test::kLong));

  write("[logging]\nfile = \"two\"\nlevel = \"warning\"\nformat = \"json\"\n");
  ASSERT_TRUE(config_->reload(&problems_)) << told();
  EXPECT_FALSE(shop.writes(logging::Level::info));
  expect_refused(
      "[logging]\nfile = \"none/log\"\nlevel = \"trace\"\n",
      "2:1: logging.file: \"" + directory_ + "/none/log\" is refused: not found: there is no such directory\n");
  expect_refused("[logging]\nlevels = [\"shop=debug\", \"shop\"]\n",
                 "2:1: logging.levels: \"shop\" is not a component and its level, like \"serve.session=warning\"\n");
  expect_refused("[logging]\nqueue_bytes = \"8 MiB\"\n",
                 "2:1: logging.queue_bytes: this key changes only at a start: 4 MiB is in use, and not 8 MiB\n");
  EXPECT_FALSE(shop.writes(logging::Level::info));
  shop.error("second");
  log->stop(sys::now() + serve::test::kLong);
  const auto line_of = [this](const char* file) {
    std::string line;
    std::getline(std::ifstream(directory_ + file), line);
    return line;
  };
  EXPECT_TRUE(line_of("/one").ends_with(" level=info component=shop.orders event=first")) << line_of("/one");
  EXPECT_TRUE(line_of("/two").ends_with("\"component\":\"shop.orders\",\"event\":\"second\"}")) << line_of("/two");
}

TEST_F(ConfigReloadTest, AProgramMayRefuseTheNextConfiguration) {
  ProgramKeys keys;
  const auto maps = keys.texts("maps", {"plain"}, "The maps", Change::at_run_time);
  config_ = load(text(""), keys);
  ASSERT_NE(config_, nullptr) << told();
  config_->on_check([&](const Snapshot& next) -> Result<void> {
    if (next.get(maps).empty()) {
      return Error(Errc::invalid_argument, "there is no map");
    }
    if (next.get(maps)[0] == "throw") {
      throw std::runtime_error("a map threw");
    }
    return {};
  });
  expect_refused(text("") + "[app]\nmaps = []\n", "the program: invalid argument: there is no map\n");
  expect_refused(text("") + "[app]\nmaps = [\"throw\"]\n", "the program: a map threw\n");
  write(text("") + "[app]\nmaps = [\"sea\"]\n");
  EXPECT_TRUE(config_->reload());
}

TEST_F(ConfigReloadTest, AFunctionThatThrowsKeepsNoOtherFromTheNewConfiguration) {
  config_ = load(text(""));
  ASSERT_NE(config_, nullptr) << told();
  int called = 0;
  config_->on_change([](const Snapshot&, const Snapshot&) { throw std::runtime_error("no"); });
  config_->on_change([&](const Snapshot&, const Snapshot&) { ++called; });
  write(text("sessions_max = 7\n"));
  EXPECT_EQ(config_->reload().error(), Errc::job_threw);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(config_->current()->server.sessions_max, 7u);
}

TEST_F(ConfigReloadTest, AListenersAdmissionDecidesByTheNewRules) {
  config_ = load(text(""));
  ASSERT_NE(config_, nullptr) << told();
  const auto admission = config_->current()->listeners[0].options.admission;
  const auto peer = sys::SocketAddress::parse_numeric("192.168.0.1", 1).value();
  const auto first = admission->admit(peer, Instant());
  ASSERT_TRUE(first);
  write(text("", "admission.address_connections_max = 1\n"));
  ASSERT_TRUE(config_->reload(&problems_)) << told();
  EXPECT_EQ(config_->current()->listeners[0].options.admission, admission);
  EXPECT_FALSE(admission->admit(peer, Instant()));
  write(text("", "admission.allowed = [\"10.0.0.0/8\"]\n"));
  ASSERT_TRUE(config_->reload(&problems_)) << told();
  EXPECT_FALSE(admission->admit(peer, Instant()));
  EXPECT_EQ(admission->rejected(net::AdmissionRejection::not_allowed), 1u);
  EXPECT_EQ(admission->connections(), 1u);
}

// Readers on other threads see whole snapshots while one thread reloads.
TEST_F(ConfigReloadTest, ReadersSeeWholeSnapshotsWhileTheFileChanges) {
  ProgramKeys keys;
  const auto a = keys.integer("a", 0, {0, 1000}, "A number", Change::at_run_time);
  const auto b = keys.integer("b", 0, {0, 1000}, "The same", Change::at_run_time);
  const auto both = [](int number) {
    return "[app]\na = " + std::to_string(number) + "\nb = " + std::to_string(number) + "\n";
  };
  config_ = load(both(0), keys);
  ASSERT_NE(config_, nullptr) << told();
  constexpr int kReloads = 50;
  std::vector<std::thread> readers;
  std::atomic<int> torn{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      for (bool last = false; !last;) {
        const auto now = config_->current();
        torn += now->get(a) != now->get(b) ? 1 : 0;
        last = now->get(a) == kReloads;
      }
    });
  }
  for (int number = 1; number <= kReloads; ++number) {
    write(both(number));
    EXPECT_TRUE(config_->reload(&problems_)) << told();
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(torn, 0);
}

// A server and its listener from one file.
class ConfigServerTest : public serve::test::ServerTest {};

TEST_F(ConfigServerTest, AGovernedServerGetsItsNewBounds) {
  if (!toml_available()) {
    GTEST_SKIP() << "this build has no TOML";
  }
  const std::string directory = sys::make_private_directory().value();
  const auto write = [&](int sessions_max) {
    std::ofstream(directory + "/server.toml")
        << "[server]\nsessions_max = " << sessions_max << "\n[[listener]]\nendpoint = \"tcp://127.0.0.1:0\"\n";
  };
  write(1);
  Problems problems;
  auto config = Config::load(directory + "/server.toml", {}, {}, &problems);
  ASSERT_TRUE(config) << problems.text();
  script_.on_frame = serve::test::echo;
  const auto now = (*config)->current();
  make_server(now->server);
  const std::string endpoint = listen(now->listeners[0].options, now->listeners[0].endpoint);
  (*config)->govern(*server_);
  serve::test::Client first(endpoint);
  first.send(1, "one");
  EXPECT_EQ(first.receive(), "one");
  EXPECT_EQ(server_->ready().error(), Errc::resource_exhausted);  // full
  EXPECT_EQ(serve::test::Client(endpoint).read_to_end(), "");
  write(2);
  ASSERT_TRUE((*config)->reload(&problems)) << problems.text();
  EXPECT_TRUE(server_->ready());
  serve::test::Client second(endpoint);
  second.send(1, "two");
  EXPECT_EQ(second.receive(), "two");
  first.send(1, "still");
  EXPECT_EQ(first.receive(), "still");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace weft::serve::config
