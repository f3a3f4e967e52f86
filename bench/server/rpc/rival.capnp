# SPDX-License-Identifier: MIT
# The methods of the rival Cap'n Proto.
@0xd3a97f0c51b2e684;

interface Echo {
  call @0 (body :Data) -> (body :Data);
  push @1 (body :Data) -> stream;
  finish @2 () -> (report :Data);  # of the messages of push() on this connection
}
