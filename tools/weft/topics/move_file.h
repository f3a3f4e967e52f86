// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tools/weft/lines.h"
#include "weft/store/settings.h"

// The file of an exported stream or bucket: lines of JSON, each with a checksum. docs/fleet.md describes it.
namespace weft::cli {

struct MovedHeader {
  bool bucket = false;
  std::string name{};          // without the space of its handle
  StreamSettings settings{};   // topics in the program's form; of a bucket none
  std::uint64_t instance = 0;  // the life of the stream; 0: unknown
  std::uint64_t first = 0;     // sequence of the oldest message when the export began
};

struct MovedMessage {
  std::uint64_t sequence = 0;
  WallTime time{};
  std::string topic{};  // of a bucket: the key, as the stream's topic has it
  std::string id{};
  std::string headers{};  // Headers::block()
  std::string body{};
  bool erased = false;
};

inline constexpr std::size_t kMovedLineMax = std::size_t{2} << 20U;  // bytes, with the line feed

// MovedLines: makes the lines of a file. Owner: the export. Affinity: a value.
class MovedLines {
 public:
  MovedLines() = default;
  explicit MovedLines(std::uint32_t sum, bool bucket) noexcept : sum_(sum), bucket_(bucket) {}  // after these lines

  [[nodiscard]] std::string header(const MovedHeader& header);
  [[nodiscard]] std::string message(const MovedMessage& message);
  [[nodiscard]] std::string end(std::uint64_t messages, std::uint64_t missing);

 private:
  [[nodiscard]] std::string seal(std::string line);

  std::uint32_t sum_ = 0;
  bool bucket_ = false;
};

// MovedFile: reads such a file, or standard input ("-").
// Owner: a command. Affinity: one thread. A wait ends by Stopped.
// Memory: a line. Failure: the input cannot be read, or is not such a file, or a line is damaged; the text has the line
// and its offset.
class MovedFile {
 public:
  enum class Got : std::uint8_t {
    message,
    end,  // the last line
    cut,  // the file ends without it; a part of a line may follow whole_bytes()
  };

  explicit MovedFile(const std::string& name);  // reads the header
  MovedFile(const MovedFile&) = delete;
  MovedFile& operator=(const MovedFile&) = delete;
  ~MovedFile();

  [[nodiscard]] const MovedHeader& header() const noexcept { return header_; }
  [[nodiscard]] Got next(MovedMessage& into);                                  // after the last one the same again
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }  // so far
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }    // gaps of a log so far
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }          // sequence of the last message
  [[nodiscard]] std::uint64_t whole_bytes() const noexcept { return whole_; }  // of the header and the messages
  [[nodiscard]] bool torn() const noexcept { return torn_; }                   // cut within a line
  [[nodiscard]] std::uint32_t sum() const noexcept { return sum_; }            // of these bytes
  [[nodiscard]] std::string place() const;                                     // "FILE: line 17, byte 4711"

 private:
  struct Places;
  enum class Raw : std::uint8_t { line, torn, nothing };
  [[nodiscard]] Got read_next(MovedMessage& into);
  [[nodiscard]] Raw read_line();
  [[nodiscard]] bool sealed();
  [[nodiscard]] bool more();
  void take_header();
  void take_message(MovedMessage& into);
  [[noreturn]] void damaged(const std::string& why) const;

  const std::string name_;
  Input input_;
  std::string buffer_;
  std::size_t begin_ = 0;       // of the next line in the buffer
  std::string_view line_;       // within the buffer, without its line feed
  std::uint64_t number_ = 0;    // of the line
  std::uint64_t offset_ = 0;    // of the line's first byte
  std::uint32_t next_sum_ = 0;  // with the line
  std::unique_ptr<Places> places_;
  MovedHeader header_;
  std::uint64_t messages_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t whole_ = 0;
  std::uint32_t sum_ = 0;
  Got got_ = Got::message;  // by the last next()
  bool torn_ = false;
};

// The number of messages that a log lost before this sequence, if `last` is that of the message before it, or `first`
// the sequence with which the log began.
[[nodiscard]] std::uint64_t missing_before(std::uint64_t sequence, std::uint64_t last, std::uint64_t first) noexcept;

// The header block without the blanks around values, which servers of NATS drop.
[[nodiscard]] std::string plain_headers(std::string_view block);

}  // namespace weft::cli
