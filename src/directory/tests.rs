use super::*;
use crate::clock::ManualClock;
use crate::model::Timestamp;
use crate::store::testing::{Fresh, fresh};

async fn directory() -> (Directory, tempfile::TempDir) {
    let Fresh { store, folder } = fresh().await;
    let mut tx = store.begin().await.unwrap();
    for statement in [
        "INSERT INTO workspaces VALUES ('acme', 'Acme', 0, 0), ('globex', 'Globex', 0, 0)",
        r#"INSERT INTO sources VALUES
           ('parts', 'globex', 'Parts', 'json', '[{"name":"part","type":"text"}]', NULL, 0, 0),
           ('sales', 'acme', 'Sales', 'csv', '[{"name":"day","type":"text"},{"name":"amount","type":"number"}]',
            '[["2026-01-01",5]]', 0, 0)"#,
        "INSERT INTO dashboards VALUES ('revenue', 'acme', 'sales', 'Revenue', NULL, 0, 0),
           ('stock', 'globex', 'parts', 'Stock', NULL, 0, 0)",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }
    tx.commit().await.unwrap();
    (Directory::new(store, ManualClock::new(Timestamp(1_790_000_000_000))), folder)
}

#[tokio::test]
async fn ids_from_anywhere_are_not_found() {
    let (directory, _folder) = directory().await;
    let long = "x".repeat(500);
    for id in ["", "nope", "sales\0", "' OR 1=1 --", "\"", "ü", "%", long.as_str()] {
        assert_eq!(directory.source(id).await.unwrap(), None);
        assert_eq!(directory.dashboard(id).await.unwrap(), None);
        assert_eq!(directory.workspace(id).await.unwrap(), None);
        assert!(!directory.workspace_exists(id).await.unwrap());
    }
    let source = directory.source("sales").await.unwrap().unwrap();
    assert_eq!((source.workspace.as_str(), source.columns.len()), ("acme", 2));
    assert_eq!(source.rows, [[serde_json::json!("2026-01-01"), serde_json::json!(5)]]);
    assert!(directory.source("parts").await.unwrap().unwrap().rows.is_empty());
    assert!(directory.workspace_exists("acme").await.unwrap());
}

#[tokio::test]
async fn lists_hold_what_is_seen_in_pages() {
    let (directory, _folder) = directory().await;
    let ids = async |of: Option<&[WorkspaceId]>, page: &Page| {
        let sources = directory.sources_of(of, page).await.unwrap();
        sources.into_iter().map(|source| source.id).collect::<Vec<_>>()
    };
    let acme = ["acme".into()];
    assert_eq!(ids(None, &Page::default()).await, ["parts", "sales"]);
    assert_eq!(ids(Some(&acme), &Page::default()).await, ["sales"]);
    assert_eq!(ids(Some(&[]), &Page::default()).await, [""; 0]);
    assert_eq!(ids(None, &Page { after: None, limit: Some(1) }).await, ["parts"]);
    assert_eq!(ids(None, &Page { after: Some("parts".into()), limit: Some(1) }).await, ["sales"]);
    for page in [
        Page { after: None, limit: Some(0) },
        Page { after: None, limit: Some(LIST_MAX + 1) },
        Page { after: Some("'".into()), limit: None },
    ] {
        assert_eq!(directory.dashboards_of(None, &page).await.unwrap_err().status(), 422);
    }
    let dashboards = directory.dashboards_of(Some(&acme), &Page::default()).await.unwrap();
    assert_eq!((dashboards.len(), dashboards[0].source.as_str()), (1, "sales"));
    assert_eq!(directory.workspaces(Some(&acme), &Page::default()).await.unwrap()[0].name, "Acme");
}

#[tokio::test]
async fn a_spec_is_saved_when_it_fits_and_the_trail_has_its_size_alone() {
    let (directory, _folder) = directory().await;
    let spec = |column: &str| -> Spec {
        serde_json::from_value(json!({ "title": "Secret plans", "widgets": [
            { "id": "w", "kind": "metric", "title": "W", "query": { "column": column, "aggregate": "sum" } }
        ] }))
        .unwrap()
    };
    let dashboard = directory.dashboard("revenue").await.unwrap().unwrap();
    let actor = Actor::User("eve@example.com".into());
    let unfit = directory.save_spec(&dashboard, &spec("nowhere"), &actor).await.unwrap_err();
    assert_eq!(unfit.status(), 422);
    assert_eq!(directory.dashboard("revenue").await.unwrap().unwrap().spec, None);
    for _ in 0..2 {
        directory.save_spec(&dashboard, &spec("amount"), &actor).await.unwrap();
    }
    assert_eq!(directory.dashboard("revenue").await.unwrap().unwrap().spec, Some(spec("amount")));
    let trail =
        audit::list(&directory.store, &audit::Query { limit: 9, ..Default::default() }).await.unwrap();
    assert_eq!(trail.len(), 1, "the same spec again is no change");
    assert_eq!(trail[0].action, "dashboard.update");
    assert_eq!(trail[0].before, json!({ "dashboard": "revenue", "widgets": null }));
    assert_eq!(trail[0].after, json!({ "dashboard": "revenue", "widgets": 1 }));

    let gone = Dashboard { id: "gone".into(), ..dashboard };
    assert_eq!(directory.save_spec(&gone, &spec("amount"), &actor).await.unwrap_err().status(), 404);
}
