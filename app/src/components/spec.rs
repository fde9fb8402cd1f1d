//! A dashboard's spec as cards, one a widget, with a small chart where its figures are known.

use leptos::prelude::*;
use tollkeeper::model::dashboard::{Aggregate, Query, Spec, Widget, WidgetKind};
use tollkeeper::model::figures::Figure;

use super::figure::FigureView;

/// `figures` are in the order of the widgets, and may be missing.
#[component]
pub(crate) fn SpecCards(spec: Spec, #[prop(optional)] figures: Vec<Option<Figure>>) -> impl IntoView {
    let mut figures = figures.into_iter();
    let empty = spec.widgets.is_empty();
    let cards = spec
        .widgets
        .into_iter()
        .map(|widget| {
            let figure = figures.next().flatten();
            view! { <WidgetCard widget figure /> }
        })
        .collect_view();
    view! {
        <section class="spec" aria-label=format!("Dashboard: {}", spec.title)>
            <h3 class="spec-title">{spec.title.clone()}</h3>
            {empty.then(|| view! { <p class="dim">"It has no widgets yet."</p> })}
            <ul class="widgets">{cards}</ul>
        </section>
    }
    .into_any()
}

#[component]
fn WidgetCard(widget: Widget, figure: Option<Figure>) -> impl IntoView {
    let kind = widget.kind;
    let wide = kind == WidgetKind::Line || kind == WidgetKind::Table;
    view! {
        <li class="widget" class:wide=wide>
            <header>
                <h4>{widget.title}</h4>
                <span class="chip">
                    <KindMark kind />
                    {kind_word(kind)}
                </span>
            </header>
            {figure.map(|figure| view! { <FigureView kind figure /> })}
            <p class="query">{query_view(widget.query)}</p>
        </li>
    }
    .into_any()
}

/// `sum of amount by region`, the columns set apart.
fn query_view(query: Query) -> impl IntoView {
    let aggregate = query.aggregate.map(|aggregate| format!("{} of ", aggregate_word(aggregate)));
    let by = query.group_by.map(|column| view! { <span>" by "<code>{column}</code></span> });
    view! {
        <span>{aggregate}</span>
        <code>{query.column}</code>
        {by}
    }
}

fn kind_word(kind: WidgetKind) -> &'static str {
    match kind {
        WidgetKind::Metric => "metric",
        WidgetKind::Bar => "bar",
        WidgetKind::Line => "line",
        WidgetKind::Table => "table",
    }
}

fn aggregate_word(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Sum => "sum",
        Aggregate::Count => "count",
        Aggregate::Avg => "average",
        Aggregate::Min => "minimum",
        Aggregate::Max => "maximum",
    }
}

#[component]
fn KindMark(kind: WidgetKind) -> impl IntoView {
    let path = match kind {
        WidgetKind::Metric => "M3 12V4h2.5M8 12V7M11 12V4",
        WidgetKind::Bar => "M2 4h10M2 8h6M2 12h8",
        WidgetKind::Line => "M2 11l3.5-4 3 2L13 3",
        WidgetKind::Table => "M2 3h11v9H2zM2 6.5h11M6 6.5V12",
    };
    view! {
        <svg width="12" height="12" viewBox="0 0 15 15" fill="none" stroke="currentColor" aria-hidden="true">
            <path d=path stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" />
        </svg>
    }
}
