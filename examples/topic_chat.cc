// SPDX-License-Identifier: MIT
// A chat without a server of its own: each room is a topic, each member a process. They meet in a fleet of this host,
// or with --fleet in another one (docs/fleet.md).
// `topic_chat --help` explains the commands. Without an argument three members chat, one of them dies, and the program
// ends.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "child.h"
#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace {

using namespace std::chrono_literals;

constexpr const char* kHelp =
    "usage: topic_chat [--fleet FLEET | --directory DIR] NAME [ROOM]\n"
    "  NAME, ROOM    letters and digits; without a room you are in `lobby`\n"
    "  --fleet       where the members meet: nats://HOST:PORT,... or another fleet; by default that of this user\n"
    "  --directory   the fleet of this user, with its sockets in DIR\n"
    "Lines are said in the room, until the end of the input or:\n"
    "  /join ROOM    leaves the room that you are in\n"
    "  /who          all that are here, in any room\n"
    "  /quit\n"
    "Without a name: a demonstration.\n";

void show(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Member: one member of the chat. Three threads: one reads the keyboard, one shows messages, one shows the members.
class Member {
 public:
  static weft::Result<void> chat(weft::Context& context, const weft::TopicsOptions& options, const std::string& room) {
    weft::Topics topics = WEFT_TRY(weft::Topics::open(context, options));
    weft::Subscription said = WEFT_TRY(topics.subscribe("room." + room));
    Member member(topics, said, options.node);
    std::thread showing([&] { member.show_what_is_said(); });
    std::thread watching([&] { member.show_who_is_here(); });
    const auto result = member.take_lines(room);
    topics.close();  // wakes both threads
    showing.join();
    watching.join();
    return result;
  }

 private:
  Member(weft::Topics& topics, weft::Subscription& said, std::string name)
      : topics_(topics), said_(said), name_(std::move(name)) {}

  weft::Result<void> take_lines(std::string room) {
    WEFT_TRY(enter(room));
    for (std::string line; std::getline(std::cin, line) && line != "/quit";) {
      if (line.starts_with("/join ")) {
        const std::string next = line.substr(6);
        if (const auto added = said_.add("room." + next); !added) {
          show("* " + added.error().message());
          continue;
        }
        WEFT_TRY(say(room, "* " + name_ + " left " + room));
        WEFT_TRY(said_.remove("room." + room));
        room = next;
        WEFT_TRY(enter(room));
      } else if (line == "/who") {
        std::set<std::string> all = {name_};
        for (const weft::NodeInfo& other : topics_.nodes()) {
          all.insert(other.node);
        }
        std::string list;
        for (const std::string& name : all) {
          list += " " + name;
        }
        show("* here:" + list);
      } else {
        WEFT_TRY(say(room, name_ + ": " + line));
      }
    }
    return say(room, "* " + name_ + " left " + room);
  }
  weft::Result<void> say(const std::string& room, const std::string& text) {
    weft::Publisher publisher = WEFT_TRY(topics_.publisher("room." + room));
    return publisher.publish(text);
  }
  // Those who are in the room get the greeting: the publisher waits for them, but not long for those in other rooms.
  weft::Result<void> enter(const std::string& room) {
    const auto others = topics_.sync(weft::sys::now() + 1s);
    weft::Publisher publisher = WEFT_TRY(topics_.publisher("room." + room));
    (void)publisher.wait_subscribers((others ? others->size() : 0) + 1, weft::sys::now() + 300ms);
    return publisher.publish("* " + name_ + " came to " + room);
  }
  void show_what_is_said() {
    while (const auto message = said_.next()) {
      if (message->missed() != 0) {
        show("* " + std::to_string(message->missed()) + " lines were lost");
      }
      show(std::string(message->text()));
    }
  }
  void show_who_is_here() {
    std::vector<weft::NodeInfo> known;
    for (;;) {
      const auto now = topics_.watch_nodes(known, weft::sys::now() + 1h);
      if (now) {
        show_differences(known, *now);
        known = *now;
      } else if (now.error() != weft::Errc::timed_out) {
        return;
      }
    }
  }
  static void show_differences(const std::vector<weft::NodeInfo>& before, const std::vector<weft::NodeInfo>& after) {
    const auto names = [](const std::vector<weft::NodeInfo>& nodes) {
      std::set<std::string> all;
      for (const weft::NodeInfo& node : nodes) {
        all.insert(node.node);
      }
      return all;
    };
    const auto old = names(before);
    const auto current = names(after);
    for (const std::string& name : current) {
      if (!old.contains(name)) {
        show("* " + name + " is here");
      }
    }
    for (const std::string& name : old) {
      if (!current.contains(name)) {
        show("* " + name + " is gone");
      }
    }
  }

  weft::Topics& topics_;
  weft::Subscription& said_;
  const std::string name_;
};

// --- the demonstration ---

// Reads until that line comes.
weft::Result<void> expect(Child& member, const std::string& line) {
  for (std::string got = member.line(); !got.empty(); got = member.line()) {
    if (got == line) {
      std::printf("%s\n", line.c_str());
      return {};
    }
  }
  std::fprintf(stderr, "nobody said: %s\n", line.c_str());
  return weft::Error(weft::Errc::connection_closed, "the chat is over");
}

// Place: the option that names the meeting place.
struct Place {
  std::string option;  // --fleet, --directory or empty
  std::string value;
};

weft::Result<void> demonstrate(const Place& place) {
  const auto member = [&](const char* name) { return Child::start({place.option, place.value, name, "tea"}); };
  Child ann = WEFT_TRY(member("ann"));
  WEFT_TRY(expect(ann, "* ann came to tea"));
  Child bob = WEFT_TRY(member("bob"));
  WEFT_TRY(expect(bob, "* bob came to tea"));
  WEFT_TRY(expect(ann, "* bob came to tea"));
  Child eve = WEFT_TRY(member("eve"));
  WEFT_TRY(expect(eve, "* eve came to tea"));
  WEFT_TRY(expect(ann, "* eve came to tea"));
  WEFT_TRY(expect(bob, "* eve came to tea"));

  ann.say("hello");
  WEFT_TRY(expect(bob, "ann: hello"));
  WEFT_TRY(expect(eve, "ann: hello"));
  eve.say("/join den");
  WEFT_TRY(expect(eve, "* eve came to den"));
  WEFT_TRY(expect(ann, "* eve left tea"));
  WEFT_TRY(expect(bob, "* eve left tea"));
  bob.say("now we are alone");
  WEFT_TRY(expect(ann, "bob: now we are alone"));
  ann.say("/who");
  WEFT_TRY(expect(ann, "* here: ann bob eve"));

  bob.kill();  // like kill -9: bob sends nothing any longer
  WEFT_TRY(expect(ann, "* bob is gone"));
  ann.say("/who");
  WEFT_TRY(expect(ann, "* here: ann eve"));
  eve.say("/join tea");
  WEFT_TRY(expect(ann, "* eve came to tea"));
  ann.say("/quit");
  WEFT_TRY(expect(eve, "* ann left tea"));
  return ann.wait() ? weft::Result<void>() : weft::Error(weft::Errc::other, "ann did not end well");
}

weft::Result<void> run(const Place& place, const std::vector<std::string>& words) {
  weft::Context context;
  weft::TopicsOptions options;
  if (place.option == "--fleet") {
    options.fleet = place.value;
  } else {
    options.runtime_directory = place.value;
  }
  options.node = words[0];
  options.presence = 5s;
  return Member::chat(context, options, words.size() > 1 ? words[1] : "lobby");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  Place place;
  if (words.size() >= 2 && (words[0] == "--directory" || words[0] == "--fleet")) {
    place = {words[0], words[1]};
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.size() > 2 || (!words.empty() && words[0].starts_with('-'))) {
    const bool asked = words[0] == "--help" || words[0] == "-h";
    std::fputs(kHelp, asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  weft::Result<void> result;
  if (words.empty() && place.option == "--fleet") {
    result = demonstrate(place);
  } else if (words.empty()) {
    char made[] = "/tmp/weft-chat-XXXXXX";
    if (::mkdtemp(made) == nullptr) {
      std::perror("topic_chat");
      return 1;
    }
    result = demonstrate({"--directory", made});
    std::filesystem::remove_all(made);
  } else {
    result = run(place, words);
  }
  if (!result) {
    std::fprintf(stderr, "topic_chat: %s\n", result.error().message().c_str());
    return 1;
  }
}
