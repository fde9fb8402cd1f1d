//! The charts of a dashboard's widgets: SVG of attributes alone, their figures always there as text.

use std::fmt::Write as _;

use leptos::prelude::*;
use tollkeeper::model::dashboard::WidgetKind;
use tollkeeper::model::figures::{Figure, Point};
use tollkeeper::model::fmt::counted;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 120.0;
/// Keeps the line's ends within the picture.
const EDGE: f64 = 4.0;

#[component]
pub(crate) fn FigureView(kind: WidgetKind, figure: Figure) -> impl IntoView {
    match kind {
        WidgetKind::Metric => view! { <Metric figure /> }.into_any(),
        WidgetKind::Bar => view! { <Bars figure /> }.into_any(),
        WidgetKind::Line => view! { <Line figure /> }.into_any(),
        WidgetKind::Table => view! { <Rows figure /> }.into_any(),
    }
}

#[component]
fn Metric(figure: Figure) -> impl IntoView {
    let text = figure.points.into_iter().next().map(|point| point.text);
    view! { <p class="figure">{text}</p> }
}

#[component]
fn Bars(figure: Figure) -> impl IntoView {
    let greatest = figure.points.iter().map(|point| point.value).fold(0.0, f64::max);
    let bars = figure
        .points
        .into_iter()
        .map(|point| {
            let share = if greatest > 0.0 { (point.value / greatest * 100.0).clamp(0.0, 100.0) } else { 0.0 };
            view! {
                <li>
                    <span class="label">{point.label}</span>
                    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                        <rect width=format!("{share:.1}") height="8" />
                    </svg>
                    <span class="number">{point.text}</span>
                </li>
            }
        })
        .collect_view();
    view! {
        <ol class="bars">{bars}</ol>
        <Left more=figure.more what=("bar", "bars") />
    }
}

#[component]
fn Line(figure: Figure) -> impl IntoView {
    let (line, area) = line_path(&figure.points);
    let ends = (figure.points.first().cloned(), figure.points.last().cloned());
    let summary = match &ends {
        (Some(first), Some(last)) => {
            format!("from {} on {} to {} on {}", first.text, first.label, last.text, last.label)
        }
        _ => String::new(),
    };
    let values = figure.points.into_iter().map(|point| view! { <li>{point.label} ": " {point.text}</li> });
    view! {
        <svg class="line" viewBox=format!("0 0 {WIDTH} {HEIGHT}") role="img" aria-label=summary>
            <path class="area" d=area />
            <path class="stroke" d=line />
        </svg>
        <p class="ends" aria-hidden="true">
            <span>{ends.0.map(|point| point.label)}</span>
            <span>{ends.1.map(|point| point.label)}</span>
        </p>
        <ol class="visually-hidden">{values.collect_view()}</ol>
    }
}

/// The line and the area under it. Zero is part of the picture, so that a slope isn't exaggerated.
fn line_path(points: &[Point]) -> (String, String) {
    let least = points.iter().map(|point| point.value).fold(0.0, f64::min);
    let greatest = points.iter().map(|point| point.value).fold(0.0, f64::max);
    let span = if greatest > least { greatest - least } else { 1.0 };
    let steps = points.len().saturating_sub(1).max(1);
    let (mut line, mut x) = (String::new(), EDGE);
    for (at, point) in points.iter().enumerate() {
        x += if at == 0 { 0.0 } else { (WIDTH - 2.0 * EDGE) / f64::from(u32::try_from(steps).unwrap_or(1)) };
        let y = EDGE + (greatest - point.value) / span * (HEIGHT - 2.0 * EDGE);
        let _ = write!(line, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
    }
    let bottom = HEIGHT - EDGE;
    let area = format!("{line}L{x:.1} {bottom:.1}L{EDGE:.1} {bottom:.1}Z");
    (line, area)
}

#[component]
fn Rows(figure: Figure) -> impl IntoView {
    let rows = figure.points.into_iter().map(|point| {
        view! {
            <tr>
                <th scope="row">{point.label}</th>
                <td class="number">{point.text}</td>
            </tr>
        }
    });
    view! {
        <table class="rows">
            <tbody>{rows.collect_view()}</tbody>
        </table>
        <Left more=figure.more what=("row", "rows") />
    }
}

#[component]
fn Left(more: u64, what: (&'static str, &'static str)) -> impl IntoView {
    (more > 0).then(|| view! { <p class="dim small">"and " {counted(more, what.0, what.1)} " more"</p> })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        values
            .iter()
            .map(|value| Point { label: String::new(), value: *value, text: String::new() })
            .collect()
    }

    #[test]
    fn a_line_spans_the_picture_with_zero_at_its_foot() {
        let (line, area) = line_path(&points(&[0.0, 5.0, 10.0]));
        assert_eq!(line, "M4.0 116.0L240.0 60.0L476.0 4.0");
        assert_eq!(area, format!("{line}L476.0 116.0L4.0 116.0Z"));
    }

    #[test]
    fn one_point_and_equal_points_are_drawn_too() {
        assert_eq!(line_path(&points(&[0.0])).0, "M4.0 4.0");
        assert_eq!(line_path(&points(&[7.0, 7.0])).0, "M4.0 4.0L476.0 4.0");
    }
}
