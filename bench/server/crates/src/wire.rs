// SPDX-License-Identifier: MIT
//! The bodies of wire.h and their checks.

pub const BODY_MIN: usize = 16;
pub const REPORT: usize = BODY_MIN + 16;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn hash_of(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1u64, 2, 3, 4];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (lane, value) in lanes.iter_mut().enumerate() {
            *value = (*value ^ word(block, 8 * lane)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    let mut words = blocks.remainder().chunks_exact(8);
    for eight in &mut words {
        lanes[0] = (lanes[0] ^ word(eight, 0)).wrapping_mul(PRIME).rotate_left(29);
    }
    let rest = words.remainder();
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| tail << 8 | u64::from(*byte));
    lanes.iter().fold(tail, |hash, lane| (hash ^ lane).wrapping_mul(PRIME).rotate_left(31))
}

fn checksum_of(tag: u64, hash: u64) -> u64 {
    const PRIME: u64 = 0xd6e8_feb8_6659_fd93;
    (hash ^ tag).wrapping_mul(PRIME).rotate_left(32).wrapping_mul(PRIME)
}

pub fn tag_of(body: &[u8]) -> u64 {
    word(body, 0)
}

pub fn intact(body: &[u8]) -> bool {
    body.len() >= BODY_MIN && word(body, 8) == checksum_of(tag_of(body), hash_of(&body[BODY_MIN..]))
}

/// A connection has a number below 2^20; its messages count up from 0.
pub fn make_tag(connection: u64, sequence: u64) -> u64 {
    connection << 44 | sequence
}

/// A filling that all bodies share, and its hash.
#[derive(Clone)]
pub struct Bodies {
    body: Vec<u8>,
    filling: u64,
}

impl Bodies {
    pub fn new(size: usize) -> Self {
        let mut state = size as u64;
        let body: Vec<u8> = (0..size)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 56) as u8
            })
            .collect();
        let filling = hash_of(&body[BODY_MIN..]);
        Self { body, filling }
    }

    pub fn make(&self, tag: u64) -> Vec<u8> {
        let mut body = self.body.clone();
        body[..8].copy_from_slice(&tag.to_le_bytes());
        body[8..BODY_MIN].copy_from_slice(&checksum_of(tag, self.filling).to_le_bytes());
        body
    }

    /// Panics at the first bad answer.
    pub fn check(&self, answer: &[u8], tag: u64) {
        assert_eq!(answer.len(), self.body.len(), "an answer has a wrong size");
        assert!(intact(answer), "an answer is damaged");
        assert_eq!(tag_of(answer), tag, "an answer to another call");
    }
}

/// The receiver of a stream: each message comes once, in order and intact.
#[derive(Default)]
pub struct StreamCheck {
    last: u64,
    count: u64,
    bad: u64,
}

impl StreamCheck {
    pub fn take(&mut self, body: &[u8]) {
        let good = intact(body) && (self.count == 0 || tag_of(body) == self.last + 1);
        self.last = if body.len() >= BODY_MIN { tag_of(body) } else { 0 };
        self.count += 1;
        self.bad += u64::from(!good);
    }

    pub fn report(&self) -> Vec<u8> {
        let mut report = vec![0; BODY_MIN];
        report.extend(self.count.to_le_bytes());
        report.extend(self.bad.to_le_bytes());
        report
    }
}

/// Panics unless the report is that of `count` good messages.
pub fn check_report(report: &[u8], count: u64) {
    assert_eq!(report.len(), REPORT, "the answer to a stream has a wrong size");
    assert_eq!((word(report, 16), word(report, 24)), (count, 0), "messages of a stream are lost or bad");
}
