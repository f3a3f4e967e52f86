// SPDX-License-Identifier: MIT
//! hyper: a runtime of tokio for each thread, and no router. GET /SIZE answers letters.

use std::convert::Infallible;
use std::io;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    host::count_message();
    let size = request.uri().path().strip_prefix('/').and_then(|text| text.parse().ok());
    let Some(text) = size.and_then(host::letters) else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text)));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    Ok(response)
}

async fn serve(stream: TcpStream) {
    let mut connection = http1::Builder::new();
    connection.pipeline_flush(true); // one write for the answers to one read
                                     // An error is the end of the connection.
    let _ = connection.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

fn main() -> io::Result<()> {
    host::run("hyper", |threads| host::serve_connections(threads, serve))
}
