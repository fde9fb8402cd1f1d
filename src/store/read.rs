//! Reading with a bound: sqlx waits for an answer as long as the connection stands, which is for ever
//! where the other machine is gone.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use sqlx::any::{AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyPool, Describe, Either, Execute, Executor, SqlStr};

use super::{no_answer, within};

/// Runs a statement on a connection of the pool. Where it takes too long it fails, and the connection,
/// on which an answer may still come, is closed.
#[derive(Debug, Clone)]
pub struct Read {
    pool: AnyPool,
    limit: Duration,
}

impl Read {
    pub(super) fn new(pool: &AnyPool, limit: Duration) -> Self {
        Self { pool: pool.clone(), limit }
    }

    async fn run<T>(
        self,
        work: impl AsyncFnOnce(&mut PoolConnection<Any>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let deadline = tokio::time::Instant::now() + self.limit;
        let mut connection = within(self.limit, self.pool.acquire()).await?;
        let answer = tokio::time::timeout_at(deadline, work(&mut connection)).await;
        answer.unwrap_or_else(|_| {
            connection.close_on_drop();
            Err(no_answer())
        })
    }
}

impl<'c> Executor<'c> for Read {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let all = async move {
            let rows = self.run(async |c| Ok((&mut **c).fetch_many(query).collect::<Vec<_>>().await)).await;
            stream::iter(rows.unwrap_or_else(|error| vec![Err(error)]))
        };
        Box::pin(stream::once(all).flatten())
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        Box::pin(self.run(async |c| (&mut **c).fetch_optional(query).await))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, Result<AnyStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.run(async |c| (&mut **c).prepare_with(sql, parameters).await))
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Any>, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.run(async |c| (&mut **c).describe(sql).await))
    }
}
