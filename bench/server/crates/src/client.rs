// SPDX-License-Identifier: MIT
//! The command line and the control line of client_host.h, for clients that are crates of Rust.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, Write};
use std::process;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub struct Options {
    pub port: u16,
    pub connections: u64,
    pub size: usize,
    pub depth: u64,
    pub streams: bool,
}

fn parse() -> Options {
    let mut options = Options { port: 0, connections: 1, size: 64, depth: 1, streams: false };
    let arguments: Vec<String> = env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        let number: u64 = pair.get(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        match pair[0].as_str() {
            "--port" => options.port = number as u16,
            "--connections" => options.connections = number,
            "--size" => options.size = number as usize,
            "--depth" => options.depth = number,
            "--streams" => options.streams = number != 0,
            _ => options.port = 0,
        }
    }
    if options.port == 0 || options.connections == 0 || options.size < super::wire::BODY_MIN || options.depth == 0 {
        eprintln!("usage: PROGRAM --port PORT [--connections N] [--size BYTES] [--depth N] [--streams 0|1]");
        process::exit(2);
    }
    options
}

/// The times of round trips.
#[derive(Default)]
pub struct Trips {
    buckets: BTreeMap<u64, u64>, // by the lower end of a bucket, 1/32 of a power of two wide
    all: Vec<u64>,
}

impl Trips {
    pub fn add(&mut self, trip: Duration) {
        self.all.push(trip.as_nanos() as u64);
    }

    fn members(&mut self) -> String {
        if self.all.is_empty() {
            return String::new();
        }
        self.all.sort_unstable();
        for trip in &self.all {
            let shift = (64 - trip.leading_zeros()).saturating_sub(6);
            *self.buckets.entry(trip >> shift << shift).or_default() += 1;
        }
        let at = |share: f64| self.all[((self.all.len() - 1) as f64 * share) as usize];
        let buckets: Vec<String> = self.buckets.iter().map(|(low, count)| format!("[{low}, {count}]")).collect();
        format!(
            r#", "p50_ns": {}, "p99_ns": {}, "p999_ns": {}, "max_ns": {}, "trips": [{}]"#,
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            buckets.join(", ")
        )
    }
}

/// The main() of a client: `load` gets the number of calls, or of messages of each connection's stream.
pub fn run(name: &str, open: impl FnOnce(Options) -> Box<dyn FnMut(u64) -> Trips>) -> io::Result<()> {
    let options = parse();
    let mut load = open(options);
    let mut out = io::stdout();
    writeln!(out, r#"{{"version": "{name} {}"}}"#, super::version_of(name))?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some(count) = line.strip_prefix("run ").and_then(|text| text.parse::<u64>().ok()) else {
            eprintln!("no command {line:?}");
            process::exit(1);
        };
        let each = if options.streams { (count / options.connections).max(1) } else { count };
        let start = Instant::now();
        let mut trips = load(each);
        let seconds = start.elapsed().as_secs_f64();
        let messages = if options.streams { each * options.connections } else { count };
        writeln!(out, r#"{{"messages": {messages}, "seconds": {seconds}{}}}"#, trips.members())?;
        out.flush()?;
    }
    process::exit(0)
}
