// SPDX-License-Identifier: MIT
//! tonic: a runtime of tokio for each thread, and no router. Its service is as tonic's own build step writes it.

use std::convert::Infallible;
use std::future::{ready, Future, Ready};
use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use host::grpc::{BytesCodec, PUSH, WINDOW};
use host::wire::StreamCheck;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tonic::body::Body;
use tonic::server::{ClientStreamingService, Grpc, UnaryService};
use tonic::transport::server::{Server, TcpIncoming};
use tonic::{Request, Response, Status, Streaming};
use tower_service::Service;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct Call;

impl UnaryService<Bytes> for Call {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        host::count_message();
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Push;

impl ClientStreamingService<Bytes> for Push {
    type Response = Bytes;
    type Future = Boxed<Result<Response<Bytes>, Status>>;
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let mut messages = request.into_inner();
            let mut check = StreamCheck::default();
            while let Some(message) = messages.message().await? {
                host::count_message();
                check.take(&message);
            }
            host::count_message();
            Ok(Response::new(Bytes::from(check.report())))
        })
    }
}

#[derive(Clone)]
struct Echo;

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Result<http::Response<Body>, Infallible>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(BytesCodec);
            Ok(if request.uri().path() == PUSH {
                grpc.client_streaming(Push, request).await
            } else {
                grpc.unary(Call, request).await
            })
        })
    }
}

fn start(threads: usize) -> io::Result<u16> {
    let (tell, told) = mpsc::channel();
    let mut port = 0;
    for _ in 0..threads {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseport(true)?;
        socket.bind(([127, 0, 0, 1], port).into())?;
        port = socket.local_addr()?.port();
        let tell = tell.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            let served = runtime.block_on(async move {
                let listener = socket.listen(host::BACKLOG).expect("a listener");
                tell.send(()).expect("the main thread waits");
                Server::builder()
                    .initial_stream_window_size(WINDOW)
                    .initial_connection_window_size(WINDOW)
                    .serve_with_incoming(Echo, TcpIncoming::from(listener).with_nodelay(Some(true)))
                    .await
            });
            panic!("tonic: {served:?}"); // it serves as long as the program runs
        });
    }
    for _ in 0..threads {
        told.recv().expect("each thread listens");
    }
    Ok(port)
}

fn main() -> io::Result<()> {
    host::run("tonic", start)
}
