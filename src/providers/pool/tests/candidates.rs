//! Where the candidates come from and what they are called.

use super::*;

#[tokio::test]
async fn a_reload_keeps_the_counts_and_takes_the_new_limits() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(1))]).await;
    site.ask("default").await.unwrap();
    assert!(site.ask("default").await.is_err());
    apply(&site.store, &[Line("alpha", &["a1"], "m", "other", 1, rpm(2))]).await;
    assert!(site.pool.knows("default"), "not read yet");
    site.pool.reload().await.unwrap();
    site.ask("other").await.unwrap();
    assert!(matches!(site.ask("other").await, Err(CallError::NoRoom { .. })));
    assert_eq!(site.ask("default").await.err(), Some(CallError::UnknownModel { asked: "default".into() }));
    apply(&site.store, &[]).await;
    site.pool.reload().await.unwrap();
    assert!(site.pool.models().is_empty());
    apply(&site.store, &[Line("alpha", &["a1"], "m", "default", 1, rpm(2))]).await;
    site.pool.reload().await.unwrap();
    assert!(site.ask("default").await.is_err(), "a candidate that comes back is still counted");
}

#[tokio::test]
async fn a_running_pool_sees_what_another_process_applies() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let stop = CancellationToken::new();
    apply(&site.store, &[Line("beta", &["b1"], "n", "default", 1, NONE)]).await;
    let running = tokio::spawn(site.pool.clone().run(stop.clone()));
    let seen = async {
        while !site.pool.knows("beta/n") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), seen)
        .await
        .expect("it looks at once, and then twice a second");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn names_are_aliases_or_platform_and_model() {
    let lines = [
        Line("router", &["r1"], "openai/gpt-4o-mini", "small", 2, NONE),
        Line("alpha", &["a1"], "m", "small", 1, NONE),
        Line("alpha", &[], "odd", "alpha/m", 1, NONE),
    ];
    let site = Site::new(&lines).await;
    let reply = site.ask("router/openai/gpt-4o-mini").await.unwrap();
    assert_eq!((reply.platform.as_str(), reply.model.as_str()), ("router", "openai/gpt-4o-mini"));
    assert_eq!(site.ask("small").await.unwrap().platform, "alpha");
    assert_eq!(site.ask("alpha/m").await.unwrap().model, "odd", "an alias wins");
    assert!(matches!(site.ask("openai/gpt-4o-mini").await, Err(CallError::UnknownModel { .. })));
    let models: Vec<_> = site.pool.models().into_iter().map(|m| (m.id, m.owned_by)).collect();
    let listed = [
        ("small", "router"),
        ("router/openai/gpt-4o-mini", "router"),
        ("alpha/m", "alpha"),
        ("alpha/odd", "alpha"),
    ];
    assert_eq!(models, listed.map(|(id, owner)| (id.to_owned(), owner.to_owned())));
}

#[tokio::test]
async fn without_a_pool_the_environments_model_answers_and_else_the_demo() {
    let single = SingleModel {
        platform: "groq".into(),
        base_url: "https://groq.example/v1".into(),
        api_key: "sk-env".into(),
        model: "llama/3".into(),
    };
    let mut site =
        Site::with(PoolConfig { single: Some(single), demo: true, ..PoolConfig::default() }, &[]).await;
    for asked in ["default", "groq/llama/3"] {
        assert_eq!(site.ask(asked).await.unwrap().model, "llama/3");
    }
    assert_eq!(site.row("llama/3").key_id, "environment");
    site.config.single = None;
    site.restart().await;
    let reply = site.ask("default").await.unwrap();
    assert_eq!((reply.platform.as_str(), reply.model.as_str()), ("demo", "demo-1"));
    apply(&site.store, &[Line("alpha", &[], "m", "default", 1, NONE)]).await;
    site.pool.reload().await.unwrap();
    let reply = site.ask("default").await.unwrap();
    assert_eq!(reply.platform, "demo", "a pool without a key takes nobody's place");
    site.config = PoolConfig::default();
    site.restart().await;
    assert!(matches!(site.ask("default").await, Err(CallError::NoRoom { .. })), "a model without a key");
    apply(&site.store, &[]).await;
    site.restart().await;
    assert!(matches!(site.ask("default").await, Err(CallError::UnknownModel { .. })));
}
