// SPDX-License-Identifier: MIT
//! The command line, the counters and the control line of host.h, for servers that are crates of Rust.

pub mod client;
pub mod grpc;
pub mod wire;

use std::env;
use std::future::Future;
use std::io::{self, BufRead, Write};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{mpsc, Mutex, OnceLock};
use std::thread;

use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

pub const BODY_MAX: usize = 16 * 1024 * 1024;
pub const BACKLOG: u32 = 4096;

/// The counters of one thread: that thread writes, the control line reads.
#[repr(align(128))]
#[derive(Default)]
struct Tally {
    messages: AtomicU64,
    accepted: AtomicU64,
}

static TALLIES: Mutex<Vec<&'static Tally>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: &'static Tally = {
        let mine: &'static Tally = Box::leak(Box::default());
        TALLIES.lock().expect("no thread panics").push(mine);
        mine
    };
}

// One writer; relaxed: guards no memory.
fn add_one(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// Counts a request or a message of the calling thread.
pub fn count_message() {
    MINE.with(|mine| add_one(&mine.messages));
}

/// Counts a connection of the calling thread.
pub fn count_connection() {
    MINE.with(|mine| add_one(&mine.accepted));
}

/// The body of the answer to GET /SIZE: the alphabet again and again. None if the size is too large.
pub fn letters(size: usize) -> Option<&'static [u8]> {
    static ALL: OnceLock<Vec<u8>> = OnceLock::new();
    let all = ALL.get_or_init(|| (b'a'..=b'z').cycle().take(BODY_MAX).collect());
    all.get(..size)
}

/// The version of a crate in the manifest, which has exact ones.
pub(crate) fn version_of(name: &str) -> &'static str {
    include_str!("../Cargo.toml")
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .find(|(key, _)| *key == name)
        .and_then(|(_, rest)| rest.split("\"=").nth(1))
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("of an unknown version")
}

/// The number of threads. The other options of host.h have an effect on other servers only.
fn parse_threads() -> usize {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let mut threads = 1;
    for pair in arguments.chunks(2) {
        match (pair[0].as_str(), pair.get(1).and_then(|text| text.parse().ok())) {
            ("--threads", Some(number)) if number > 0 => threads = number,
            ("--root", _) if pair.len() == 2 => {}
            _ => {
                eprintln!("usage: PROGRAM [--threads N] [--root DIR]");
                process::exit(2);
            }
        }
    }
    threads
}

/// The process may have as many descriptors as the system allows.
fn allow_files() {
    // SAFETY: both calls get a valid struct, and keep nothing of it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn sum(of: impl Fn(&Tally) -> &AtomicU64) -> u64 {
    let tallies = TALLIES.lock().expect("no thread panics");
    tallies.iter().map(|tally| of(tally).load(Relaxed)).sum()
}

/// The main() of a server: `start` gets a number of threads, and returns the port of 127.0.0.1 on which they serve. The
/// end of the standard input ends the program.
pub fn run(name: &str, start: fn(usize) -> io::Result<u16>) -> io::Result<()> {
    let threads = parse_threads();
    allow_files();
    letters(0); // made before the first request
    let port = start(threads)?;
    let (version, pid) = (version_of(name), process::id());
    let mut out = io::stdout();
    writeln!(out, r#"{{"version": "{name} {version}", "path": "", "port": {port}, "pid": {pid}}}"#)?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line != "counts" {
            eprintln!("no command {line:?}");
            process::exit(1);
        }
        let (messages, accepted) = (sum(|tally| &tally.messages), sum(|tally| &tally.accepted));
        writeln!(
            out,
            r#"{{"messages": {messages}, "accepted": {accepted}, "closed": 0, "refused": 0, "reasons": {{}}}}"#
        )?;
        out.flush()?;
    }
    process::exit(0); // the server's threads still run
}

/// For `run`: threads with a runtime of tokio and a listener each, which call `serve` for each connection.
pub fn serve_connections<Serve, Served>(threads: usize, serve: Serve) -> io::Result<u16>
where
    Serve: Fn(TcpStream) -> Served + Copy + Send + 'static,
    Served: Future<Output = ()> + 'static,
{
    let (tell, told) = mpsc::channel();
    let mut port = 0;
    for _ in 0..threads {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseport(true)?;
        socket.bind(([127, 0, 0, 1], port).into())?;
        port = socket.local_addr()?.port();
        let tell = tell.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
            LocalSet::new().block_on(&runtime, async move {
                let listener = socket.listen(BACKLOG).expect("a listener");
                tell.send(()).expect("the main thread waits");
                loop {
                    let Ok((stream, _)) = listener.accept().await else {
                        tokio::task::yield_now().await; // the peer has gone
                        continue;
                    };
                    let _ = stream.set_nodelay(true); // fails if the peer has gone
                    count_connection();
                    tokio::task::spawn_local(serve(stream));
                }
            });
        });
    }
    for _ in 0..threads {
        told.recv().expect("each thread listens");
    }
    Ok(port)
}
