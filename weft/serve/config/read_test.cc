// SPDX-License-Identifier: MIT
#include "weft/serve/config/read.h"

#include <chrono>
#include <string>

#include "weft/serve/config/test_config.h"

namespace weft::serve::config {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using ConfigReadTest = test::ConfigFileTest;

constexpr const char* kListener = "[[listener]]\nendpoint = \"tcp://127.0.0.1:0\"\n";

TEST_F(ConfigReadTest, AFileSetsTheOptionsOfEachPart) {
  const auto config = load(R"(
[server]
cores = 2
pinning = "never"
sessions_max = 1000
memory_max = "64 MiB"
settle_timeout = "none"
[stop]
drain = "1.5 s"
[admin]
endpoint = "tcp://127.0.0.1:0"
scrapes = "5/s burst 8"
[[listener]]
name = "game"
endpoint = "tcp://127.0.0.1:0"
accept = "hand_off"
backlog = 64
[listener.limits]
idle_timeout = "30 s"
slow_consumer = "drop_oldest"
input_max = "1 MiB"
[listener.admission]
address_connections_max = 4
allowed = ["10.0.0.0/8", "::1"]
[[listener]]
name = "local"
endpoint = "ipc://@weft-config-test"
limits.message_rate = "100/s"
)");
  ASSERT_NE(config, nullptr) << told();
  const auto now = config->current();
  EXPECT_EQ(now->runtime.cores, 2u);
  EXPECT_EQ(now->runtime.pinning, rt::Pinning::never);
  EXPECT_EQ(now->server.sessions_max, 1000u);
  EXPECT_EQ(now->server.memory_max, std::size_t{64} << 20U);
  EXPECT_EQ(now->server.core_memory_max, ServerOptions().core_memory_max);
  EXPECT_LT(now->server.settle_timeout, Duration::zero());
  EXPECT_EQ(now->stop.drain, 1500ms);
  EXPECT_EQ(now->admin.endpoint, "tcp://127.0.0.1:0");
  EXPECT_EQ(now->admin.scrapes.burst, 8u);
  ASSERT_EQ(now->listeners.size(), 2u);
  const ListenerSettings& game = now->listeners[0];
  EXPECT_EQ(game.options.accept, AcceptMode::hand_off);
  EXPECT_EQ(game.options.socket.backlog, 64);
  EXPECT_EQ(game.options.limits.idle_timeout, 30s);
  EXPECT_EQ(game.options.limits.slow_consumer, SlowConsumer::drop_oldest);
  EXPECT_EQ(game.options.limits.input_max, std::size_t{1} << 20U);
  ASSERT_NE(game.options.admission, nullptr);
  const auto stranger = sys::SocketAddress::parse_numeric("192.168.0.1", 1).value();
  EXPECT_FALSE(game.options.admission->admit(stranger, Instant()));
  EXPECT_TRUE(now->listeners[1].options.admission->admit(stranger, Instant()));
  EXPECT_EQ(now->listeners[1].options.limits.message_rate.per_second, 100u);
  EXPECT_EQ(now->origins().at("server.cores").text(), file_ + ":3:1");
}

TEST_F(ConfigReadTest, AnEmptyFileHasTheDefaults) {
  const auto config = load("");
  ASSERT_NE(config, nullptr) << told();
  EXPECT_EQ(config->current()->server.sessions_max, ServerOptions().sessions_max);
  EXPECT_TRUE(config->current()->listeners.empty());
  EXPECT_TRUE(config->current()->admin.endpoint.empty());
}

TEST_F(ConfigReadTest, EachProblemOfAFileIsToldWithItsPlaceAndTheKeyThatWasMeant) {
  EXPECT_EQ(refusal(R"([server]
coers = 2
cores = 600
sessions_max = "many"
memory_max = "64 MB"
pinning = "alwys"
[stop]
drain = 5
[amdin]
[[listener]]
endpoint = "tcp://127.0.0.1:0"
idle_timeout = "1 s"
limits = 3
tls.protocols = ["h2", 7]
)"),
            R"(2:1: server.coers: unknown key; did you mean "server.cores"?
3:1: server.cores: 600 is not in 0 to 512
4:1: server.sessions_max: a text, and not an integer
5:1: server.memory_max: "64 MB" is refused: write a number and B, KiB, MiB, GiB or TiB, like "16 KiB"
6:1: server.pinning: "alwys" is not one of automatic, never, always; did you mean "always"?
8:1: stop.drain: an integer, and not a duration in quotes, like "250 ms"
9:2: amdin: unknown table; did you mean "admin"?
12:1: listener[0].idle_timeout: unknown key; did you mean "limits.idle_timeout"?
13:1: listener[0].limits: an integer, and not a table
14:5: listener[0].tls.protocols: the list has an integer, and not only texts in quotes
)");
}

TEST_F(ConfigReadTest, TablesInTheWrongFormAreRefused) {
  EXPECT_EQ(refusal("[listener]\n"), "1:2: listener: a table, and not [[listener]], with two brackets\n");
  EXPECT_EQ(refusal("listener = [1]\n"), "1:13: listener[0]: an integer, and not a table\n");
  EXPECT_EQ(refusal("server = true\n"), "1:1: server: true or false, and not a table\n");
  EXPECT_EQ(refusal("cores = 1\n"), "1:1: cores: unknown key; did you mean \"server.cores\"?\n");
  EXPECT_EQ(refusal("\"server.cores\" = 1\n").find("\"server.cores\": unknown key"), 5u);
  EXPECT_EQ(refusal("[app]\nx = 1\n"), "1:2: app: this program has no keys of its own\n");
  std::string many;
  for (std::size_t i = 0; i <= kListenersMax; ++i) {
    many += kListener;
  }
  EXPECT_NE(refusal(many).find("more than 256 listeners"), std::string::npos);
}

TEST_F(ConfigReadTest, SettingsThatDependOnEachOtherAreCheckedTogether) {
  EXPECT_EQ(refusal("[[listener]]\n"), "1:1: listener[0].endpoint: this key is required\n");
  EXPECT_NE(refusal("[[listener]]\nendpoint = \"tcp:/x\"\n").find("2:1: listener[0].endpoint: \"tcp:/x\" is refused: "),
            std::string::npos);
  EXPECT_NE(refusal("[admin]\nendpoint = \"nowhere\"\n").find("2:1: admin.endpoint: "), std::string::npos);
  EXPECT_EQ(refusal(std::string(kListener) + "name = \"a\"\n" + kListener + "name = \"a\"\n"),
            "6:1: listener[1].name: another listener has the name \"a\"\n");
  EXPECT_EQ(refusal(std::string(kListener) + "tls.certificate_file = \"a.pem\"\n"),
            "1:1: listener[0].tls.key_file: a certificate and its key are set together\n");
  EXPECT_NE(refusal(std::string(kListener) + "processes = \"uid:root\"\n").find("3:1: listener[0].processes: "),
            std::string::npos);
  EXPECT_EQ(
      refusal(std::string(kListener) + "admission.allowed = [\"10.0.0.0/33\"]\n"),
      "3:11: listener[0].admission.allowed: \"10.0.0.0/33\" is not an address or a prefix, like \"10.0.0.0/8\"\n");
}

TEST_F(ConfigReadTest, AnAdminPortThatOtherMachinesReachNeedsTlsAndATokenFile) {
  const std::string afar = "[admin]\nendpoint = \"tcp://*:9100\"\n";
  const std::string tls = "tls.certificate_file = \"a.crt\"\ntls.key_file = \"a.key\"\n";
  for (const std::string& less :
       {std::string(), std::string("remote = true\n"), "remote = true\n" + tls,
        std::string("remote = true\ntoken_file = \"token\"\n"), "token_file = \"t\"\n" + tls}) {
    EXPECT_EQ(refusal(afar + less).find("2:1: admin.endpoint: an admin port that other machines reach needs "), 0u)
        << less << refusal(afar + less);
  }
  EXPECT_EQ(refusal("[admin]\nendpoint = \"tcp://127.0.0.1:0\"\nhosts = [\"admin:9100\"]\n").find("3:1: admin.hosts: "),
            0u);
  EXPECT_EQ(refusal("[admin]\ntls.key_file = \"a.key\"\n"),
            "admin.tls.certificate_file: a certificate and its key are set together\n");
}

TEST_F(ConfigReadTest, TheTokenOfTheAdminPortIsReadFromItsFileBesideTheConfiguration) {
  const std::string text = "[admin]\nendpoint = \"tcp://127.0.0.1:0\"\ntoken_file = \"token\"\n";
  EXPECT_EQ(refusal(text).find("3:1: admin.token_file: " + directory_ + "/token: "), 0u) << refusal(text);
  std::ofstream(directory_ + "/token") << "too short\n";
  EXPECT_NE(refusal(text).find("16 to 256 characters"), std::string::npos);
  std::ofstream(directory_ + "/token") << "0123456789-token\n";
  const auto config = load(text);
  ASSERT_NE(config, nullptr) << told();
  EXPECT_EQ(config->current()->admin.token, "0123456789-token");
}

TEST_F(ConfigReadTest, ACertificateThatCannotBeReadIsNamedWithItsPathBesideTheFile) {
  const std::string text =
      refusal(std::string(kListener) + "[listener.tls]\ncertificate_file = \"no.pem\"\nkey_file = \"no.key\"\n");
  EXPECT_EQ(text.find("4:1: listener[0].tls.certificate_file: "), 0u) << text;
  if (net::tls_available()) {
    EXPECT_NE(text.find(directory_ + "/no.pem"), std::string::npos) << text;
  }
  LoadOptions closed;
  closed.open_files = false;
  closed.environment.emplace();
  EXPECT_TRUE(Config::load(file_, {}, closed));
}

TEST_F(ConfigReadTest, VariablesSetKeysOverTheFile) {
  ProgramKeys keys;
  const auto greeting = keys.text("greeting", "hello", "What the server says");
  const auto config = load(std::string("[server]\ncores = 2\n") + kListener, keys,
                           {"WEFT_SERVER_CORES=3", "WEFT_SERVER_STALL_AFTER=none", "WEFT_ADMIN_REMOTE=true",
                            "WEFT_LISTENER_0_LIMITS_IDLE_TIMEOUT=7 s", "WEFT_LISTENER_0_TLS_PROTOCOLS=h2,http/1.1",
                            "WEFT_APP_GREETING=a=b", "WEFT_POLLER=epoll", "OTHER_SERVER_CORES=9", "WEFT=1"});
  ASSERT_NE(config, nullptr) << told();
  const auto now = config->current();
  EXPECT_EQ(now->runtime.cores, 3u);
  EXPECT_LT(now->server.stall_after, Duration::zero());
  EXPECT_TRUE(now->admin.remote);
  EXPECT_EQ(now->listeners[0].options.limits.idle_timeout, 7s);
  EXPECT_EQ(now->listeners[0].tls.protocols, (std::vector<std::string>{"h2", "http/1.1"}));
  EXPECT_EQ(now->get(greeting), "a=b");
  EXPECT_EQ(now->origins().at("server.cores").text(), "WEFT_SERVER_CORES");
}

TEST_F(ConfigReadTest, AWrongVariableIsRefusedByItsName) {
  EXPECT_EQ(refusal(kListener, {},
                    {"WEFT_SERVER_CORES=many", "WEFT_SERVER_CORSE=1", "WEFT_ADMIN_REMOTE=yes",
                     "WEFT_LISTENER_1_BACKLOG=7", "WEFT_SERVER_MEMORY_MAX=1 KiB"}),
            "WEFT_ADMIN_REMOTE: admin.remote: \"yes\" is not true or false\n"
            "WEFT_LISTENER_1_BACKLOG: this variable sets no key; did you mean \"WEFT_LISTENER_0_BACKLOG\"?\n"
            "WEFT_SERVER_CORES: server.cores: \"many\" is not an integer\n"
            "WEFT_SERVER_CORSE: this variable sets no key; did you mean \"WEFT_SERVER_CORES\"?\n"
            "WEFT_SERVER_MEMORY_MAX: server.memory_max: 1 KiB is not in 1 MiB to 1024 TiB\n");
}

TEST_F(ConfigReadTest, APrefixOfTheProgramTakesThePlaceOfWeft) {
  write("");
  LoadOptions options;
  options.environment_prefix = "GAME";
  options.environment = {"GAME_SERVER_CORES=3", "WEFT_SERVER_CORES=none"};
  const auto config = Config::load(file_, {}, options);
  ASSERT_TRUE(config);
  EXPECT_EQ((*config)->current()->runtime.cores, 3u);
  options.environment_prefix = "";
  ASSERT_TRUE(Config::load(file_, {}, options));
  EXPECT_EQ((*Config::load(file_, {}, options))->current()->runtime.cores, 0u);
  options.environment_prefix = "game";
  EXPECT_EQ(Config::load(file_, {}, options).error(), Errc::invalid_argument);
}

TEST_F(ConfigReadTest, AProgramReadsItsOwnKeysByTheirTypes) {
  ProgramKeys keys;
  const auto workers = keys.integer("workers", 4, {1, 64}, "Threads that compress");
  const auto ratio = keys.real("ratio", 0.5, {0, 1}, "Of the memory");
  const auto tick = keys.duration("tick", 16ms, {1ms, 1s}, "Between two steps");
  const auto pause = keys.duration("pause", kNone, {kNone, 1h}, "After a match");
  const auto cache = keys.size("cache.size", Size{1 << 20}, {Size{0}, Size{1 << 30}}, "Bytes");
  const auto rate = keys.rate("rate", {100, 1}, "Of moves");
  const auto mode = keys.word("mode", "ranked", {"ranked", "free"}, "Of a match");
  const auto maps = keys.texts("maps", {"plain"}, "The maps");
  const auto debug = keys.flag("debug", false, "More lines of log");
  const auto config = load(R"([app]
workers = 8
ratio = 1
tick = "20 ms"
maps = ["desert", "sea"]
[app.cache]
size = "2 MiB"
)",
                           keys);
  ASSERT_NE(config, nullptr) << told();
  const auto now = config->current();
  EXPECT_EQ(now->get(workers), 8);
  EXPECT_EQ(now->get(ratio), 1.0);
  EXPECT_EQ(now->get(tick), 20ms);
  EXPECT_EQ(now->get(pause), kNone);
  EXPECT_EQ(now->get(cache).bytes, std::uint64_t{2} << 20U);
  EXPECT_EQ(now->get(rate).per_second, 100u);
  EXPECT_EQ(now->get(mode), "ranked");
  EXPECT_EQ(now->get(maps), (std::vector<std::string>{"desert", "sea"}));
  EXPECT_FALSE(now->get(debug));
  EXPECT_EQ(refusal("[app]\nworker = 1\ntick = \"2 s\"\nmode = \"fre\"\nratio = 1.5\npause = \"-1 s\"\n", keys),
            "2:1: app.worker: unknown key; did you mean \"workers\"?\n"
            "3:1: app.tick: 2 s is not in 1 ms to 1 s\n"
            "4:1: app.mode: \"fre\" is not one of ranked, free; did you mean \"free\"?\n"
            "5:1: app.ratio: 1.5 is not in 0 to 1\n"
            "6:1: app.pause: \"-1 s\" is refused: write a number and ns, us, ms, s, min, h or d, like \"250 ms\"\n");
}

TEST_F(ConfigReadTest, AProgramThatTakesOtherKeysGetsThemAsTexts) {
  ProgramKeys keys;
  const auto known = keys.integer("known", 1, {1, 2}, "A key");
  keys.take_others();
  const auto config = load("[app]\nknown = 2\nx = 1\nlist = [\"a\"]\n[app.table]\ny = \"text\"\n", keys);
  ASSERT_NE(config, nullptr) << told();
  EXPECT_EQ(config->current()->get(known), 2);
  using Others = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(config->current()->others(), (Others{{"list", "[\"a\"]"}, {"table.y", "text"}, {"x", "1"}}));
  EXPECT_EQ(refusal("[app]\nd = 1979-05-27\n", keys), "2:1: app.d: a date or a time\n");
}

TEST_F(ConfigReadTest, AMistakeInTheProgramsKeysRefusesEachFile) {
  const auto mistake = [this](const ProgramKeys& keys) {
    const std::string text = refusal("", keys);
    return text.substr(text.find("app."));
  };
  ProgramKeys twice;
  (void)twice.flag("a.b", true, "");
  (void)twice.flag("a_b", true, "");
  EXPECT_EQ(mistake(twice), "app.a_b: the name is taken by another key\n");
  ProgramKeys inside;
  (void)inside.flag("a", true, "");
  const auto lost = inside.integer("a.b", 5, {0, 9}, "");
  EXPECT_EQ(mistake(inside), "app.a.b: the name is taken by another key\n");
  EXPECT_EQ(Snapshot(Draft(), 1).get(lost), 5);
  for (const char* name : {"", "A", "a b", ".a", "a.", "a..b", "a-b"}) {
    ProgramKeys wrong;
    (void)wrong.flag(name, true, "");
    EXPECT_NE(mistake(wrong).find("a name has small letters"), std::string::npos) << name;
  }
  ProgramKeys outside;
  (void)outside.integer("n", 10, {0, 9}, "");
  EXPECT_EQ(mistake(outside), "app.n: 10 is not in 0 to 9\n");
  ProgramKeys word;
  (void)word.word("w", "c", {"a", "b"}, "");
  EXPECT_EQ(mistake(word).find("app.w: \"c\" is not one of a, b"), 0u);
}

}  // namespace
}  // namespace weft::serve::config
