// SPDX-License-Identifier: MIT
//! fastwebsockets, with hyper for the handshake. Each message comes back.

use std::io;

use fastwebsockets::upgrade::{self, UpgradeFut};
use fastwebsockets::{FragmentCollector, OpCode, WebSocketError};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

async fn echo(upgraded: UpgradeFut) -> Result<(), WebSocketError> {
    let mut socket = FragmentCollector::new(upgraded.await?);
    loop {
        let frame = socket.read_frame().await?;
        match frame.opcode {
            OpCode::Text | OpCode::Binary => {
                host::count_message();
                socket.write_frame(frame).await?;
            }
            OpCode::Close => return Ok(()), // it has been answered
            _ => {}
        }
    }
}

async fn take(mut request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, WebSocketError> {
    let (response, upgraded) = upgrade::upgrade(&mut request)?;
    tokio::task::spawn_local(echo(upgraded)); // an error is the end of the connection
    Ok(response)
}

async fn serve(stream: TcpStream) {
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(take));
    let _ = connection.with_upgrades().await; // an error is the end of the connection
}

fn main() -> io::Result<()> {
    host::run("fastwebsockets", |threads| host::serve_connections(threads, serve))
}
