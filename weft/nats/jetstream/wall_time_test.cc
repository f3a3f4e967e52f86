// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/wall_time.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace weft::nats::jetstream {
namespace {

std::string written(WallTime time) {
  std::string text;
  append_wall_time(time, text);
  return text;
}
WallTime at(std::int64_t nanoseconds) { return WallTime(Duration(nanoseconds)); }

TEST(JetStreamWallTime, ReadsWhatServersWrite) {
  EXPECT_EQ(read_wall_time("1970-01-01T00:00:00Z").value(), at(0));
  EXPECT_EQ(read_wall_time("2026-11-29T11:05:12.711064586Z").value(), at(1'795'950'312'711'064'586));
  EXPECT_EQ(read_wall_time("2026-11-29T11:05:12.7Z").value(), at(1'795'950'312'700'000'000));
  EXPECT_EQ(read_wall_time("2026-11-29T12:05:12+01:00").value(), at(1'795'950'312'000'000'000));
  EXPECT_EQ(read_wall_time("2026-11-29T05:35:12-05:30").value(), at(1'795'950'312'000'000'000));
  EXPECT_EQ(read_wall_time("2024-02-29T23:59:59.999999999Z").value() + Duration(1),
            read_wall_time("2024-03-01T00:00:00Z").value());
  EXPECT_EQ(read_wall_time("1970-01-01T00:00:00.0000000019Z").value(), at(1));  // more digits are cut
}

TEST(JetStreamWallTime, TimesOutsideOfTheTypeBecomeItsBounds) {
  EXPECT_EQ(read_wall_time("0001-01-01T00:00:00Z").value(), WallTime::min());  // Go's zero
  EXPECT_EQ(read_wall_time("9999-12-31T23:59:59Z").value(), WallTime::max());
  EXPECT_EQ(read_wall_time("0000-01-01T00:00:00+23:59").value(), WallTime::min());
}

TEST(JetStreamWallTime, OtherFormsAreRefused) {
  for (const std::string_view text :
       {"", "2026", "2026-11-29", "2026-11-29T11:05:12", "2026-11-29T11:05:12.Z", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T11:60:00Z", "2026-11-29T11:05:61Z",
        "2026-11-29T11:05:12ZZ", "2026-11-29 11:05:12Z", "+026-11-29T11:05:12Z", "2026-11-29T11:05:12+0100",
        "2026-11-29T11:05:12+24:00", "2026-11-29T11:05:12+01:60", "2026-11-29T11:05:12.5"}) {
    EXPECT_EQ(read_wall_time(text).error().code(), Errc::protocol_error) << text;
  }
}

TEST(JetStreamWallTime, AWrittenTimeIsReadAgain) {
  EXPECT_EQ(written(at(0)), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(written(at(-1)), "1969-12-31T23:59:59.999999999Z");
  for (const std::int64_t time : {std::int64_t{1}, std::int64_t{-1}, std::int64_t{951'782'400'000'000'000},
                                  std::int64_t{1'795'950'312'711'064'586}, std::int64_t{-6'000'000'000'000'000'123},
                                  INT64_MAX, INT64_MIN + 1'000'000'000}) {
    EXPECT_EQ(read_wall_time(written(at(time))).value(), at(time)) << written(at(time));
  }
  EXPECT_EQ(written(WallTime::min()), written(WallTime::min() + std::chrono::seconds(1)));
}

}  // namespace
}  // namespace weft::nats::jetstream
