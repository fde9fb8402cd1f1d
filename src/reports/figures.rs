//! What a dashboard's widgets show of a source whose rows are inline.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::dashboard::{Aggregate, Column, Query, Spec, WidgetKind};
use crate::model::figures::{Figure, Point};
use crate::model::fmt::thousands;

/// A bar chart with more bars, or a table with more rows, says nothing at a glance.
const GROUPS_MAX: usize = 8;
const LINE_POINTS_MAX: usize = 120;

/// One figure a widget, in the spec's order; none where there are no rows, or none of the widget's columns.
pub fn figures(spec: &Spec, columns: &[Column], rows: &[Vec<Value>]) -> Vec<Option<Figure>> {
    spec.widgets.iter().map(|widget| figure(widget.kind, &widget.query, columns, rows)).collect()
}

fn figure(kind: WidgetKind, query: &Query, columns: &[Column], rows: &[Vec<Value>]) -> Option<Figure> {
    let position = |name: &str| columns.iter().position(|column| column.name == name);
    let column = position(&query.column)?;
    // A group that isn't asked for is one group of everything.
    let by = match &query.group_by {
        Some(name) => Some(position(name)?),
        None => match kind {
            WidgetKind::Metric => None,
            _ => Some(column),
        },
    };
    let mut groups: Vec<(String, Tally)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let label = by.map(|by| label(row.get(by))).unwrap_or_default();
        let at = *index.entry(label.clone()).or_insert_with(|| {
            groups.push((label, Tally::default()));
            groups.len() - 1
        });
        groups[at].1.add(row.get(column));
    }
    if groups.is_empty() {
        return None;
    }
    let aggregate = query.aggregate.unwrap_or_else(|| usual(query, kind, &groups));
    let mut points: Vec<Point> =
        groups.into_iter().filter_map(|(label, tally)| Some(point(label, tally.value(aggregate)?))).collect();
    let most = if kind == WidgetKind::Line { LINE_POINTS_MAX } else { GROUPS_MAX };
    match kind {
        WidgetKind::Bar => points.sort_by(|a, b| b.value.total_cmp(&a.value)),
        WidgetKind::Line => points.sort_by(|a, b| natural(&a.label, &b.label)),
        WidgetKind::Metric | WidgetKind::Table => {}
    }
    let more = points.len().saturating_sub(most);
    points.truncate(most);
    (!points.is_empty()).then(|| Figure { points, more: u64::try_from(more).unwrap_or(u64::MAX) })
}

/// What is meant where no aggregate is named: the sum of numbers, otherwise how many there are. Numbers
/// that group by themselves are counted too.
fn usual(query: &Query, kind: WidgetKind, groups: &[(String, Tally)]) -> Aggregate {
    let numbers = groups.iter().any(|(_, tally)| tally.numbers > 0);
    if numbers && (query.group_by.is_some() || kind == WidgetKind::Metric) {
        Aggregate::Sum
    } else {
        Aggregate::Count
    }
}

#[derive(Default)]
struct Tally {
    present: u32,
    numbers: u32,
    sum: f64,
    least: Option<f64>,
    greatest: Option<f64>,
}

impl Tally {
    fn add(&mut self, value: Option<&Value>) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return;
        };
        self.present += 1;
        if let Some(number) = number(value) {
            self.numbers += 1;
            self.sum += number;
            self.least = Some(self.least.map_or(number, |least| least.min(number)));
            self.greatest = Some(self.greatest.map_or(number, |greatest| greatest.max(number)));
        }
    }

    fn value(&self, aggregate: Aggregate) -> Option<f64> {
        match aggregate {
            Aggregate::Count => Some(f64::from(self.present)),
            Aggregate::Sum => (self.numbers > 0).then_some(self.sum),
            Aggregate::Avg => (self.numbers > 0).then(|| self.sum / f64::from(self.numbers)),
            Aggregate::Min => self.least,
            Aggregate::Max => self.greatest,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

fn label(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Numbers by size, everything else (days too) as text.
fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

fn point(label: String, value: f64) -> Point {
    Point { label, value, text: text(value) }
}

/// Two decimals at most, and none where there is nothing to say.
fn text(value: f64) -> String {
    let plain = format!("{:.2}", value.abs());
    let (whole, cents) = plain.split_once('.').unwrap_or((&plain, "00"));
    // Beyond what a u64 holds separators would be a lie of precision.
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    let sign = if value < 0.0 && plain != "0.00" { "-" } else { "" };
    match cents {
        "00" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{cents}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn columns() -> Vec<Column> {
        ["day", "region", "amount"].map(|name| Column { name: name.into(), kind: "text".into() }).into()
    }

    fn rows() -> Vec<Vec<Value>> {
        let rows = json!([
            ["2026-01-02", "north", 10],
            ["2026-01-01", "south", "1200.5"],
            ["2026-01-01", "north", 5],
            ["2026-01-03", null, null],
        ]);
        serde_json::from_value(rows).unwrap()
    }

    fn drawn(
        kind: WidgetKind,
        column: &str,
        aggregate: Option<Aggregate>,
        by: Option<&str>,
    ) -> Vec<(String, String)> {
        let query = Query { column: column.into(), aggregate, group_by: by.map(Into::into) };
        let figure = figure(kind, &query, &columns(), &rows());
        figure.into_iter().flat_map(|figure| figure.points).map(|point| (point.label, point.text)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(label, text)| ((*label).into(), (*text).into())).collect()
    }

    #[test]
    fn a_metric_is_one_number_and_numbers_in_text_count() {
        let sum = drawn(WidgetKind::Metric, "amount", Some(Aggregate::Sum), None);
        assert_eq!(sum, pairs(&[("", "1,215.50")]));
        let count = drawn(WidgetKind::Metric, "amount", Some(Aggregate::Count), None);
        assert_eq!(count, pairs(&[("", "3")]));
        assert_eq!(drawn(WidgetKind::Metric, "amount", None, None), sum);
    }

    #[test]
    fn bars_are_by_size_and_lines_by_label() {
        let bars = drawn(WidgetKind::Bar, "amount", Some(Aggregate::Sum), Some("region"));
        assert_eq!(bars, pairs(&[("south", "1,200.50"), ("north", "15")]));
        let line = drawn(WidgetKind::Line, "amount", Some(Aggregate::Max), Some("day"));
        assert_eq!(line, pairs(&[("2026-01-01", "1,200.50"), ("2026-01-02", "10")]));
    }

    #[test]
    fn what_is_not_a_number_is_counted() {
        let table = drawn(WidgetKind::Table, "region", None, None);
        assert_eq!(table, pairs(&[("north", "2"), ("south", "1"), ("none", "0")]));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(drawn(WidgetKind::Bar, "gone", None, None).is_empty());
        assert!(drawn(WidgetKind::Metric, "region", Some(Aggregate::Avg), None).is_empty());
    }

    #[test]
    fn numbers_read_well() {
        for (value, shown) in [(0.0, "0"), (-0.001, "0"), (-1234.5, "-1,234.50"), (1e6, "1,000,000")] {
            assert_eq!(text(value), shown);
        }
    }
}
