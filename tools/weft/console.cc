// SPDX-License-Identifier: MIT
#include "tools/weft/console.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/text/hex.h"
#include "weft/base/text/utf8.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/poll.h"

namespace weft::cli {

namespace {

std::unique_ptr<sys::EventFd> stop_event;
std::atomic<int> stop_number{0};
std::atomic<bool> hang_up{false};

void on_stop(int number) {
  stop_number.store(number);
  stop_event->signal();
}

nlohmann::ordered_json to_object(const Record& record) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record) {
    if (const auto* list = std::get_if<std::vector<Object>>(&value)) {
      nlohmann::ordered_json& array = object[name] = nlohmann::ordered_json::array();
      for (const Object& each : *list) {
        array.push_back(to_object(each.fields));
      }
    } else {
      std::visit(
          [&, &key = name](const auto& each) {
            if constexpr (!std::is_same_v<decltype(each), const std::vector<Object>&>) {
              object[key] = each;
            }
          },
          value);
    }
  }
  return object;
}

}  // namespace

std::string to_json(const Record& record) {
  return to_object(record).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string cut(std::string_view text, std::size_t characters) {
  std::size_t end = 0;
  for (; end < text.size() && characters > 0; --characters) {
    end += std::max<std::size_t>(utf8_size(text.substr(end)), 1);
  }
  return std::string(text.substr(0, end));
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    const std::uint32_t code = size == 0 ? 0 : utf8_decode(character);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      for (const char byte : character) {
        out += "\\x" + to_hex(std::string_view(&byte, 1));
      }
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  append_hex_bytes(bytes, out);
  return out;
}

std::string from_hex(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_value(digits[i]);
    const int low = i + 1 < digits.size() ? hex_value(digits[i + 1]) : -1;
    if (high < 0 || low < 0) {
      throw Usage("'" + printable(digits) + "' is not hexadecimal: two digits a byte");
    }
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

int write_out(std::string_view text) noexcept {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return 0;
  }
  return errno == EPIPE ? kExitSignal + SIGPIPE : kExitFailed;
}

Console::Console(std::string command)
    : command_(std::move(command)),
      colour_(isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr),
      progress_(isatty(STDERR_FILENO) == 1) {}

void Console::print(std::string_view text) {
  progress("");
  if (const int code = write_out(text); code > kExitSignal) {
    stop_number.store(code - kExitSignal);
    throw Stopped();
  } else if (code != 0) {
    throw Failure(std::string(kOutputFull));
  }
}

void Console::line(std::string_view text) { print(std::string(text) + "\n"); }

void Console::note(std::string_view text) {
  progress("");
  std::fprintf(stderr, "weft %s: %.*s\n", command_.c_str(), static_cast<int>(text.size()), text.data());
}

void Console::progress(std::string_view text) {
  if (progress_ && (progress_shown_ || !text.empty())) {
    std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
    progress_shown_ = !text.empty();
  }
}

std::string broken(std::string_view line, std::size_t columns, std::size_t under) {
  std::string out;
  std::string rest(line);
  while (rest.size() > columns) {
    const std::size_t space = rest.rfind(' ', columns);
    if (space == std::string::npos || space <= under) {
      break;
    }
    out.append(rest, 0, space).append("\n");
    rest = std::string(under, ' ') + rest.substr(space + 1);
  }
  return out + rest;
}

void Console::prose(std::string_view text, std::size_t under, std::string_view first, std::string_view painted) {
  const Screen terminal = screen();
  std::string shown = terminal.rows == 0 ? std::string(text) : broken(text, terminal.columns, under);
  if (shown.starts_with(first)) {
    shown.replace(0, first.size(), painted);
  }
  line(shown);
}

std::string Console::paint(Colour colour, std::string_view text) const {
  static constexpr const char* kCodes[] = {"31", "33", "32", "1"};
  if (!colour_ || json) {
    return std::string(text);
  }
  return "\033[" + std::string(kCodes[static_cast<std::size_t>(colour)]) + "m" + std::string(text) + "\033[0m";
}

Screen Console::screen() const noexcept {
  struct winsize size = {};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return {};
  }
  return {.rows = std::max<std::size_t>(size.ws_row, size.ws_row == 0 ? 24 : 2),
          .columns = size.ws_col == 0 ? std::size_t{80} : size.ws_col};
}

void catch_stop_signals() {
  stop_event = std::make_unique<sys::EventFd>(need(sys::EventFd::make(), "an event descriptor"));
  struct sigaction action = {};
  action.sa_handler = on_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;  // print() ends the command
  action.sa_flags = 0;
  sigaction(SIGPIPE, &action, nullptr);
}

void catch_hang_up() {
  struct sigaction action = {};
  action.sa_handler = [](int) { hang_up.store(true); };
  sigaction(SIGHUP, &action, nullptr);
}
bool hung_up() noexcept { return hang_up.exchange(false); }

int stop_fd() noexcept { return stop_event->fd(); }
int stop_signal() noexcept { return stop_number.load(); }

void throw_if_stopped() {
  if (stop_signal() != 0) {
    throw Stopped();
  }
}

void sleep_until(Instant deadline) {
  for (Instant now = sys::now(); now < deadline; now = sys::now()) {
    throw_if_stopped();
    sys::PollFd stop{.fd = stop_fd(), .want = sys::Interest::readable};
    if (const auto ready = sys::poll_fds({&stop, 1}, deadline - now); !ready && ready.error() != Errc::interrupted) {
      throw Failure(ready.error().message());
    }
  }
  throw_if_stopped();
}

Duration seconds(double count) noexcept {
  return count < 0 ? Duration(-1) : Duration(static_cast<Duration::rep>(count * 1e9));
}

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

}  // namespace weft::cli
