// SPDX-License-Identifier: MIT
//! actix-web, as its users write it, without its limits of time. GET /SIZE answers letters.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use actix_web::http::header::ContentType;
use actix_web::http::KeepAlive;
use actix_web::{rt, web, App, HttpResponse, HttpServer};

async fn answer(size: web::Path<usize>) -> HttpResponse {
    host::count_message();
    match host::letters(size.into_inner()) {
        Some(text) => HttpResponse::Ok().content_type(ContentType::plaintext()).body(web::Bytes::from_static(text)),
        None => HttpResponse::NotFound().finish(),
    }
}

fn start(threads: usize) -> io::Result<u16> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let served = rt::System::new().block_on(async {
            let server = HttpServer::new(|| App::new().route("/{size}", web::get().to(answer)))
                .workers(threads)
                .backlog(host::BACKLOG)
                .max_connections(1 << 20)
                .keep_alive(KeepAlive::Os) // until the peer closes
                .client_request_timeout(Duration::ZERO)
                .client_disconnect_timeout(Duration::ZERO)
                .tcp_nodelay(true)
                .disable_signals()
                .bind(("127.0.0.1", 0))?;
            tell.send(server.addrs()[0].port()).expect("the main thread waits");
            server.run().await
        });
        panic!("actix-web: {served:?}"); // it serves as long as the program runs
    });
    told.recv().map_err(io::Error::other)
}

fn main() -> io::Result<()> {
    host::run("actix-web", start)
}
