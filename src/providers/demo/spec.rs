//! Dashboards as the demo model designs and changes them: always valid against the columns it was given.

use super::table::{Col, Role, names, pick};
use crate::model::dashboard::{Aggregate, Query, Spec, Widget, WidgetKind};

/// A dashboard of a few widgets, by the columns that the wish names where it names some.
pub(super) fn proposal(columns: &[Col], wish: &str) -> Spec {
    let measure = pick(columns, Role::Measure, wish);
    let (time, category) = (pick(columns, Role::Time, wish), pick(columns, Role::Category, wish));
    let Some(main) = measure.or(category).or(time) else {
        return Spec { title: "Demo dashboard".into(), widgets: Vec::new() };
    };
    let aggregate = if measure.is_some() { Aggregate::Sum } else { Aggregate::Count };
    let column = |at: usize| columns[at].name.as_str();
    let mut spec = Spec { title: String::new(), widgets: Vec::new() };
    let mut add = |kind, at: usize, group: Option<usize>| {
        let aggregate = (kind != WidgetKind::Table).then_some(aggregate);
        let widget = widget(&spec, kind, column(at), aggregate, group.map(column));
        spec.widgets.push(widget);
    };
    add(WidgetKind::Metric, main, None);
    if let Some(time) = time.filter(|time| *time != main) {
        add(WidgetKind::Line, main, Some(time));
    }
    if let Some(category) = category.filter(|category| *category != main) {
        add(WidgetKind::Bar, main, Some(category));
    }
    add(WidgetKind::Table, category.or(time).unwrap_or(main), None);
    let by = category.or(time).filter(|by| *by != main).map(|by| format!(" by {}", short(column(by))));
    spec.title = format!("{}{} (demo)", capital(&short(column(main))), by.unwrap_or_default());
    spec
}

/// Whether a wish asks for a change of the dashboard.
pub(super) fn wants_change(wish: &str) -> bool {
    const VERBS: [&str; 16] = [
        "add", "change", "make", "create", "build", "remove", "delete", "drop", "rename", "replace", "turn",
        "switch", "convert", "put", "update", "set",
    ];
    says(wish, &VERBS)
}

/// The dashboard after the change that a wish asks for, and what was done, in words.
pub(super) fn changed(now: Option<Spec>, columns: &[Col], wish: &str) -> (Spec, String) {
    let Some(mut spec) = now.filter(|spec| !spec.widgets.is_empty()) else {
        let spec = proposal(columns, wish);
        let done = format!("I made the dashboard \"{}\"", spec.title);
        return (spec, done);
    };
    let kind = kind_in(wish);
    let named = |widget: &Widget| names(wish, &widget.query.column) || names(wish, &widget.title);
    if says(wish, &["rename", "title"])
        && let Some(title) = quoted(wish)
    {
        spec.title = title;
        let done = format!("I named the dashboard \"{}\"", spec.title);
        return (spec, done);
    }
    if says(wish, &["remove", "delete", "drop"]) {
        let widgets = &spec.widgets;
        let at =
            widgets.iter().position(|widget| kind.is_none_or(|kind| widget.kind == kind) && named(widget));
        let at = at.or_else(|| widgets.iter().position(|widget| Some(widget.kind) == kind));
        let gone = spec.widgets.remove(at.unwrap_or(spec.widgets.len() - 1));
        return (spec, format!("I removed \"{}\"", gone.title));
    }
    if says(wish, &["change", "turn", "switch", "convert", "replace"])
        && let Some(kind) = kind
    {
        let other = |widget: &Widget| widget.kind != kind;
        let at = spec.widgets.iter().position(|widget| other(widget) && named(widget));
        if let Some(at) = at.or_else(|| spec.widgets.iter().position(other)) {
            let widget = &mut spec.widgets[at];
            widget.kind = kind;
            let done = format!("I turned \"{}\" into a {}", widget.title, called(kind));
            return (spec, done);
        }
    }
    match wished_widget(&spec, columns, wish) {
        Some(widget) => {
            let done = format!("I added \"{}\" as a {}", widget.title, called(widget.kind));
            spec.widgets.push(widget);
            (spec, done)
        }
        None => (spec, "I left the dashboard as it is, for the source has no columns".into()),
    }
}

fn wished_widget(spec: &Spec, columns: &[Col], wish: &str) -> Option<Widget> {
    let measure = pick(columns, Role::Measure, wish);
    let named_time = columns.iter().position(|column| column.role == Role::Time && names(wish, &column.name));
    let group = named_time
        .or_else(|| pick(columns, Role::Category, wish))
        .or_else(|| pick(columns, Role::Time, wish));
    let main = measure.or(group)?;
    let kind = kind_in(wish).unwrap_or(if named_time.is_some() { WidgetKind::Line } else { WidgetKind::Bar });
    let group = match kind {
        WidgetKind::Metric | WidgetKind::Table => None,
        WidgetKind::Line => pick(columns, Role::Time, wish).or(group),
        WidgetKind::Bar => group,
    };
    let aggregate = match kind {
        WidgetKind::Table => None,
        _ if measure.is_none() => Some(Aggregate::Count),
        _ => Some(aggregate_in(wish).unwrap_or(Aggregate::Sum)),
    };
    let group = group.filter(|group| *group != main).map(|group| columns[group].name.as_str());
    Some(widget(spec, kind, &columns[main].name, aggregate, group))
}

fn widget(
    spec: &Spec,
    kind: WidgetKind,
    column: &str,
    aggregate: Option<Aggregate>,
    group: Option<&str>,
) -> Widget {
    let free = |id: &String| spec.widgets.iter().all(|widget| widget.id != *id);
    let most = spec.widgets.len() + 1;
    let id = (most..=2 * most).map(|n| format!("w{n}")).find(free).unwrap_or_default();
    let what = match aggregate {
        None => "Table of",
        Some(Aggregate::Sum) => "Total",
        Some(Aggregate::Count) => "Number of",
        Some(Aggregate::Avg) => "Average",
        Some(Aggregate::Min) => "Lowest",
        Some(Aggregate::Max) => "Highest",
    };
    let by = group.map(|group| format!(" by {}", short(group))).unwrap_or_default();
    let query = Query { column: column.to_owned(), aggregate, group_by: group.map(str::to_owned) };
    Widget { id, kind, title: format!("{what} {}{by}", short(column)), query }
}

fn kind_in(wish: &str) -> Option<WidgetKind> {
    [
        (WidgetKind::Line, &["line", "lines", "trend", "over"][..]),
        (WidgetKind::Table, &["table", "list"]),
        (WidgetKind::Metric, &["metric", "number", "figure", "kpi", "total"]),
        (WidgetKind::Bar, &["bar", "bars", "column", "columns"]),
    ]
    .into_iter()
    .find(|(_, words)| says(wish, words))
    .map(|(kind, _)| kind)
}

fn aggregate_in(wish: &str) -> Option<Aggregate> {
    [
        (Aggregate::Avg, &["average", "avg", "mean"][..]),
        (Aggregate::Max, &["max", "maximum", "highest", "largest", "top"]),
        (Aggregate::Min, &["min", "minimum", "lowest", "smallest"]),
        (Aggregate::Count, &["count", "many"]),
        (Aggregate::Sum, &["sum", "total"]),
    ]
    .into_iter()
    .find(|(_, words)| says(wish, words))
    .map(|(aggregate, _)| aggregate)
}

fn called(kind: WidgetKind) -> &'static str {
    match kind {
        WidgetKind::Metric => "metric",
        WidgetKind::Bar => "bar chart",
        WidgetKind::Line => "line chart",
        WidgetKind::Table => "table",
    }
}

fn says(wish: &str, words: &[&str]) -> bool {
    let wish = wish.to_lowercase();
    wish.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

/// What stands in quotation marks.
fn quoted(wish: &str) -> Option<String> {
    let (_, after) = wish.split_once(['"', '“', '„', '«'])?;
    let (inside, _) = after.split_once(['"', '”', '“', '»'])?;
    let title: String = inside.trim().chars().filter(|c| !c.is_control()).take(200).collect();
    (!title.is_empty()).then_some(title)
}

/// Column names may be long, titles not.
fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
