//! What an admin changes: in force at once, in the trail without secrets, and shown on the page.

use super::*;
use crate::audit::{self, Actor, Entry};
use crate::model::providers::{ModelSettings, PoolSource};
use crate::providers::admin::{ModelChange, NewKey};
use crate::store::testing::dump;

fn actor() -> Actor {
    Actor::User("admin@example.com".into())
}

fn settings(alias: &str) -> ModelSettings {
    ModelSettings { alias: alias.into(), rpm: Some(20), rpd: None, tpm: None, tpd: None, priority: 1 }
}

impl Site {
    /// The trail, oldest first.
    async fn trail(&self) -> Vec<Entry> {
        let query = audit::Query { limit: 100, ..audit::Query::default() };
        let mut entries = audit::list(&self.store, &query).await.unwrap();
        entries.reverse();
        entries
    }

    async fn add_key(&self, label: &str, secret: &str) -> Result<String, Error> {
        let new = NewKey { platform: "alpha", label, secret, enabled: true };
        self.pool.add_key(&actor(), new).await.map(|(id, _)| id)
    }
}

#[tokio::test]
async fn a_platform_is_put_together_and_serves() {
    let demo = PoolConfig { demo: true, ..PoolConfig::default() };
    let site = Site::with(demo, &[]).await;
    site.pool.add_platform(&actor(), "alpha", "https://alpha.example/v1/").await.unwrap();
    site.pool.add_model(&actor(), "alpha", "m/1", settings("default")).await.unwrap();
    assert_eq!(site.pool.page().await.unwrap().from, PoolSource::Demo, "half a pool serves nobody");
    assert!(site.ask("default").await.is_ok());
    let id = site.add_key("main", "sk-first").await.unwrap();
    assert_eq!(site.pool.page().await.unwrap().from, PoolSource::Stored);
    site.ask("default").await.unwrap();
    assert_eq!(site.keys(), ["demo", "sk-first"]);

    site.pool.rotate_key(&actor(), &id, " sk-second ").await.unwrap();
    site.ask("alpha/m/1").await.unwrap();
    assert_eq!(site.keys().last().unwrap(), "sk-second");
    let page = site.pool.page().await.unwrap();
    assert_eq!(page.platforms[0].base_url, "https://alpha.example/v1");
    assert_eq!(page.candidates[0].rpm.used, 2, "what it used keeps counting");

    site.pool.enable_key(&actor(), &id, false).await.unwrap();
    assert!(matches!(site.ask("default").await, Err(CallError::NoRoom { .. })));
    let page = site.pool.page().await.unwrap();
    assert!(!page.platforms[0].keys[0].enabled, "disabled keys are listed");
    assert_eq!((page.candidates[0].rpm.used, page.candidates[0].rpm.limit), (2, Some(20)));
    assert_eq!(page.unserved.count, 1);
    assert_eq!(site.pool.unserved_totals(), [("default".to_owned(), UnservedReason::NoKey, 1)]);

    let actions: Vec<String> = site.trail().await.into_iter().map(|entry| entry.action).collect();
    assert_eq!(
        actions,
        [
            "platform.add",
            "platform-model.add",
            "platform-key.add",
            "platform-key.change",
            "platform-key.change"
        ]
    );
    for rows in dump(&site.store).await.into_values() {
        assert!(rows.iter().all(|row| !row.contains("sk-first") && !row.contains("sk-second")), "{rows:?}");
    }
}

#[tokio::test]
async fn limits_change_at_once_and_what_was_counted_stays() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, rpm(1))]).await;
    site.ask("default").await.unwrap();
    assert!(site.ask("default").await.is_err());
    let change = ModelChange { rpm: Some(Some(2)), tpd: Some(Some(9_000)), ..ModelChange::default() };
    let done = site.pool.edit_model(&actor(), "alpha", "m", change.clone()).await.unwrap();
    assert!(site.ask("default").await.is_ok() && site.ask("default").await.is_err());
    let entry = site.trail().await.pop().unwrap();
    assert_eq!((Some(entry.id), entry.actor.as_str()), (done, "admin@example.com"));
    assert_eq!((&entry.before["rpm"], &entry.after["rpm"]), (&json!(1), &json!(2)));
    assert_eq!(site.pool.edit_model(&actor(), "alpha", "m", change).await, Ok(None), "nothing is different");
    assert_eq!(site.trail().await.len(), 1);
    let free = ModelChange { rpm: Some(None), ..ModelChange::default() };
    site.pool.edit_model(&actor(), "alpha", "m", free).await.unwrap();
    assert_eq!(site.row("m").rpm, QuotaRow { used: 2, limit: None });
}

#[tokio::test]
async fn what_is_wrong_is_named_and_changes_nothing() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let before = dump(&site.store).await;
    let pool = &site.pool;
    let key = async |platform, label, secret| {
        let new = NewKey { platform, label, secret, enabled: true };
        pool.add_key(&actor(), new).await.map(|(_, done)| done)
    };
    let zero = ModelSettings { tpm: Some(0), ..settings("x") };
    for (result, status, names) in [
        (pool.add_platform(&actor(), "a b", "https://x/v1").await, 422, "id"),
        (pool.add_platform(&actor(), "x", "ftp://x/v1").await, 422, "base_url"),
        (pool.add_platform(&actor(), "x", "https://user:pw@x/v1").await, 422, "base_url"),
        (pool.add_platform(&actor(), "alpha", "https://x/v1").await, 409, "alpha"),
        (key("nowhere", "x", "sk-hush").await, 404, "nowhere"),
        (key("no\0where", "x", "sk-hush").await, 404, ""),
        (key("alpha", "a1", "sk-hush").await, 409, "a1"),
        (key("alpha", " ", "sk-hush").await, 422, "label"),
        (key("alpha", "x", "sk-hush hush").await, 422, "secret"),
        (pool.rotate_key(&actor(), "alpha-a1", "").await, 422, "secret"),
        (pool.rotate_key(&actor(), "gone", "sk-hush").await, 404, "gone"),
        (pool.enable_key(&actor(), "go\0ne", true).await, 404, ""),
        (pool.remove_key(&actor(), "gone").await, 404, "gone"),
        (pool.add_model(&actor(), "alpha", "m", settings("x")).await, 409, "m"),
        (pool.add_model(&actor(), "alpha", "n", settings("not an alias")).await, 422, "alias"),
        (pool.add_model(&actor(), "alpha", "n", zero).await, 422, "tpm"),
        (pool.add_model(&actor(), "nowhere", "n", settings("x")).await, 404, "nowhere"),
        (pool.edit_model(&actor(), "alpha", "gone", ModelChange::default()).await, 404, "gone"),
        (pool.remove_model(&actor(), "alpha", "gone").await, 404, "gone"),
        (pool.remove_platform(&actor(), "gone").await, 404, "gone"),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.status(), status, "{error}");
        assert!(error.to_string().contains(names) && !error.to_string().contains("hush"), "{error}");
    }
    assert_eq!(dump(&site.store).await, before);
}

#[tokio::test]
async fn a_platform_goes_with_its_parts_each_in_the_trail() {
    let site = Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, NONE)]).await;
    site.pool.remove_model(&actor(), "alpha", "m").await.unwrap();
    assert!(!site.pool.knows("default"));
    site.pool.remove_key(&actor(), "alpha-a2").await.unwrap();
    site.pool.add_model(&actor(), "alpha", "n", settings("default")).await.unwrap();
    site.pool.remove_platform(&actor(), "alpha").await.unwrap();
    let page = site.pool.page().await.unwrap();
    assert_eq!((page.from, page.platforms.len()), (PoolSource::Nothing, 0));
    let trail: Vec<String> = site.trail().await.into_iter().map(|entry| entry.action).collect();
    assert_eq!(
        trail[3..],
        ["platform-key.remove", "platform-model.remove", "platform.remove"],
        "the parts go first"
    );
}

#[tokio::test]
async fn a_cleared_cooldown_is_in_the_trail_and_over() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    let id = CandidateId::new("alpha", "m", "alpha-a1");
    site.script("sk-a1", status(429, Some(90_000)));
    site.ask("default").await.err().unwrap();
    let note = site.pool.page().await.unwrap().candidates[0].cooldown.clone().unwrap();
    assert_eq!(note.until, Some(site.clock.now().plus_ms(90_000)));
    assert!(site.pool.clear_cooldown(&actor(), &id).await.unwrap().is_some());
    assert_eq!(site.pool.page().await.unwrap().candidates[0].cooldown, None);
    let entry = site.trail().await.pop().unwrap();
    assert_eq!((entry.action.as_str(), &entry.after["cooldown"]), ("platform-cooldown.clear", &json!(null)));
    assert_eq!(site.pool.clear_cooldown(&actor(), &id).await, Ok(None));
    let gone = CandidateId::new("alpha", "m", "gone");
    assert!(matches!(site.pool.clear_cooldown(&actor(), &gone).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_test_reaches_that_very_key_counts_and_tells_what_came() {
    let site = Site::new(&[Line("alpha", &["a1", "a2"], "m", "default", 1, rpm(2))]).await;
    let id = CandidateId::new("alpha", "m", "alpha-a2");
    site.pool.enable_key(&actor(), "alpha-a2", false).await.unwrap();
    site.script("sk-a2", status(401, None));
    let tested = site.pool.test_key(&actor(), &id).await.unwrap();
    assert_eq!((tested.ok, tested.outcome.as_str()), (false, "rejected the key (401)"));
    site.script("sk-a2", Script::Answer(9, 3));
    let tested = site.pool.test_key(&actor(), &id).await.unwrap();
    assert!(tested.ok && tested.outcome.contains("12 tokens"), "{tested:?}");
    assert_eq!(site.keys(), ["sk-a2", "sk-a2"], "disabled, and on a cooldown");
    let page = site.pool.page().await.unwrap();
    let state = page.candidates.iter().find(|state| state.key == "alpha-a2").unwrap();
    assert_eq!((state.rpm.used, state.tpm.used, &state.cooldown), (2, 12, &None));
    assert_eq!(state.tested.as_ref(), Some(&tested));
    assert_eq!(state.stated.requests, Some(99), "what the answer said of the provider's limits");
    assert_eq!(site.rows.0.lock().len(), 3, "a request that failed, and one with its tokens");
    let full = site.pool.test_key(&actor(), &id).await.unwrap_err();
    assert_eq!(full.status(), 503);
    let trail = site.trail().await;
    assert_eq!(trail.last().unwrap().action, "platform-key.test");
    assert!(!format!("{trail:?}").contains("sk-a"));
    let gone = CandidateId::new("alpha", "gone", "alpha-a1");
    assert!(matches!(site.pool.test_key(&actor(), &gone).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_test_bounds_its_answer_by_the_name_that_the_model_takes() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    site.script("sk-a1", Script::Reasons);
    let id = CandidateId::new("alpha", "m", "alpha-a1");
    assert!(site.pool.test_key(&actor(), &id).await.unwrap().ok);
    assert_eq!(site.row("m").rpm.used, 2, "the provider answered twice");
    let unlike = Failure::Status {
        status: 400,
        retry_after_ms: None,
        reset_ms: None,
        message: Some("no.".into()),
        code: None,
        param: None,
    };
    site.script("sk-a1", Script::Fail(unlike));
    let tested = site.pool.test_key(&actor(), &id).await.unwrap();
    assert_eq!((tested.ok, tested.outcome.as_str()), (false, "refused the test's request (400): no"));
}

#[tokio::test]
async fn a_key_that_is_rotated_while_disabled_does_not_come_back_benched() {
    let site = Site::new(&[Line("alpha", &["a1"], "m", "default", 1, NONE)]).await;
    site.script("sk-a1", status(401, None));
    site.ask("default").await.err().unwrap();
    site.pool.enable_key(&actor(), "alpha-a1", false).await.unwrap();
    site.pool.rotate_key(&actor(), "alpha-a1", "sk-new").await.unwrap();
    site.pool.enable_key(&actor(), "alpha-a1", true).await.unwrap();
    assert_eq!(site.pool.page().await.unwrap().candidates[0].cooldown, None);
}
