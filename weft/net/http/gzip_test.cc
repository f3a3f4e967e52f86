// SPDX-License-Identifier: MIT
#include "weft/net/http/gzip.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::net::http {
namespace {

TEST(Gzip, AClientTakesItIfItSaysSoWithAWeight) {
  for (const char* field : {"gzip", "GZIP", "x-gzip", "br, gzip", "gzip;q=0.001", "gzip ; q=1", "*", "br;q=0, *",
                            "deflate, gzip;q=1.0, *;q=0", "gzip;level=1", " gzip "}) {
    EXPECT_TRUE(takes_gzip(field)) << field;
  }
  for (const char* field : {"", "br", "identity", "gzip;q=0", "gzip;q=0.000", "gzip; Q=0.", "*;q=0", "gzip;q=0, *",
                            "gzipped", ",", ";q=1", "*;q=0, br"}) {
    EXPECT_FALSE(takes_gzip(field)) << field;
  }
}

TEST(Gzip, ATextThatGetsSmallerIsAMemberOfGzip) {
  if (!gzip_available()) {
    EXPECT_FALSE(gzip(std::string(1000, 'a'), 1));
    return;
  }
  const auto packed = gzip(std::string(100'000, 'a'), 1);
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), 1000u);
  EXPECT_TRUE(packed->starts_with("\x1F\x8B\x08"));
  EXPECT_EQ(packed->substr(packed->size() - 4), std::string("\xA0\x86\x01\x00", 4));  // the size, in the tail
  EXPECT_FALSE(gzip("", 1));
  EXPECT_FALSE(gzip("short", 9));
}

}  // namespace
}  // namespace weft::net::http
