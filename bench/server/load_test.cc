// SPDX-License-Identifier: MIT
// The load generator beside servers that lie: any wrong answer must end the measurement.
#include "bench/server/load.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "bench/server/abuse_bytes.h"
#include "bench/server/host.h"
#include "bench/server/load_cell.h"
#include "bench/server/target.h"
#include <gtest/gtest.h>

namespace bench {
namespace {

using Frame = std::vector<std::uint8_t>;
using Answers = std::vector<Frame>;
// The server's answers to a question, which has a number; no answer ends the connection.
using Answer = std::function<Answers(const Frame& question, std::uint64_t number)>;

// Serves its connections, one after the other, in a thread of its own, until they end.
class Server {
 public:
  explicit Server(Answer answer)
      : answer_(std::move(answer)), listener_(listen_on(port_, false)), thread_([this] {
          while (accept_one()) {
          }
        }) {}
  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  bool accept_one() {
    pollfd ready{listener_, POLLIN, 0};
    poll(&ready, 1, -1);
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      return false;
    }
    for (std::uint64_t number = 0;; ++number) {
      const Frame question = read_frame(fd);
      if (question.empty()) {
        break;
      }
      const Answers answers = answer_(question, number);
      for (const Frame& frame : answers) {
        [[maybe_unused]] const auto sent = send(fd, frame.data(), frame.size(), MSG_NOSIGNAL);
      }
      if (answers.empty()) {
        break;
      }
    }
    close(fd);
    return true;
  }

  static Frame read_frame(int fd) {
    Frame frame(kHeaderSize);
    if (recv(fd, frame.data(), frame.size(), MSG_WAITALL) != static_cast<ssize_t>(kHeaderSize)) {
      return {};
    }
    const std::size_t body = decode_header(frame.data()).body_size;
    frame.resize(kHeaderSize + body);
    const bool whole = recv(fd, frame.data() + kHeaderSize, body, MSG_WAITALL) == static_cast<ssize_t>(body);
    return whole ? frame : Frame();
  }

  const Answer answer_;
  std::uint16_t port_ = 0;
  const int listener_;
  std::thread thread_;
};

constexpr std::uint64_t kLie = 5;  // the number of the question that gets a wrong answer
const Frame kNothing;              // an answer of no bytes

Answers truth(const Frame& question, std::uint64_t) { return {question}; }

// The frame with another tag and its checksum.
Frame with_tag(Frame frame, std::uint64_t tag) {
  const Bytes body = Bytes(frame).subspan(kHeaderSize);
  const std::uint64_t checksum = checksum_of(tag, hash_of(body.subspan(kBodyMin)));
  std::memcpy(frame.data() + kHeaderSize, &tag, sizeof tag);
  std::memcpy(frame.data() + kHeaderSize + 8, &checksum, sizeof checksum);
  return frame;
}

// The generator's complaint about a server; "": none.
std::string verdict_on(const Answer& answer, unsigned patience_ms = 20'000) {
  const Server server(answer);
  const auto result = std::make_unique<LoadResult>();
  try {
    Load load({server.port(), 1, 64, 4, patience_ms});
    load.open(*result);
    load.echo(20, 0, *result);
    load.finish();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

// The complaint about a server that lies once.
std::string verdict_on_lie(const std::function<Answers(Frame)>& lie) {
  return verdict_on([&](const Frame& question, std::uint64_t number) {
    return number == kLie ? lie(question) : truth(question, number);
  });
}

TEST(Load, BelievesAServerThatAnswersEverything) { EXPECT_EQ(verdict_on(truth), ""); }

// The complaint about a server that publishes the frames of the one connection of its group.
std::string verdict_on_publishing(const Answer& answer) {
  const Server server(answer);
  const auto result = std::make_unique<LoadResult>();
  try {
    Load load({server.port(), 1, 64, 4, 20'000, LoadWire::frames, WebStyle::publish});
    load.open(*result);
    load.publish(20, *result);
    load.publish(20, *result);
    load.finish();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(Load, PublishesFramesToAGroup) {
  EXPECT_EQ(verdict_on_publishing(truth), "");
  const auto lost = verdict_on_publishing(
      [](const Frame& question, std::uint64_t number) { return Answers{number == kLie ? kNothing : question}; });
  EXPECT_NE(lost.find("lost"), std::string::npos) << lost;
  const auto twice = verdict_on_publishing([](const Frame& question, std::uint64_t number) {
    return number == kLie ? Answers{question, question} : Answers{question};
  });
  EXPECT_NE(twice.find("twice"), std::string::npos) << twice;
}

TEST(Load, FindsALostAnswer) {
  EXPECT_NE(verdict_on_lie([](const Frame&) { return Answers{kNothing}; }).find("lost"), std::string::npos);
}

TEST(Load, FindsAnAnswerThatComesTwice) {
  EXPECT_NE(verdict_on_lie([](const Frame& frame) { return Answers{frame, frame}; }).find("twice"), std::string::npos);
}

TEST(Load, FindsAnswersOutOfOrder) {
  Frame held;
  const std::string verdict = verdict_on([&](const Frame& question, std::uint64_t number) -> Answers {
    if (number == kLie) {
      held = question;
      return {kNothing};
    }
    return number == kLie + 1 ? Answers{question, held} : Answers{question};
  });
  EXPECT_NE(verdict.find("overtaken"), std::string::npos) << verdict;
}

TEST(Load, FindsADamagedAnswer) {
  const std::string verdict = verdict_on_lie([](Frame frame) {
    frame.back() ^= 1;
    return Answers{frame};
  });
  EXPECT_NE(verdict.find("damaged"), std::string::npos) << verdict;
}

TEST(Load, FindsAnAnswerOfAnotherKindOrSize) {
  const auto with_header = [](std::uint32_t id, std::uint32_t size) {
    return [=](Frame frame) {
      frame.resize(kHeaderSize + size);
      encode_header({kVersion, id, size}, frame.data());
      return Answers{frame};
    };
  };
  EXPECT_NE(verdict_on_lie(with_header(kCount, 64)).find("wrong header"), std::string::npos);
  EXPECT_NE(verdict_on_lie(with_header(kEcho, 63)).find("wrong header"), std::string::npos);
  EXPECT_NE(verdict_on_lie(with_header(kEcho, 65)).find("wrong header"), std::string::npos);
}

TEST(Load, FindsAnAnswerToAnotherConnection) {
  const std::string verdict =
      verdict_on_lie([](const Frame& frame) { return Answers{with_tag(frame, make_tag(9, kLie))}; });
  EXPECT_NE(verdict.find("another connection"), std::string::npos) << verdict;
}

TEST(Load, FindsAnAnswerToNothing) {
  const std::string verdict = verdict_on([](const Frame& question, std::uint64_t number) {
    // The last question comes after the greeting.
    return number == 20 ? Answers{question, with_tag(question, tag_of(Bytes(question).subspan(kHeaderSize)) + 1)}
                        : truth(question, number);
  });
  EXPECT_NE(verdict.find("to nothing"), std::string::npos) << verdict;
}

TEST(Load, FindsAServerThatCloses) {
  const std::string verdict = verdict_on_lie([](const Frame&) { return Answers{}; });
  EXPECT_TRUE(verdict.find("closed") != std::string::npos || verdict.find("recv") != std::string::npos ||
              verdict.find("send") != std::string::npos)
      << verdict;
}

TEST(Load, GivesUpOnASilentServer) {
  const std::string verdict = verdict_on(
      [](const Frame& question, std::uint64_t number) { return number < kLie ? Answers{question} : Answers{kNothing}; },
      50);
  EXPECT_NE(verdict.find("no progress"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("answers are missing"), std::string::npos) << verdict;
}

TEST(Load, SaysWhyNobodyListens) {
  std::uint16_t port = 0;
  close(listen_on(port, false));
  const auto result = std::make_unique<LoadResult>();
  Load load({port, 1, 64, 1, 20'000});
  EXPECT_THROW(load.open(*result), LoadError);
}

// The complaint about a server that counts a stream and then reports `more` and `bad`.
std::string verdict_on_stream(std::uint64_t more, std::uint64_t bad) {
  std::uint64_t count = 0;
  const Server server([&](const Frame& question, std::uint64_t) -> Answers {
    const std::uint32_t id = decode_header(question.data()).id;
    if (id != kSync) {
      count += id == kCount ? 1 : 0;
      return {id == kCount ? kNothing : question};
    }
    Frame answer = question;
    const std::uint64_t told = count + more;
    std::memcpy(answer.data() + kHeaderSize + kBodyMin, &told, sizeof told);
    std::memcpy(answer.data() + kHeaderSize + kBodyMin + 8, &bad, sizeof bad);
    return {answer};
  });
  const auto result = std::make_unique<LoadResult>();
  try {
    Load load({server.port(), 1, 64, 1, 20'000});
    load.open(*result);
    load.one_way(10'000, *result);
    EXPECT_EQ(result->messages, 10'000U);
    EXPECT_EQ(count, 10'000U);
    load.finish();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(Load, BelievesAStreamOnlyWhenTheServerHasSeenAllOfIt) {
  EXPECT_EQ(verdict_on_stream(0, 0), "");
  EXPECT_NE(verdict_on_stream(1, 0).find("received 10001"), std::string::npos);
  EXPECT_NE(verdict_on_stream(~std::uint64_t{0}, 0).find("received 9999"), std::string::npos);
  EXPECT_NE(verdict_on_stream(0, 2).find("2 of them bad"), std::string::npos);
}

TEST(Load, AnOpenLoopChargesAServerThatStallsForAllThatItDelays) {
  constexpr std::uint64_t kCountOfAll = 50;
  constexpr std::uint64_t kIntervalNs = 100'000;
  Answers held;
  const Server server([&](const Frame& question, std::uint64_t number) -> Answers {
    if (number == 0) {
      return {question};  // answers the greeting
    }
    held.push_back(question);
    return number < kCountOfAll ? Answers{kNothing} : held;  // answers nothing until all requests have come
  });
  const auto result = std::make_unique<LoadResult>();
  Load load({server.port(), 1, 64, 1, 20'000});
  load.open(*result);
  load.echo(kCountOfAll, kIntervalNs, *result);
  EXPECT_EQ(result->trips.total(), kCountOfAll);
  EXPECT_GE(result->trips.max(), (kCountOfAll - 1) * kIntervalNs);
  EXPECT_GE(result->trips.quantile(0.5), 0.99 * kCountOfAll / 2 * kIntervalNs);
  load.finish();
}

TEST(LoadCell, HasANameThatSaysEverything) {
  const LoadCell cell = parse_load_cell("bad/512/x16/depth4/slow_loris");
  EXPECT_EQ(cell.pattern, LoadPattern::bad);
  EXPECT_EQ(cell.size, 512U);
  EXPECT_EQ(cell.connections, 16U);
  EXPECT_EQ(cell.depth, 4U);
  EXPECT_EQ(cell.abuse, Abuse::slow_loris);
  EXPECT_EQ(parse_load_cell("echo/64/x10000/depth16/load50").connections, 10'000U);
  EXPECT_EQ(parse_load_cell("bad_http/5/x16/depth4/slow_body").wire, LoadWire::http);
  EXPECT_EQ(parse_load_cell("bad_websocket/64/x16/depth4/bomb").wire, LoadWire::websocket);
  for (const char* name : {"", "echo", "echo/8/x1", "echo/64/y1", "bad/64/x1", "echo/64/x1/flood", "other/64/x1",
                           "bad/64/x1/slow_head", "bad_http/5/x1/flood", "bad_http/5/x1", "bad_http/5/x1/bomb"}) {
    EXPECT_THROW(parse_load_cell(name), LoadError) << name;
  }
}

// zlib expands the expected bytes to so many letters.
TEST(Abuse, ABombIsADeflateStreamOfALetterAndCopies) {
  EXPECT_EQ(deflate_bomb(0), std::string("\x02\x00", 2));
  EXPECT_EQ(deflate_bomb(1), std::string("\xAA\x00\x00", 3));
  EXPECT_EQ(deflate_bomb(3), std::string("\xAA\xA8\xA8\x00\x00", 5));
  EXPECT_EQ(deflate_bomb(259), std::string("\xAA\x18\x05\x00\x00", 5));
  EXPECT_LT(deflate_bomb(1 << 20).size(), 7'000U);
}

TEST(Target, SeesWhatAProcessUses) {
  const Target target(getpid());
  const double cpu = target.cpu_seconds();
  const std::uint64_t memory = target.private_memory();
  const std::vector<std::uint8_t> touched(std::size_t{16} << 20U, 1);
  EXPECT_GE(target.private_memory(), memory + touched.size());
  volatile std::uint64_t sum = 0;
  while (target.cpu_seconds() - cpu < 0.001) {
    sum = sum + touched[sum % touched.size()];
  }
  // A thread that another case has joined is in the list for a moment more.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (target.threads().size() > 1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(target.threads().size(), 1U);
  const pid_t gone = fork();
  if (gone == 0) {
    _exit(0);
  }
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  EXPECT_THROW(Target{gone}, LoadError);
}

}  // namespace
}  // namespace bench
