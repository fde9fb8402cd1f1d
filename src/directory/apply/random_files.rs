//! Files drawn at random, applied one after the other: each leaves what it alone would make.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::tests::Site;
use crate::audit::{self, Verdict};

const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzYWx0$X2Jv8d8b3jUDgKUKWdQzZqmuP9s6PYUmbTd4Ov3lZg8";

/// Some of `all`, in any order.
fn some<'a>(all: &[&'a str], random: &mut StdRng) -> Vec<&'a str> {
    let mut some: Vec<&str> = all.iter().copied().filter(|_| random.random_bool(0.6)).collect();
    some.shuffle(random);
    some
}

fn one<'a>(all: &[&'a str], random: &mut StdRng) -> &'a str {
    all[random.random_range(0..all.len())]
}

fn file(random: &mut StdRng) -> String {
    let mut text = String::new();
    let mut workspaces = some(&["w1", "w2", "w3"], random);
    if workspaces.is_empty() {
        workspaces.push("w1");
    }
    for id in &workspaces {
        let name = one(&["One", "Other"], random);
        writeln!(text, "[[workspace]]\nid = \"{id}\"\nname = \"{name}\"").unwrap();
        if random.random_bool(0.5) {
            writeln!(text, "rate_per_minute = {}", random.random_range(0..3)).unwrap();
        }
        if random.random_bool(0.5) {
            writeln!(text, "daily_token_budget = {}", random.random_range(0..3)).unwrap();
        }
    }
    for email in some(&["a@x", "b@x", "c@x"], random) {
        let roles: Vec<String> = some(&workspaces, random)
            .into_iter()
            .map(|id| {
                let role = one(&["viewer", "editor", "source-admin"], random);
                format!("{{ workspace = \"{id}\", role = \"{role}\" }}")
            })
            .collect();
        let (admin, roles) = (random.random_bool(0.3), roles.join(", "));
        writeln!(
            text,
            "[[user]]\nemail = \"{email}\"\npassword_hash = \"{HASH}\"\nadmin = {admin}\nmemberships = [{roles}]"
        )
        .unwrap();
    }
    let mut sources = Vec::new();
    for id in some(&["s1", "s2", "s3"], random) {
        let (workspace, kind) = (one(&workspaces, random), one(&["csv", "json"], random));
        let definition = one(
            &["{ columns = [\"a\"] }", "{ columns = [\"b\"] }", "{ columns = [\"a\"], rows = [[1]] }"],
            random,
        );
        writeln!(
            text,
            "[[source]]\nid = \"{id}\"\nworkspace = \"{workspace}\"\nname = \"S\"\nkind = \"{kind}\"\n\
             definition = {definition}"
        )
        .unwrap();
        sources.push((id, workspace));
    }
    for id in some(&["d1", "d2", "d3"], random) {
        if sources.is_empty() {
            break;
        }
        let (source, workspace) = sources[random.random_range(0..sources.len())];
        writeln!(
            text,
            "[[dashboard]]\nid = \"{id}\"\nworkspace = \"{workspace}\"\nsource = \"{source}\"\nname = \"D\""
        )
        .unwrap();
    }
    for id in some(&["p1", "p2"], random) {
        writeln!(
            text,
            "[[platform]]\nid = \"{id}\"\nbase_url = \"http://{}/v1\"",
            one(&["h1", "h2"], random)
        )
        .unwrap();
        for label in some(&["k1", "k2", "k3"], random) {
            let secret = one(&["sk-1", "sk-2"], random);
            writeln!(text, "[[platform.key]]\nlabel = \"{label}\"\nsecret = \"{secret}\"").unwrap();
        }
        for model in some(&["m1", "m2", "m3"], random) {
            let (alias, rpm) = (one(&["x", "y"], random), random.random_range(1..3));
            writeln!(text, "[[platform.model]]\nid = \"{model}\"\nalias = \"{alias}\"\nrpm = {rpm}").unwrap();
        }
    }
    text
}

#[tokio::test]
async fn each_leaves_what_it_alone_would_make() {
    let site = Site::new().await;
    let mut random = StdRng::seed_from_u64(7);
    let mut changes = 0;
    for _ in 0..40 {
        let text = file(&mut random);
        let rehearsal = site.run(&text, true).await.unwrap();
        let report = site.apply(&text).await.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(report, rehearsal, "{text}");
        changes += report.changes.len();

        let alone = Site::new().await;
        alone.apply(&text).await.unwrap();
        assert_eq!(site.state().await, alone.state().await, "{text}");

        let before = site.dump().await;
        let again = site.apply(&text).await.unwrap();
        assert_eq!(again.to_string(), "nothing to change\n", "{text}");
        assert_eq!(site.dump().await, before, "{text}");
    }
    assert!(changes > 200, "the files differ: {changes}");
    assert!(matches!(audit::verify(site.store()).await.unwrap(), Verdict::Whole { .. }));
}
