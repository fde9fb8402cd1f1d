//! Sources with rows that look real, and dashboards over them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::model::Timestamp;
use crate::store::Tx;

struct Source {
    id: &'static str,
    workspace: &'static str,
    name: &'static str,
    kind: &'static str,
    columns: Value,
    rows: Option<Vec<Value>>,
}

struct Dashboard {
    id: &'static str,
    workspace: &'static str,
    source: &'static str,
    name: &'static str,
    spec: Value,
}

/// Answers how many sources and dashboards there are.
pub(super) async fn add(tx: &mut Tx, now: Timestamp) -> Result<(usize, usize), sqlx::Error> {
    let (sources, dashboards) = (sources(now), dashboards());
    for source in &sources {
        sqlx::query(
            "INSERT INTO sources (id, workspace_id, name, kind, columns, inline_rows, created_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(source.id)
        .bind(source.workspace)
        .bind(source.name)
        .bind(source.kind)
        .bind(source.columns.to_string())
        .bind(source.rows.as_ref().map(|rows| json!(rows).to_string()))
        .bind(now.ms())
        .execute(&mut **tx)
        .await?;
    }
    for dashboard in &dashboards {
        sqlx::query(
            "INSERT INTO dashboards (id, workspace_id, source_id, name, spec, created_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(dashboard.id)
        .bind(dashboard.workspace)
        .bind(dashboard.source)
        .bind(dashboard.name)
        .bind(dashboard.spec.to_string())
        .bind(now.ms())
        .execute(&mut **tx)
        .await?;
    }
    Ok((sources.len(), dashboards.len()))
}

fn sources(now: Timestamp) -> Vec<Source> {
    let mut random = StdRng::seed_from_u64(0x50_0B1E);
    vec![
        Source {
            id: "meadow-sales",
            workspace: "meadow",
            name: "Shop sales",
            kind: "csv",
            columns: columns(&[
                ("day", "date"),
                ("region", "text"),
                ("product", "text"),
                ("orders", "integer"),
                ("revenue", "number"),
            ]),
            rows: Some(sales(now, &mut random)),
        },
        Source {
            id: "meadow-customers",
            workspace: "meadow",
            name: "Customers",
            kind: "postgres",
            columns: columns(&[
                ("customer", "text"),
                ("since", "date"),
                ("city", "text"),
                ("orders", "integer"),
            ]),
            rows: None,
        },
        Source {
            id: "harbour-shipments",
            workspace: "harbour",
            name: "Shipments",
            kind: "json",
            columns: columns(&[
                ("shipment", "text"),
                ("day", "date"),
                ("port", "text"),
                ("weight_kg", "integer"),
                ("delay_hours", "integer"),
            ]),
            rows: Some(shipments(now, &mut random)),
        },
        Source {
            id: "lantern-hours",
            workspace: "lantern",
            name: "Project hours",
            kind: "csv",
            columns: columns(&[
                ("week", "date"),
                ("project", "text"),
                ("person", "text"),
                ("hours", "number"),
            ]),
            rows: Some(hours(now, &mut random)),
        },
    ]
}

fn columns(named: &[(&str, &str)]) -> Value {
    named.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect()
}

/// Four weeks of days, three regions, two products.
fn sales(now: Timestamp, random: &mut StdRng) -> Vec<Value> {
    let mut rows = Vec::new();
    for back in (1..=28).rev() {
        let day = now.day().plus(-back).ymd();
        for (region, size) in [("North", 34), ("South", 52), ("West", 23)] {
            for (product, cents) in [("Oat flakes", 349), ("Muesli", 529)] {
                let orders: u64 = size * random.random_range(60..=135) / 100;
                // A hundredth is exact enough in a float of this size.
                let revenue = json!(
                    format!("{}.{:02}", orders * cents / 100, orders * cents % 100).parse::<f64>().ok()
                );
                rows.push(json!([day, region, product, orders, revenue]));
            }
        }
    }
    rows
}

fn shipments(now: Timestamp, random: &mut StdRng) -> Vec<Value> {
    let ports = ["Rotterdam", "Gdańsk", "Valencia", "Piraeus"];
    (0..80)
        .map(|n: i64| {
            let day = now.day().plus(-20 + n / 4).ymd();
            let late = random.random_range(0..100) < 18;
            let delay: u64 = if late { random.random_range(2..=56) } else { 0 };
            let port = ports[random.random_range(0..ports.len())];
            let weight: u64 = random.random_range(12..=260) * 100;
            json!([format!("HL-{:05}", 48_210 + n), day, port, weight, delay])
        })
        .collect()
}

fn hours(now: Timestamp, random: &mut StdRng) -> Vec<Value> {
    let monday = now.day().plus(-((now.day().0 + 3).rem_euclid(7)));
    let mut rows = Vec::new();
    for back in (1..=6).rev() {
        for (project, usual) in [("Museum guide", 22), ("City festival", 34), ("Annual report", 11)] {
            for person in ["Lou", "Mika", "Noor"] {
                // Quarters of an hour.
                let quarters: u32 = usual * 4 / 3 * random.random_range(50..=150) / 100;
                rows.push(json!([monday.plus(-7 * back).ymd(), project, person, f64::from(quarters) / 4.0]));
            }
        }
    }
    rows
}

fn dashboards() -> Vec<Dashboard> {
    let widget = |id: &str, kind: &str, title: &str, query: Value| json!({ "id": id, "kind": kind, "title": title, "query": query });
    vec![
        Dashboard {
            id: "meadow-revenue",
            workspace: "meadow",
            source: "meadow-sales",
            name: "Revenue",
            spec: json!({ "title": "Revenue of the last four weeks", "widgets": [
                widget("total", "metric", "Revenue", json!({ "column": "revenue", "aggregate": "sum" })),
                widget("orders", "metric", "Orders", json!({ "column": "orders", "aggregate": "sum" })),
                widget("by-day", "line", "Revenue by day",
                    json!({ "column": "revenue", "aggregate": "sum", "group_by": "day" })),
                widget("by-region", "bar", "Revenue by region",
                    json!({ "column": "revenue", "aggregate": "sum", "group_by": "region" })),
            ] }),
        },
        Dashboard {
            id: "harbour-delays",
            workspace: "harbour",
            source: "harbour-shipments",
            name: "Delays",
            spec: json!({ "title": "Shipments and delays", "widgets": [
                widget("count", "metric", "Shipments", json!({ "column": "shipment", "aggregate": "count" })),
                widget("worst", "metric", "Longest delay, hours",
                    json!({ "column": "delay_hours", "aggregate": "max" })),
                widget("by-port", "bar", "Average delay by port, hours",
                    json!({ "column": "delay_hours", "aggregate": "avg", "group_by": "port" })),
                widget("list", "table", "Weight by shipment", json!({ "column": "weight_kg", "group_by": "shipment" })),
            ] }),
        },
        Dashboard {
            id: "lantern-projects",
            workspace: "lantern",
            source: "lantern-hours",
            name: "Projects",
            spec: json!({ "title": "Hours by project", "widgets": [
                widget("total", "metric", "Hours", json!({ "column": "hours", "aggregate": "sum" })),
                widget("by-project", "bar", "Hours by project",
                    json!({ "column": "hours", "aggregate": "sum", "group_by": "project" })),
                widget("by-week", "line", "Hours by week",
                    json!({ "column": "hours", "aggregate": "sum", "group_by": "week" })),
            ] }),
        },
    ]
}
