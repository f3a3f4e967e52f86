// SPDX-License-Identifier: MIT
// Weft talks to Weft: every pattern over every transport, between threads and between processes, in one part and in
// several, from 0 bytes to 16 MB. Each cell runs in processes of its own, so that a crash or a hang is one line.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "tests/interop/roles.h"

namespace weft::interop {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kCellLimit{60};
constexpr std::array<std::size_t, 11> kSizes{0,       1, 64, 112, 113, 255, 256, 4096, 65'536, std::size_t{1} << 20,
                                             kSizeMax};
constexpr std::array<const char*, 6> kRoles{"push", "pub", "xpub", "dealer", "req", "pair"};
constexpr std::array kTransports{
    "tcp",     "ipc", "abstract", "inproc",
#ifdef WEFT_HAVE_OPENSSL
    "tls+tcp",
#endif
    "ws",
#ifdef WEFT_HAVE_OPENSSL
    "wss",
#endif
};

struct Cell {
  std::string role;  // of the first side
  std::string transport;
  bool processes = false;
  Shape shape;
  int count = 0;
  bool first_binds = false;

  [[nodiscard]] std::string name() const {
    return role + "-" + partner_of(role) + " " + transport + (processes ? " processes " : " threads ") +
           (shape.multipart ? "multipart " : "single ") + std::to_string(shape.size);
  }
};

int count_for(const std::string& role, std::size_t size) {
  const int most = role == "req" ? 100 : role == "pub" || role == "dealer" ? 200 : 500;
  const int fit = static_cast<int>((std::size_t{4} << 20) / std::max<std::size_t>(size, 1));
  return std::clamp(fit, 2, most);
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const char* role : kRoles) {
    for (const char* transport : kTransports) {
      for (const bool processes : {false, true}) {
        if (processes && std::strcmp(transport, "inproc") == 0) {
          continue;
        }
        for (const bool multipart : {false, true}) {
          for (const std::size_t size : kSizes) {
            cells.push_back(
                {role, transport, processes, {size, multipart}, count_for(role, size), processes != multipart});
          }
        }
      }
    }
  }
  return cells;
}

bool has_tls(const Cell& cell) { return cell.transport == "tls+tcp" || cell.transport == "wss"; }

std::string endpoint_for(const Cell& cell, const std::string& directory) {
  static int number = 0;
  const std::string name = std::to_string(::getpid()) + "-" + std::to_string(++number);
  if (cell.transport == "tcp" || cell.transport == "tls+tcp") {
    return cell.transport + "://127.0.0.1:*";
  }
  if (cell.transport == "ws" || cell.transport == "wss") {
    return cell.transport + "://127.0.0.1:*/matrix";
  }
  if (cell.transport == "ipc") {
    return "ipc://" + directory + "/" + name;
  }
  return (cell.transport == "abstract" ? "ipc://@weft-matrix-" : "inproc://") + name;
}

// An authority, and a certificate of it for both sides, which demand one. Returns false if it failed, and the reason is
// shown.
bool make_certificates(const std::string& directory) {
  const std::string commands = "cd '" + directory + R"(' && {
    openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt &&
    openssl req -newkey ed25519 -nodes -subj /CN=peer -addext subjectAltName=IP:127.0.0.1 -keyout peer.key \
      -out peer.csr &&
    openssl x509 -req -in peer.csr -CA ca.crt -CAkey ca.key -days 1 -copy_extensions copy -out peer.crt
  } >openssl.log 2>&1 || { cat openssl.log; exit 1; })";
  return std::system(commands.c_str()) == 0;
}

Job job_for(const Cell& cell, bool first, const std::string& endpoint, const std::string& directory) {
  Job job;
  job.role = first ? cell.role : partner_of(cell.role);
  job.bind = first == cell.first_binds;
  job.endpoints = {endpoint};
  job.shape = cell.shape;
  job.count = cell.count;
  if (has_tls(cell)) {
    job.options = {"tls_certificate=" + directory + "/peer.crt", "tls_key=" + directory + "/peer.key",
                   "tls_authorities=" + directory + "/ca.crt"};
  }
  return job;
}

// Runs in the child: the sides as threads of this process, with one context.
std::string run_sides(const std::vector<Job>& jobs, const std::vector<Link*>& links) {
  std::vector<Outcome> outcomes(jobs.size());
  {
    Context context;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      threads.emplace_back([&, i] { outcomes[i] = run_role(context, jobs[i], *links[i]); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  std::ostringstream report;
  for (const Outcome& outcome : outcomes) {
    report << outcome.sent << ' ' << outcome.received << ' ' << outcome.handed << ' ' << outcome.arrived << ' '
           << outcome.error << '\n';
  }
  return report.str();
}

// A child process, and the descriptor of its report.
struct Child {
  pid_t pid = -1;
  int report = -1;
};

Child start_child(const std::function<std::string()>& work, const std::function<void()>& close_others) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) {
    std::perror("pipe2");
    std::exit(2);
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("fork");
    std::exit(2);
  }
  if (pid == 0) {
    ::close(report[0]);
    close_others();
    const std::string text = work();
    const ssize_t written = ::write(report[1], text.data(), text.size());
    std::fflush(nullptr);
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 3);
  }
  ::close(report[1]);
  return {pid, report[0]};
}

// Returns the report, or how the child ended instead. Kills a child that still runs at the deadline.
std::string finish_child(const Child& child, Clock::time_point deadline) {
  std::string report;
  bool late = false;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd item{child.report, POLLIN, 0};
    if (::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 0) {
      late = true;
      ::kill(child.pid, SIGKILL);
      break;
    }
    char block[512];
    const ssize_t count = ::read(child.report, block, sizeof block);
    if (count <= 0) {
      break;
    }
    report.append(block, static_cast<std::size_t>(count));
  }
  ::close(child.report);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (late) {
    return "0 0 0 0 hangs\n";
  }
  if (WIFSIGNALED(status)) {
    return "0 0 0 0 killed by signal " + std::to_string(WTERMSIG(status)) + "\n";
  }
  return WEXITSTATUS(status) == 0 ? report : "0 0 0 0 exit status " + std::to_string(WEXITSTATUS(status)) + "\n";
}

std::vector<Child> start_cell(const Cell& cell, const std::string& directory) {
  const std::string endpoint = endpoint_for(cell, directory);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    std::perror("socketpair");
    std::exit(2);
  }
  std::vector<Child> children;
  if (!cell.processes) {
    children.push_back(start_child(
        [&] {
          Link first(pair[0], pair[0], true);
          Link second(pair[1], pair[1], true);
          return run_sides({job_for(cell, true, endpoint, directory), job_for(cell, false, endpoint, directory)},
                           {&first, &second});
        },
        [] {}));
  } else {
    for (const int side : {0, 1}) {
      children.push_back(start_child(
          [&] {
            Link link(pair[side], pair[side], true);
            return run_sides({job_for(cell, side == 0, endpoint, directory)}, {&link});
          },
          [&] {
            ::close(pair[1 - side]);
            for (const Child& other : children) {
              ::close(other.report);
            }
          }));
    }
  }
  ::close(pair[0]);
  ::close(pair[1]);
  return children;
}

bool run_cell(const Cell& cell, const std::string& directory) {
  const auto start = Clock::now();
  long sent = 0;
  long received = 0;
  std::string error;
  std::vector<long> handed;
  std::vector<long> arrived;
  for (const Child& child : start_cell(cell, directory)) {
    std::istringstream report(finish_child(child, start + kCellLimit));
    for (std::string line; std::getline(report, line);) {
      std::istringstream words(line);
      long s = 0;
      long r = 0;
      std::string reason;
      words >> s >> r >> handed.emplace_back() >> arrived.emplace_back();
      std::getline(words >> std::ws, reason);
      sent += s;
      received += r;
      error += (error.empty() || reason.empty() ? "" : "; ") + reason;
    }
  }
  if (error.empty() && received == 0 && !(cell.role == "xpub" && cell.shape.size == 0)) {
    error = "nothing was received";
  }
  // No connection broke, so each side got all that the other handed over. For an XPUB its peer's subscriptions arrive.
  if (error.empty() && (handed[0] != arrived[1] || (cell.role != "xpub" && handed[1] != arrived[0]))) {
    error = "handed over " + std::to_string(handed[0]) + " and " + std::to_string(handed[1]) + ", arrived " +
            std::to_string(arrived[1]) + " and " + std::to_string(arrived[0]);
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
  const std::string counts = error.empty() ? std::to_string(received) + " messages arrived"
                                           : "sent " + std::to_string(sent) + ", received " + std::to_string(received);
  std::printf("%-4s %-44s %-24s %5lld ms  %s\n", error.empty() ? "ok" : "FAIL", cell.name().c_str(), counts.c_str(),
              static_cast<long long>(ms), error.c_str());
  std::fflush(stdout);
  return error.empty();
}

bool chosen(const Cell& cell, const std::vector<std::string>& words) {
  const std::string name = " " + cell.name() + " ";
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

int usage(std::FILE* to, int status) {
  std::fputs(
      "usage: native_matrix [--filter WORDS] [--every N] [--repeat N]\n"
      "  One line per cell: PATTERN TRANSPORT threads|processes single|multipart SIZE.\n"
      "  --filter WORDS  only cells whose name contains each of the words, such as \"req ipc\"; may be given again\n"
      "  --every N       of those each N-th\n"
      "  --repeat N      every cell N times\n"
      "exit status: 0 all cells are right, 1 some are not, 2 wrong usage\n",
      to);
  return status;
}

int run(int argc, char** argv) {
  std::vector<std::string> words;
  int repeat = 1;
  int every = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      return usage(stdout, 0);
    }
    if (i + 1 == argc) {
      return usage(stderr, 2);
    }
    if (argument == "--filter") {
      std::istringstream text(argv[++i]);
      for (std::string word; text >> word;) {
        words.push_back(word);
      }
    } else if (argument == "--repeat") {
      repeat = std::atoi(argv[++i]);
    } else if (argument == "--every") {
      every = std::max(std::atoi(argv[++i]), 1);
    } else {
      return usage(stderr, 2);
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  prepare_payload();
  std::string directory = (std::filesystem::temp_directory_path() / "weft-matrix-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror("mkdtemp");
    return 2;
  }
  int right = 0;
  int wrong = 0;
  bool has_certificates = false;
  int number = 0;
  for (const Cell& cell : all_cells()) {
    if (!chosen(cell, words) || number++ % every != 0) {
      continue;
    }
    if (has_tls(cell) && !has_certificates && !(has_certificates = make_certificates(directory))) {
      std::puts("FAIL: openssl makes no certificates");
      ++wrong;
      break;
    }
    for (int i = 0; i < repeat; ++i) {
      ++(run_cell(cell, directory) ? right : wrong);
    }
  }
  std::filesystem::remove_all(directory);
  std::printf("%d cells right, %d wrong\n", right, wrong);
  return wrong > 0 || right == 0 ? 1 : 0;
}

}  // namespace
}  // namespace weft::interop

int main(int argc, char** argv) { return weft::interop::run(argc, argv); }
