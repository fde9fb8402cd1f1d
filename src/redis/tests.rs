//! The connection to a real server that dies, freezes, fills up and comes back.

use redis::Script;
use tokio::time::Instant;

use super::testing::{Server, SlowWay, free_port, until, url};
use super::*;
use crate::clock::ManualClock;

const WRITE: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 5000)";

async fn open(url: &RedisUrl) -> Redis {
    Redis::start(url, ManualClock::new(Timestamp(7))).await.unwrap()
}

async fn write(redis: &Redis) -> Result<(), NoAnswer> {
    redis.run(Script::new(WRITE).key("k").arg("v")).await
}

async fn until_up(redis: &Redis) {
    until("Redis is up", || redis.mode() == Mode::Up).await;
    write(redis).await.unwrap();
}

/// Calls fail from now on, each within bounds, and Redis counts as away.
async fn until_away(redis: &Redis) {
    for _ in 0..FAILURES_IN_A_ROW {
        let begun = Instant::now();
        assert_eq!(write(redis).await, Err(NoAnswer));
        assert!(begun.elapsed() < REPLY_WITHIN * 10, "a call hung: {:?}", begun.elapsed());
    }
    assert_eq!(redis.mode(), Mode::Away { since: Timestamp(7) });
    assert!(redis.failures() > 0);
}

/// Several looks later it is still away.
async fn stays_away(redis: &Redis) {
    tokio::time::sleep(LOOK_EVERY * 4).await;
    assert_eq!(redis.mode(), Mode::Away { since: Timestamp(7) });
}

#[tokio::test]
async fn one_that_comes_later_is_used_then() {
    let port = free_port();
    let redis = open(&url(port)).await;
    assert_eq!((redis.mode(), write(&redis).await), (Mode::Away { since: Timestamp(7) }, Err(NoAnswer)));
    assert_eq!(redis.failures(), 0, "a call while it is away is not made");
    let _server = Server::start_at(port).await;
    until_up(&redis).await;
}

#[tokio::test]
async fn killed_it_is_away_at_once_and_back_when_it_is_back() {
    let mut server = Server::start().await;
    let redis = open(&server.url()).await;
    assert_eq!(redis.mode(), Mode::Up);
    server.kill();
    until_away(&redis).await;
    server.restart().await;
    until_up(&redis).await;
}

#[tokio::test]
async fn frozen_it_is_away_after_a_few_calls() {
    let server = Server::start().await;
    let redis = open(&server.url()).await;
    server.freeze();
    until_away(&redis).await;
    server.thaw();
    until_up(&redis).await;
}

#[tokio::test]
async fn slow_it_is_away_until_it_is_fast_again() {
    let server = Server::start().await;
    let way = SlowWay::to(&server).await;
    let redis = open(&url(way.port)).await;
    way.delay_ms(500);
    until_away(&redis).await;
    stays_away(&redis).await;
    way.delay_ms(0);
    until_up(&redis).await;
}

#[tokio::test]
async fn full_it_is_away_until_there_is_room() {
    let server = Server::start().await;
    let redis = open(&server.url()).await;
    let () = server.ask("CONFIG SET maxmemory 1").await;
    until_away(&redis).await;
    stays_away(&redis).await;
    let () = server.ask("CONFIG SET maxmemory 0").await;
    until_up(&redis).await;
}

#[tokio::test]
async fn a_replica_that_takes_no_writes_is_away_until_it_is_promoted() {
    let server = Server::start().await;
    let redis = open(&server.url()).await;
    let () = server.ask("REPLICAOF 127.0.0.1 1").await;
    until_away(&redis).await;
    stays_away(&redis).await;
    let () = server.ask("REPLICAOF NO ONE").await;
    until_up(&redis).await;
}

#[tokio::test]
async fn a_fault_of_one_script_is_not_the_servers() {
    let server = Server::start().await;
    let redis = open(&server.url()).await;
    let () = server.ask("RPUSH list x").await;
    for _ in 0..FAILURES_IN_A_ROW {
        let read = Script::new("return redis.call('GET', KEYS[1])");
        assert_eq!(redis.run::<String>(&read.key("list")).await, Err(NoAnswer));
        write(&redis).await.unwrap();
    }
    assert_eq!(redis.mode(), Mode::Up);
}

#[tokio::test]
async fn with_tls_a_server_without_it_is_away() {
    let server = Server::start().await;
    let url = RedisUrl::parse(&format!("rediss://127.0.0.1:{}", server.port())).unwrap();
    let redis = open(&url).await;
    assert_eq!(redis.mode(), Mode::Away { since: Timestamp(7) });
}
