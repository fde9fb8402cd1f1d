use leptos::prelude::*;
use tollkeeper::model::fmt::thousands;

const WIDTH: usize = 84;
const HEIGHT: u64 = 24;
const MARGIN: u64 = 2;

/// A line without axes: whether it is getting more. The numbers are its text.
#[component]
pub(crate) fn Sparkline(
    /// What the numbers are.
    name: String,
    /// Oldest first.
    values: Vec<u64>,
) -> impl IntoView {
    let numbers: Vec<String> = values.iter().map(|value| thousands(*value)).collect();
    view! {
        <svg
            class="spark"
            width=WIDTH.to_string()
            height=HEIGHT.to_string()
            viewBox=format!("0 0 {WIDTH} {HEIGHT}")
            role="img"
            aria-label=format!("{name}: {}", numbers.join(", "))
        >
            <path d=path(&values) />
        </svg>
    }
}

/// Whole pixels: the line is small, and the same text comes out on the server and in the browser.
fn path(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let steps = values.len().saturating_sub(1).max(1);
    let height = u128::from(HEIGHT - 2 * MARGIN);
    let points = values.iter().enumerate().map(|(at, value)| {
        let (x, up) = (at * WIDTH / steps, u128::from(*value) * height / u128::from(most));
        format!("{x} {}", u128::from(HEIGHT - MARGIN) - up)
    });
    format!("M{}", points.collect::<Vec<_>>().join(" L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_from_edge_to_edge_and_up_to_the_most() {
        assert_eq!(path(&[0, 50, 100]), "M0 22 L42 12 L84 2");
        assert_eq!(path(&[u64::MAX, 0]), "M0 2 L84 22");
        assert_eq!(path(&[0, 0]), "M0 22 L84 22");
    }
}
