// SPDX-License-Identifier: MIT
// members_side HUB COUNT: handles of this process, each with a watch of the bucket "config" of the hub. Writes
// "joined BYTES DESCRIPTORS" when all have the first value, with the memory and descriptors of each handle; then
// "changed" when all have the value "2", until standard input ends.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

template <typename T>
T must(const char* what, weft::Result<T> result) {
  if (!result) {
    std::printf("failed %s: %s\n", what, result.error().message().c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  return *std::move(result);
}

struct Member {
  weft::Topics topics;
  weft::KeyValue bucket;
  weft::KeyValueWatch watch;
};

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

void wait_for_value(std::vector<Member>& members, const char* value) {
  for (Member& each : members) {
    while (must("value", each.watch.next_until(weft::sys::now() + 300s)).text() != value) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const int count = std::atoi(argv[2]);
  const std::int64_t bytes = resident_bytes();
  const std::int64_t fds = descriptors();
  weft::Context context;
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) {
    weft::TopicsOptions options;
    options.fleet = "inproc:member-" + std::to_string(i);
    options.hub = argv[1];
    weft::Topics topics = must("open", weft::Topics::open(context, options));
    weft::KeyValue bucket = must("bucket", topics.key_value("config"));
    weft::KeyValueWatch watch = must("watch", bucket.watch());
    members.push_back({std::move(topics), std::move(bucket), std::move(watch)});
  }
  wait_for_value(members, "1");
  std::printf("joined %lld %lld\n", static_cast<long long>((resident_bytes() - bytes) / count),
              static_cast<long long>((descriptors() - fds) / count));
  std::fflush(stdout);
  wait_for_value(members, "2");
  std::puts("changed");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
