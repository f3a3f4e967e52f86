// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"

// The parts that every command shares: exit codes, standard output and error, Ctrl-C.
namespace weft::cli {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitSignal = 128;  // plus the signal's number: 130 after Ctrl-C

// The command ends with kExitFailed, and the text on standard error.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same with kExitUsage.
class Usage : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A signal asked the command to end, or the reader of standard output has gone.
struct Stopped {};

// The value, or a Failure "CONTEXT: the error".
template <typename T>
T need(Result<T> result, const std::string& context) {
  if (!result) {
    throw Failure(context + ": " + result.error().message());
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

struct Object;
using Value = std::variant<bool, std::uint64_t, double, std::string, std::vector<std::string>, std::vector<Object>>;
using Record = std::vector<std::pair<std::string, Value>>;  // an object of JSON, in this order
struct Object {
  Record fields;
};

[[nodiscard]] std::string to_json(const Record& record);

// The text with control characters, and bytes that are not UTF-8, as \xNN, so that no message steers a terminal.
[[nodiscard]] std::string printable(std::string_view text);
[[nodiscard]] std::string to_hex(std::string_view bytes);
[[nodiscard]] std::string from_hex(std::string_view digits);  // throws Usage

// The size of a terminal in characters; 0 rows: there is none.
struct Screen {
  std::size_t rows = 0;
  std::size_t columns = 0;
};
// The first characters of printable text, at most so many.
[[nodiscard]] std::string cut(std::string_view text, std::size_t characters);

// The line as several, none wider than `columns`, broken at spaces; all except the first begin with `under` spaces. A
// word that is too long stays whole.
[[nodiscard]] std::string broken(std::string_view line, std::size_t columns, std::size_t under);

enum class Colour : std::uint8_t { red, yellow, green, bold };

inline constexpr std::string_view kOutputFull = "standard output takes no more";
// Writes the text to standard output, and flushes it. Returns 0; kExitSignal + SIGPIPE (its reader has gone); or
// kExitFailed, for which the text is kOutputFull.
[[nodiscard]] int write_out(std::string_view text) noexcept;

// Console: the standard streams of one command.
// Affinity: one thread.
class Console {
 public:
  explicit Console(std::string command);

  bool json = false;

  // As it is, and flushed. Throws Failure when the stream takes no more, and Stopped when its reader has gone.
  void print(std::string_view text);
  void line(std::string_view text);
  // A line for people: on a terminal it breaks at the terminal's width, and continues after `under` spaces. `painted`
  // replaces its first bytes, which it is the coloured form of.
  void prose(std::string_view text, std::size_t under, std::string_view first = {}, std::string_view painted = {});
  void record(const Record& record) { line(to_json(record)); }
  void note(std::string_view text);  // "weft COMMAND: text" on standard error
  // Replaces the last line of a terminal; nothing when standard error is not a terminal. An empty text clears it.
  void progress(std::string_view text);
  // Only for a terminal without NO_COLOR; otherwise the text as it is.
  [[nodiscard]] std::string paint(Colour colour, std::string_view text) const;
  [[nodiscard]] Screen screen() const noexcept;  // of standard output

 private:
  std::string command_;
  bool colour_;
  bool progress_;
  bool progress_shown_ = false;
};

// SIGINT and SIGTERM make stop_fd() readable; a second one ends the process at once. SIGPIPE has no effect.
void catch_stop_signals();
void catch_hang_up();                   // before hung_up()
[[nodiscard]] bool hung_up() noexcept;  // whether SIGHUP came since the last call
[[nodiscard]] int stop_fd() noexcept;
[[nodiscard]] int stop_signal() noexcept;  // 0: none came; SIGPIPE: the reader of standard output has gone
void throw_if_stopped();                   // Stopped
void sleep_until(Instant deadline);        // throws Stopped

[[nodiscard]] Duration seconds(double count) noexcept;             // negative: for ever
[[nodiscard]] std::string format(const char* form, double value);  // one number, as printf

}  // namespace weft::cli
