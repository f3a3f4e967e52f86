// SPDX-License-Identifier: MIT
// A job queue in memory: a ROUTER gives each job to a worker that is free, and gives it to another one when the worker
// dies. (work_queue.cc has one that is kept on disk and outlives a kill of every process.)
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

constexpr std::size_t kJobs = 100, kWorkers = 3;

// Says "free", with the result of its last job, until the context ends. The clumsy one dies of its third job.
Result<void> work(Context& context, const std::string& endpoint, bool clumsy) {
  Socket socket = WEFT_TRY(context.socket(SocketType::dealer));
  WEFT_TRY(socket.connect(endpoint));
  WEFT_TRY(socket.send({"free", ""}));
  for (int done = 0;; ++done) {
    const Message job = WEFT_TRY(socket.recv());
    if (clumsy && done == 2) {
      return {};  // the socket closes: the queue gets "gone"
    }
    WEFT_TRY(socket.send({"free", "did " + job.to_string()}));
  }
}

// Until each job has its result.
Result<void> share_out(Socket& socket) {
  std::deque<std::string> waiting;
  for (std::size_t i = 0; i < kJobs; ++i) {
    waiting.push_back("job " + std::to_string(i));
  }
  std::map<std::string, std::string> jobs;  // of workers
  std::set<std::string> free;
  std::set<std::string> results;
  for (bool begun = false; results.size() < kJobs;) {
    const std::vector<Message> message = WEFT_TRY(socket.recv_all());  // the worker's name, a word, a result
    const std::string worker = message[0].to_string();
    if (message.size() == 3 && message[1].text() == "free") {
      jobs.erase(worker);
      free.insert(worker);
      if (!message[2].empty()) {
        results.insert(message[2].to_string());
      }
    } else {  // "gone"
      free.erase(worker);
      if (const auto lost = jobs.extract(worker)) {
        std::printf("%s goes to another worker\n", lost.mapped().c_str());
        waiting.push_front(lost.mapped());
      }
    }
    begun |= free.size() == kWorkers;
    while (begun && !waiting.empty() && !free.empty()) {
      const std::string next = free.extract(free.begin()).value();
      if (const auto sent = socket.send({next, waiting.front()})) {
        jobs[next] = waiting.front();
        waiting.pop_front();
      } else if (sent.error() != Errc::unreachable) {  // unreachable: it has left, and "gone" comes
        return sent;
      }
    }
  }
  return {};
}

Result<void> run() {
  Context context;
  Socket socket = WEFT_TRY(context.socket(SocketType::router));
  WEFT_TRY(socket.set(option::router_mandatory, true));      // no job vanishes to a worker that has left
  WEFT_TRY(socket.set(option::disconnect_message, "gone"));  // received in the name of a worker that leaves
  WEFT_TRY(socket.set(option::receive_timeout, 10s));
  const std::string endpoint = WEFT_TRY(socket.bind("tcp://127.0.0.1:*"));
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&context, &endpoint, i] { (void)work(context, endpoint, i == 0); });
  }
  const auto result = share_out(socket);
  context.shut_down();  // ends the workers' waits
  for (std::thread& worker : workers) {
    worker.join();
  }
  return result;
}

int main() {
  const auto result = run();
  std::printf("job_queue: %s\n", result ? "all jobs are done" : result.error().message().c_str());
  return result ? 0 : 1;
}
