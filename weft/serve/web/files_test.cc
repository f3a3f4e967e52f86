// SPDX-License-Identifier: MIT
#include "weft/serve/web/files.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/date.h"
#include "weft/serve/web/test_site.h"
#include "weft/sys/clock.h"
#include "weft/sys/files/file_tree.h"
#include "weft/sys/path.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using serve::test::kLong;
using serve::test::Signal;
using test::get;
using test::kHost;
using test::read_reply;
using test::Reply;

constexpr std::size_t kLargeSize = 3'000'000;

class FilesTest : public test::SiteTest {
 protected:
  void SetUp() override {
    test::SiteTest::SetUp();
    auto made = sys::make_private_directory();
    ASSERT_TRUE(made);
    folder_ = *made;
    std::filesystem::create_directories(folder_ + "/www/sub/.git");
    write("/secret", "secret");
    write("/www/index.html", "<p>home</p>");
    write("/www/a b.TXT", "0123456789");
    write("/www/empty", "");
    write("/www/sub/.git/config", "hidden");
    std::filesystem::create_symlink("../secret", folder_ + "/www/link");
    std::string large(kLargeSize, '\0');
    for (std::size_t i = 0; i < large.size(); ++i) {
      large[i] = static_cast<char>('a' + i % 23);
    }
    write("/www/large.bin", large);
  }
  void TearDown() override {
    test::SiteTest::TearDown();
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& path, const std::string& text) const {
    std::ofstream(folder_ + path, std::ios::binary) << text;
  }
  // The file was modified that long ago.
  void date(const std::string& path, std::chrono::seconds ago) const {
    std::filesystem::last_write_time(folder_ + path, std::filesystem::file_time_type::clock::now() - ago);
  }
  std::string listen_files(FileOptions options = {}, const ListenerOptions& listener = {}) {
    auto files = Files::open(folder_ + "/www", std::move(options));
    EXPECT_TRUE(files);
    EXPECT_TRUE(router_.get("/s/{path...}", *files));
    return listen_web({}, listener);
  }
  // No large file fits into buffers of the system.
  static ListenerOptions small_buffers() {
    ListenerOptions options;
    options.socket.send_buffer = 8 * 1024;
    return options;
  }
  static std::string request(const std::string& path, const std::string& fields, const std::string& method = "GET") {
    return method + " /s/" + path + kHost + fields + "\r\n";
  }
  static std::string field(const Reply& reply, const std::string& name) {
    const std::size_t at = reply.head.find("\r\n" + name + ": ");
    return at == std::string::npos
               ? ""
               : reply.head.substr(at + name.size() + 4, reply.head.find("\r\n", at + 2) - at - name.size() - 4);
  }
  static char large_at(std::size_t at) { return static_cast<char>('a' + at % 23); }

  std::string folder_;
};

TEST_F(FilesTest, AFileHasATypeATagADateAndItsBytes) {
  FileOptions options;
  options.cache_control = "max-age=60";
  options.types = {{".bin", "application/x-large"}};
  Client client(listen_files(options));
  client.write(get("/s/") + get("/s/a%20b.TXT") + get("/s/empty") + get("/s/large.bin") +
               request("large.bin", "", "HEAD") + request("a%20b.TXT", "", "HEAD") + get("/s/index.html"));
  const Reply home = read_reply(client);
  EXPECT_EQ(home.body, "<p>home</p>");
  EXPECT_EQ(field(home, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(field(home, "Cache-Control"), "max-age=60");
  EXPECT_EQ(field(home, "X-Content-Type-Options"), "nosniff");
  EXPECT_TRUE(field(home, "Last-Modified").ends_with(" GMT"));
  EXPECT_TRUE(field(home, "ETag").starts_with("\"b-"));
  const Reply text = read_reply(client);
  EXPECT_EQ(text.body, "0123456789");
  EXPECT_EQ(field(text, "Content-Type"), "text/plain; charset=utf-8");
  const Reply empty = read_reply(client);
  EXPECT_EQ(empty.status, 200);
  EXPECT_EQ(empty.body, "");
  EXPECT_EQ(field(empty, "Content-Type"), "application/octet-stream");
  const Reply large = read_reply(client);
  EXPECT_EQ(field(large, "Content-Type"), "application/x-large");
  ASSERT_EQ(large.body.size(), kLargeSize);
  for (std::size_t i = 0; i < kLargeSize; i += 999) {
    ASSERT_EQ(large.body[i], large_at(i)) << i;
  }
  EXPECT_EQ(read_reply(client, false).head, large.head);
  EXPECT_EQ(read_reply(client, false).head, text.head);
  EXPECT_EQ(read_reply(client).head, home.head);
}

TEST_F(FilesTest, NoPathLeadsToAnythingElse) {
  const std::string endpoint = listen_files();
  for (const std::string path :
       {"none", "link", "sub/", "sub/.git/config", ".git", "a%20b.TXT/x", "sub%2F.git%2Fconfig", "sub//x",
        "%2Fetc%2Fpasswd", "/etc/passwd", "large.bin/", "..%5Csecret"}) {
    Client client(endpoint);
    client.write(get("/s/" + path));
    EXPECT_EQ(read_reply(client).status, 404) << path;
  }
  for (const std::string path : {"../secret", "%2e%2e/secret", "sub/../index.html", "a%00.html", "%2e%2e%2fsecret"}) {
    Client client(endpoint);
    client.write(get("/s/" + path));
    const int status = read_reply(client).status;
    EXPECT_TRUE(status == 400 || status == 404) << path << " " << status;
  }
  Client client(endpoint);
  client.write(get("/s/sub?q=1") + get("/s"));
  const Reply moved = read_reply(client);
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(field(moved, "Location"), "/s/sub/?q=1");
  EXPECT_EQ(read_reply(client).status, 404);
}

TEST_F(FilesTest, AClientThatHasTheFileIsToldSo) {
  Client client(listen_files());
  client.write(get("/s/a%20b.TXT"));
  const Reply first = read_reply(client);
  const std::string tag = field(first, "ETag");
  const std::string date = field(first, "Last-Modified");
  const std::string old = "Sun, 06 Nov 1994 08:49:37 GMT";
  const std::pair<std::string, int> cases[] = {
      {"If-None-Match: " + tag, 304},
      {"If-None-Match: \"x\", W/" + tag, 304},
      {"If-None-Match: *", 304},
      {"If-None-Match: \"x\"\r\nIf-None-Match: " + tag, 304},
      {"If-Match: \"x\"\r\nIf-Match: " + tag, 200},
      {"If-None-Match: \"x\"", 200},
      {"If-None-Match: \"x\"\r\nIf-Modified-Since: " + date, 200},
      {"If-Modified-Since: " + date, 304},
      {"If-Modified-Since: " + old, 200},
      {"If-Modified-Since: yesterday", 200},
      {"If-Match: " + tag, 200},
      {"If-Match: W/" + tag, 412},
      {"If-Match: \"x\"", 412},
      {"If-Match: *\r\nIf-None-Match: *", 304},
      {"If-Unmodified-Since: " + old, 412},
      {"If-Unmodified-Since: " + date, 200},
      {"If-Unmodified-Since: yesterday", 200},
      {"If-Match: " + tag + "\r\nIf-Unmodified-Since: " + old, 200},
  };
  for (const auto& [fields, status] : cases) {
    client.write(request("a%20b.TXT", fields + "\r\n"));
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, status) << fields;
    EXPECT_EQ(reply.body, status == 200 ? "0123456789" : "");
    EXPECT_EQ(field(reply, "ETag"), tag);
  }
  write("/www/a b.TXT", "changed");
  client.write(request("a%20b.TXT", "If-None-Match: " + tag + "\r\n"));
  EXPECT_EQ(read_reply(client).body, "changed");
}

TEST_F(FilesTest, APartOfAFileIsSentWhereOneIsAskedFor) {
  date("/www/a b.TXT", std::chrono::hours(1));
  Client client(listen_files());
  client.write(get("/s/a%20b.TXT"));
  const Reply first = read_reply(client);
  const std::string tag = field(first, "ETag");
  const struct {
    std::string fields;
    int status;
    std::string body;
    std::string range;
  } cases[] = {
      {"Range: bytes=0-0", 206, "0", "bytes 0-0/10"},
      {"Range: bytes=3-", 206, "3456789", "bytes 3-9/10"},
      {"Range: bytes=-3", 206, "789", "bytes 7-9/10"},
      {"Range: bytes=-30", 206, "0123456789", "bytes 0-9/10"},
      {"Range: bytes=8-100", 206, "89", "bytes 8-9/10"},
      {"Range: bytes=0-18446744073709551615", 206, "0123456789", "bytes 0-9/10"},
      {"Range: bytes=10-", 416, "", "bytes */10"},
      {"Range: bytes=-0", 416, "", "bytes */10"},
      {"Range: bytes=4-3", 200, "0123456789", ""},
      {"Range: bytes=18446744073709551616-", 200, "0123456789", ""},
      {"Range: bytes=0-0,2-2", 200, "0123456789", ""},
      {"Range: bytes=+1-2", 200, "0123456789", ""},
      {"Range: bytes= 1-2", 200, "0123456789", ""},
      {"Range: bytes=-", 200, "0123456789", ""},
      {"Range: lines=1-2", 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-Range: " + tag, 206, "12", "bytes 1-2/10"},
      {"Range: bytes=1-2\r\nIf-Range: " + field(first, "Last-Modified"), 206, "12", "bytes 1-2/10"},
      {"Range: bytes=1-2\r\nIf-Range: \"x\"", 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-Range: W/" + tag, 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-Range: *", 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-Range: \"x\", " + tag, 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT", 200, "0123456789", ""},
      {"If-Range: " + tag, 200, "0123456789", ""},
      {"Range: bytes=1-2\r\nIf-None-Match: " + tag, 304, "", ""},
  };
  for (const auto& [fields, status, body, range] : cases) {
    client.write(request("a%20b.TXT", fields + "\r\n"));
    const Reply reply = read_reply(client);
    EXPECT_EQ(reply.status, status) << fields;
    EXPECT_EQ(reply.body, body) << fields;
    EXPECT_EQ(field(reply, "Content-Range"), range) << fields;
  }
  client.write(request("large.bin", "Range: bytes=1000000-2999999\r\n") + request("empty", "Range: bytes=0-\r\n") +
               request("a%20b.TXT", "Range: bytes=0-0\r\n", "HEAD"));
  const Reply large = read_reply(client);
  EXPECT_EQ(large.status, 206);
  ASSERT_EQ(large.body.size(), 2'000'000u);
  EXPECT_EQ(large.body.front(), large_at(1'000'000));
  EXPECT_EQ(large.body.back(), large_at(2'999'999));
  EXPECT_EQ(read_reply(client).status, 416);
  EXPECT_EQ(read_reply(client, false).status, 200);
}

// RFC 9110 section 8.8.2.2: the file may have changed twice in that second.
TEST_F(FilesTest, ADateIsAConditionOfARangeOnlyIfItsSecondIsLongOver) {
  Client client(listen_files());
  for (const auto& [ago, status] :
       {std::pair(std::chrono::seconds(0), 200), std::pair(std::chrono::seconds(90), 206)}) {
    date("/www/a b.TXT", ago);
    client.write(get("/s/a%20b.TXT"));
    const std::string modified = field(read_reply(client), "Last-Modified");
    client.write(request("a%20b.TXT", "Range: bytes=1-2\r\nIf-Range: " + modified + "\r\n"));
    EXPECT_EQ(read_reply(client).status, status) << ago.count();
  }
}

TEST_F(FilesTest, NoFileWasModifiedLaterThanItsAnswer) {
  date("/www/a b.TXT", -std::chrono::hours(1));
  Client client(listen_files());
  const auto before = std::chrono::floor<std::chrono::seconds>(sys::wall_now());
  client.write(get("/s/a%20b.TXT"));
  const std::string modified = field(read_reply(client), "Last-Modified");
  const auto after = std::chrono::floor<std::chrono::seconds>(sys::wall_now());
  const auto named = parse_http_date(modified, after);
  ASSERT_TRUE(named);
  EXPECT_TRUE(before <= *named && *named <= after) << modified;
}

// RFC 9110 sections 15.3.7 and 15.4.5.
TEST_F(FilesTest, APartAndAnAnswerWithoutTheFileHaveItsFields) {
  FileOptions options;
  options.cache_control = "max-age=60";
  Client client(listen_files(options));
  client.write(get("/s/a%20b.TXT"));
  const Reply whole = read_reply(client);
  for (const std::string& fields : {std::string("Range: bytes=1-2"), "If-None-Match: " + field(whole, "ETag")}) {
    client.write(request("a%20b.TXT", fields + "\r\n"));
    const Reply reply = read_reply(client);
    for (const std::string name : {"ETag", "Last-Modified", "Cache-Control"}) {
      EXPECT_EQ(field(reply, name), field(whole, name)) << fields;
    }
  }
}

TEST_F(FilesTest, AsManyFilesAreSentAtATimeAsTheBoundPermits) {
  FileOptions options;
  options.open_max = 2;
  sys::SocketOptions small;
  small.receive_buffer = 8 * 1024;
  const std::string endpoint = listen_files(options, small_buffers());
  Client first(endpoint);
  Client second(endpoint, small);
  for (Client* client : {&first, &second}) {
    client->write(get("/s/large.bin"));
    EXPECT_EQ(read_reply(*client, false).status, 200);
  }
  Client third(endpoint);
  third.write(get("/s/large.bin") + get("/s/a%20b.TXT"));
  EXPECT_EQ(read_reply(third).status, 503);
  EXPECT_EQ(read_reply(third).body, "0123456789") << "a short file takes no place";
  until_counted([](const WebCounts& counts) { return counts.files_busy == 1 && counts.status_5xx == 1; });
  EXPECT_EQ(first.read(kLargeSize).size(), kLargeSize);
  second.close();
  int status = 503;
  for (const Instant limit = sys::now() + kLong; status == 503 && sys::now() < limit;) {
    third.write(get("/s/large.bin"));
    const Reply reply = read_reply(third);
    status = reply.status;
  }
  EXPECT_EQ(status, 200) << "each end gave its place back";
}

// That no read of the file succeeds is not the peer's fault.
TEST_F(FilesTest, AFileThatCannotBeReadEndsItsConnectionForItself) {
  ASSERT_TRUE(router_.get("/file", [] {
    return Response::stream([](BodyWriter& out) { return out.send_file(-1, 0, kLargeSize); }, "text/plain", kLargeSize);
  }));
  Client client(listen_web());
  client.write(get("/file"));
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  until_counted([](const WebCounts& counts) { return counts.broken == 1; });
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::service_failed) == 1; });
}

TEST_F(FilesTest, AFileThatGetsShorterMeanwhileEndsItsConnection) {
  Signal begun;
  Signal cut;
  const std::string path = folder_ + "/www/large.bin";
  auto tree = sys::FileTree::open(folder_ + "/www");
  ASSERT_TRUE(tree);
  ASSERT_TRUE(router_.get("/file", [&] {
    return Response::stream(
        [&](BodyWriter& out) -> rt::Task<Result<void>> {
          const auto file = tree->open_file("large.bin");
          begun.give();
          EXPECT_TRUE(cut.take());
          co_return co_await out.send_file(file->fd.fd(), 0, kLargeSize);
        },
        "text/plain", kLargeSize);
  }));
  Client client(listen_web());
  client.write(get("/file"));
  ASSERT_TRUE(begun.take());
  std::filesystem::resize_file(path, 100'000);
  cut.give();
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(client.read_to_end().size(), 100'000u);
  until_counted([](const WebCounts& counts) { return counts.broken == 1; });
}

// The bytes are read where the system cannot send them by itself, as over TLS.
TEST_F(FilesTest, AFileIsReadIntoABodyInChunks) {
  auto tree = sys::FileTree::open(folder_ + "/www");
  ASSERT_TRUE(tree);
  ASSERT_TRUE(router_.get("/file/{size}", [&tree](const Request& request) {
    const auto size = static_cast<std::uint64_t>(std::stoul(request.param("size")));
    return Response::stream([&tree, size](BodyWriter& out) -> rt::Task<Result<void>> {
      const auto file = tree->open_file("large.bin");
      co_return co_await out.send_file(file->fd.fd(), 1, size);
    });
  }));
  const std::string endpoint = listen_web();
  Client client(endpoint);
  client.write(get("/file/100000") + get("/file/3000000"));
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_EQ(client.read(7), "10000\r\n");
  const std::string first = client.read(65'536);
  EXPECT_EQ(first.front(), large_at(1));
  EXPECT_EQ(first.back(), large_at(65'536));
  EXPECT_EQ(client.read(8), "\r\n86a0\r\n");
  EXPECT_EQ(client.read(34'464).back(), large_at(100'000));
  EXPECT_EQ(client.read(7), "\r\n0\r\n\r\n");
  EXPECT_EQ(read_reply(client, false).status, 200);
  EXPECT_FALSE(client.read_to_end().ends_with("0\r\n\r\n")) << "the file is shorter";
  until_counted([](const WebCounts& counts) { return counts.broken == 1; });
}

TEST_F(FilesTest, APeerThatReadsSlowlyGetsItsFile) {
  sys::SocketOptions small;
  small.receive_buffer = 8 * 1024;
  Client client(listen_files(), small);
  client.write(get("/s/large.bin") + request("large.bin", "Range: bytes=1-\r\n"));
  const Reply whole = read_reply(client);
  ASSERT_EQ(whole.body.size(), kLargeSize);
  const Reply part = read_reply(client);
  EXPECT_EQ(part.body, whole.body.substr(1));
}

TEST_F(FilesTest, APeerThatHasEndedItsStreamGetsItsFile) {
  sys::SocketOptions small;
  small.receive_buffer = 8 * 1024;
  Client client(listen_files({}, small_buffers()), small);
  client.write(get("/s/large.bin"));
  client.end_writing();
  EXPECT_EQ(read_reply(client).body.size(), kLargeSize);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.reset());
}

TEST_F(FilesTest, APeerThatLeavesEndsItsFile) {
  const std::string endpoint = listen_files();
  for (int i = 0; i < 3; ++i) {
    Client client(endpoint);
    client.write(get("/s/large.bin") + get("/s/large.bin") + get("/s/large.bin") + get("/s/large.bin"));
    EXPECT_EQ(client.read(10), "HTTP/1.1 2");
    client.close();
  }
  until([this](const CounterValues&) { return server_->sessions() == 0; });
}

TEST(Files, ATypeIsThatOfTheLastEndOfAName) {
  EXPECT_EQ(content_type_of("a.tar.GZ"), "application/gzip");
  EXPECT_EQ(content_type_of("x.woff2"), "font/woff2");
  EXPECT_EQ(content_type_of("html"), "application/octet-stream");
  EXPECT_EQ(content_type_of(""), "application/octet-stream");
}

TEST(Files, ADirectoryThatIsNotThereIsAnError) { EXPECT_FALSE(Files::open("/none/such")); }

}  // namespace
}  // namespace weft::serve::web
