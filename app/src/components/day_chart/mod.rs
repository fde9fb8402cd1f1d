//! Tokens a day as bars, against the budget. Drawn by the server; a table says the same in words.
//!
//! Bars are in an SVG that stretches, texts in one that doesn't: so they are as large on a phone.

mod plan;

use leptos::prelude::*;
use tollkeeper::model::fmt::{counted, thousands};
use tollkeeper::model::reports::DayTokens;

use plan::{Bar, Budget, Date, HEIGHT, Plan, Tick, plan, short};

/// Pixels: of the plot, and above it, where the highest tick's line needs room.
const PLOT: u64 = 168;
const ABOVE: u64 = 8;

/// `budget` 0 is none.
#[component]
pub(crate) fn DayChart(
    #[prop(into)] days: Signal<Vec<DayTokens>>,
    #[prop(into)] budget: Signal<u64>,
) -> impl IntoView {
    view! {
        <figure class="day-chart">
            {move || {
                let (days, budget) = (days.get(), budget.get());
                view! { <Drawing plan=plan(&days, budget) days budget /> }
            }}
            <details>
                <summary>"The same as a table"</summary>
                    <table class="figures">
                        <thead>
                            <tr>
                                <th scope="col">"Day (UTC)"</th>
                                <th scope="col" class="number">
                                    "Input tokens"
                                </th>
                                <th scope="col" class="number">
                                    "Output tokens"
                                </th>
                                <th scope="col" class="number">
                                    "Requests"
                                </th>
                            </tr>
                        </thead>
                        <tbody>{move || days.get().into_iter().rev().map(row).collect_view()}</tbody>
                    </table>
            </details>
        </figure>
    }
    .into_any()
}

#[component]
fn Drawing(plan: Plan, days: Vec<DayTokens>, budget: u64) -> impl IntoView {
    let in_words = in_words(&days);
    let titles = days.iter().map(title);
    let bars = plan.bars.iter().zip(titles).map(|(bar, title)| marks(*bar, title)).collect_view();
    let lines = plan.ticks.iter().map(|tick| line("grid", tick.y)).collect_view();
    let budget_line = match plan.budget {
        Budget::At(y) => Some(line("budget", y)),
        Budget::Above | Budget::Disabled => None,
    };
    let budget_in_words = match plan.budget {
        Budget::Disabled => "no budget".to_owned(),
        Budget::At(_) => format!("budget {}", thousands(budget)),
        Budget::Above => format!("budget {}, above this chart", thousands(budget)),
    };
    let view_box = format!("0 0 {} {HEIGHT}", plan.width);
    view! {
        <figcaption class="legend">
            <span class="key input">"input"</span>
            <span class="key output">"output"</span>
            <span class="key budget">{budget_in_words}</span>
        </figcaption>
        <div class="drawing" role="img" aria-label=in_words>
            <svg class="axis" aria-hidden="true">
                {plan.ticks.iter().map(tick_label).collect_view()}
            </svg>
            <svg class="plot" aria-hidden="true">
                {lines}
                <svg
                    x="0"
                    y=ABOVE.to_string()
                    width="100%"
                    height=PLOT.to_string()
                    viewBox=view_box
                    preserveAspectRatio="none"
                >
                    {bars}
                </svg>
                {budget_line}
                {plan.dates.iter().map(|date| date_label(*date, &days)).collect_view()}
            </svg>
        </div>
    }
    .into_any()
}

fn marks(bar: Bar, title: String) -> impl IntoView {
    let rect = |class: &'static str, y: u64, height: u64| {
        view! { <rect class=class x=bar.x.to_string() y=y.to_string() width=bar.width.to_string() height=height.to_string() /> }
    };
    view! {
        <g class="day" class:today=bar.today>
            // Where the pointer finds the day, however low its bar is.
            <rect class="target" x=bar.x.to_string() y="0" width=bar.width.to_string() height=HEIGHT.to_string() />
            {rect("input", bar.input.y, bar.input.height)}
            {rect("output", bar.output.y, bar.output.height)}
            <title>{title}</title>
        </g>
    }
    .into_any()
}

fn line(class: &'static str, y: u64) -> impl IntoView {
    let y = pixels(y).to_string();
    view! { <line class=class x1="0" x2="100%" y1=y.clone() y2=y /> }
}

fn tick_label(tick: &Tick) -> impl IntoView + use<> {
    view! {
        <text x="100%" y=(pixels(tick.y) + 4).to_string() text-anchor="end">
            {short(tick.tokens)}
        </text>
    }
}

fn date_label(date: Date, days: &[DayTokens]) -> impl IntoView + use<> {
    let last = date.day + 1 == days.len();
    let text = if last { "today".to_owned() } else { days[date.day].day.month_day() };
    let x = if last { "100%".to_owned() } else { format!("{}.{}%", date.x / 10, date.x % 10) };
    view! {
        <text class="date" class:minor=date.minor x=x y=(ABOVE + PLOT + 18).to_string() text-anchor=if last { "end" } else { "middle" }>
            {text}
        </text>
    }
}

/// From the plot's units to those of the drawing around it.
fn pixels(y: u64) -> u64 {
    ABOVE + y * PLOT / HEIGHT
}

fn title(day: &DayTokens) -> String {
    format!(
        "{}: {} input, {} output, {}",
        day.day,
        thousands(day.input_tokens),
        thousands(day.output_tokens),
        counted(day.requests, "request", "requests")
    )
}

fn in_words(days: &[DayTokens]) -> String {
    let total = |day: &DayTokens| day.input_tokens.saturating_add(day.output_tokens);
    let highest = days.iter().max_by_key(|day| total(day)).filter(|day| total(day) > 0);
    let today = thousands(days.last().map_or(0, total));
    match highest {
        None => "Tokens a day: none".to_owned(),
        Some(day) => format!("Tokens a day: most on {}, {}; today {today}", day.day, thousands(total(day))),
    }
}

fn row(day: DayTokens) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">{day.day.ymd()}</th>
            <td class="number">
                {thousands(day.input_tokens)}
            </td>
            <td class="number">
                {thousands(day.output_tokens)}
            </td>
            <td class="number">
                {thousands(day.requests)}
            </td>
        </tr>
    }
    .into_any()
}
