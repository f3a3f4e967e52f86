// SPDX-License-Identifier: MIT
//! tonic's client: a channel for each connection, and a task for each call in flight.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use host::client::{self, Options, Trips};
use host::grpc::{BytesCodec, CALL, PUSH, WINDOW};
use host::wire::{check_report, make_tag, Bodies};
use http::uri::PathAndQuery;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::Request;

struct Connection {
    channel: Channel,
    number: u64,
    sequence: Cell<u64>,
}

impl Connection {
    fn next_tag(&self) -> u64 {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        make_tag(self.number, sequence)
    }
}

struct Load {
    runtime: Runtime,
    local: LocalSet,
    options: Options,
    bodies: Rc<Bodies>,
    connections: Vec<Rc<Connection>>,
}

impl Load {
    fn open(options: Options) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let local = LocalSet::new();
        let connections = local.block_on(&runtime, async {
            let mut connections = Vec::new();
            for number in 0..options.connections {
                let endpoint =
                    Endpoint::from_shared(format!("http://127.0.0.1:{}", options.port)).expect("an endpoint");
                let channel = endpoint
                    .tcp_nodelay(true)
                    .initial_stream_window_size(WINDOW)
                    .initial_connection_window_size(WINDOW)
                    .connect()
                    .await
                    .expect("a connection");
                connections.push(Rc::new(Connection { channel, number, sequence: Cell::new(0) }));
            }
            connections
        });
        Self { runtime, local, options, bodies: Rc::new(Bodies::new(options.size)), connections }
    }

    fn call(&mut self, count: u64) -> Trips {
        let left = Rc::new(Cell::new(count));
        let trips = Rc::new(RefCell::new(Trips::default()));
        self.local.block_on(&self.runtime, async {
            let mut lanes = Vec::new();
            for _ in 0..self.options.depth {
                for connection in &self.connections {
                    let (connection, bodies) = (connection.clone(), self.bodies.clone());
                    let (left, trips) = (left.clone(), trips.clone());
                    lanes.push(tokio::task::spawn_local(async move {
                        let mut grpc = Grpc::new(connection.channel.clone());
                        while left.get() > 0 {
                            left.set(left.get() - 1);
                            let tag = connection.next_tag();
                            let start = Instant::now();
                            let request = Request::new(Bytes::from(bodies.make(tag)));
                            grpc.ready().await.expect("a connection");
                            let answer = grpc.unary(request, PathAndQuery::from_static(CALL), BytesCodec).await;
                            bodies.check(&answer.expect("an answer").into_inner(), tag);
                            trips.borrow_mut().add(start.elapsed());
                        }
                    }));
                }
            }
            for lane in lanes {
                lane.await.expect("a lane ends");
            }
        });
        trips.take()
    }

    fn stream(&mut self, each: u64) -> Trips {
        self.local.block_on(&self.runtime, async {
            let mut streams = Vec::new();
            for connection in &self.connections {
                let bodies = Bodies::clone(&self.bodies);
                let (number, first) = (connection.number, connection.sequence.get());
                connection.sequence.set(first + each);
                let mut grpc = Grpc::new(connection.channel.clone());
                streams.push(tokio::task::spawn_local(async move {
                    let messages = (first..first + each).map(move |at| Bytes::from(bodies.make(make_tag(number, at))));
                    let request = Request::new(tokio_stream::iter(messages));
                    grpc.ready().await.expect("a connection");
                    let answer = grpc.client_streaming(request, PathAndQuery::from_static(PUSH), BytesCodec).await;
                    check_report(&answer.expect("an answer").into_inner(), each);
                }));
            }
            for stream in streams {
                stream.await.expect("a stream ends");
            }
        });
        Trips::default()
    }
}

fn main() -> io::Result<()> {
    client::run("tonic", |options| {
        let mut load = Load::open(options);
        Box::new(move |count| if options.streams { load.stream(count) } else { load.call(count) })
    })
}
