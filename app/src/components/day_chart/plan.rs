//! Where the marks of the chart go: days in, bars and lines out. All in whole numbers, so that the server
//! and the browser draw the same.

use tollkeeper::model::reports::DayTokens;

/// The plot's height in its own units; 0 is its top.
pub(super) const HEIGHT: u64 = 1_000;
/// The plot's width in its own units: this many a day.
pub(super) const DAY_WIDTH: u64 = 10;
/// What is free between two bars.
const GAP: u64 = 2;
/// Less than this would not be seen.
const LEAST: u64 = 8;
/// A budget higher than this many times the highest bar would press all bars flat.
const HEADROOM: u64 = 4;
/// Days between two dates below the bars.
const DATE_EVERY: usize = 7;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Oldest first.
    pub(super) bars: Vec<Bar>,
    /// From 0 up.
    pub(super) ticks: Vec<Tick>,
    pub(super) budget: Budget,
    pub(super) dates: Vec<Date>,
    /// In the plot's units.
    pub(super) width: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) x: u64,
    pub(super) width: u64,
    /// Input stands on the axis, output on the input.
    pub(super) input: Span,
    pub(super) output: Span,
    pub(super) today: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) y: u64,
    pub(super) height: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) tokens: u64,
    pub(super) y: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Budget {
    Disabled,
    /// A line at this height.
    At(u64),
    /// So far above all bars that it isn't drawn.
    Above,
}

/// A date below the bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    /// Index of its day.
    pub(super) day: usize,
    /// The middle of its bar, in thousandths of the width.
    pub(super) x: u64,
    /// Left out where there is little room.
    pub(super) minor: bool,
}

/// `budget` 0 is none.
pub(super) fn plan(days: &[DayTokens], budget: u64) -> Plan {
    let highest = days.iter().map(total).max().unwrap_or(0);
    let drawn = budget > 0 && (highest == 0 || budget <= highest.saturating_mul(HEADROOM));
    let step = step(if drawn { highest.max(budget) } else { highest });
    let top = step.saturating_mul(steps(if drawn { highest.max(budget) } else { highest }, step));
    let y = |tokens: u64| HEIGHT - scaled(tokens, top);

    let last = days.len().saturating_sub(1);
    let bar = |(at, day): (usize, &DayTokens)| {
        let whole = visible(total(day), top);
        let output = if whole == 0 { 0 } else { scaled(day.output_tokens, top).min(whole) };
        let input = whole - output;
        Bar {
            x: index(at) * DAY_WIDTH + GAP / 2,
            width: DAY_WIDTH - GAP,
            input: Span { y: HEIGHT - input, height: input },
            output: Span { y: HEIGHT - whole, height: output },
            today: at == last,
        }
    };
    let date = |day: usize| Date {
        day,
        x: (2 * index(day) + 1) * 1_000 / (2 * index(days.len()).max(1)),
        minor: (last - day) / DATE_EVERY % 2 == 1,
    };
    Plan {
        bars: days.iter().enumerate().map(bar).collect(),
        ticks: (0..=top / step).map(|n| n * step).map(|tokens| Tick { tokens, y: y(tokens) }).collect(),
        budget: match budget {
            0 => Budget::Disabled,
            _ if drawn => Budget::At(y(budget)),
            _ => Budget::Above,
        },
        dates: (0..days.len()).filter(|day| (last - day).is_multiple_of(DATE_EVERY)).map(date).collect(),
        width: index(days.len()).max(1) * DAY_WIDTH,
    }
}

/// `500`, `1.5M`, `20B`: short and exact, as the axis has round numbers only.
pub(super) fn short(tokens: u64) -> String {
    let (unit, name) = match tokens {
        1_000_000_000_000.. => (1_000_000_000_000, "T"),
        1_000_000_000.. => (1_000_000_000, "B"),
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "k"),
        _ => (1, ""),
    };
    match (tokens / unit, tokens % unit * 10 / unit) {
        (whole, 0) => format!("{whole}{name}"),
        (whole, tenth) => format!("{whole}.{tenth}{name}"),
    }
}

/// The distance of two ticks: the smallest of 1, 2, 5, 10, 20, 50, … with which at most five reach `highest`.
fn step(highest: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if steps(highest, step) <= 5 {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

fn steps(highest: u64, step: u64) -> u64 {
    highest.div_ceil(step).max(1)
}

fn scaled(tokens: u64, top: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(HEIGHT) / u128::from(top.max(1)))
        .map_or(HEIGHT, |y| y.min(HEIGHT))
}

/// The height of what is there at all.
fn visible(tokens: u64, top: u64) -> u64 {
    if tokens == 0 { 0 } else { scaled(tokens, top).max(LEAST) }
}

fn total(day: &DayTokens) -> u64 {
    day.input_tokens.saturating_add(day.output_tokens)
}

fn index(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tollkeeper::model::Day;
    use tollkeeper::model::reports::DayTokens;

    use super::*;

    fn days(tokens: &[(u64, u64)]) -> Vec<DayTokens> {
        let day = |(at, &(input_tokens, output_tokens)): (usize, &(u64, u64))| DayTokens {
            day: Day(i64::try_from(at).unwrap()),
            input_tokens,
            output_tokens,
            requests: 1,
        };
        tokens.iter().enumerate().map(day).collect()
    }

    fn tick_values(plan: &Plan) -> Vec<u64> {
        plan.ticks.iter().map(|tick| tick.tokens).collect()
    }

    #[test]
    fn a_bar_is_input_with_output_on_top() {
        let plan = plan(&days(&[(600, 200), (0, 1_000)]), 0);
        assert_eq!(tick_values(&plan), [0, 200, 400, 600, 800, 1_000]);
        let [first, second] = plan.bars[..] else { panic!("{plan:?}") };
        assert_eq!((first.input, first.output), (Span { y: 400, height: 600 }, Span { y: 200, height: 200 }));
        assert_eq!((second.input.height, second.output), (0, Span { y: 0, height: 1_000 }));
        assert!(!first.today && second.today);
        assert!(first.x + first.width < second.x && second.x + second.width < plan.width);
    }

    #[test]
    fn ticks_are_round_and_reach_the_highest() {
        for highest in [
            1,
            7,
            42,
            999,
            1_000,
            1_001,
            2_000_000,
            8_612_904,
            9_007_199_254_740_991,
            i64::MAX.unsigned_abs(),
        ] {
            let ticks = tick_values(&plan(&days(&[(highest, 0)]), 0));
            assert!((2..=6).contains(&ticks.len()), "{highest}: {ticks:?}");
            assert!(*ticks.last().unwrap() >= highest, "{highest}: {ticks:?}");
            let digits = ticks[1].to_string();
            assert!(matches!(digits.trim_end_matches('0'), "1" | "2" | "5"), "{ticks:?}");
        }
    }

    #[test]
    fn a_budget_in_reach_is_a_line_and_sets_the_scale() {
        let near = plan(&days(&[(500, 0)]), 1_000);
        assert_eq!((near.budget, near.bars[0].input.height), (Budget::At(0), 500));
        let spent = plan(&days(&[(2_000, 0)]), 1_000);
        assert_eq!((spent.budget, spent.bars[0].input.height), (Budget::At(500), 1_000));
    }

    #[test]
    fn a_budget_out_of_reach_does_not_press_the_bars_flat() {
        let plan = plan(&days(&[(500, 0)]), 1_000_000);
        assert_eq!((plan.budget, plan.bars[0].input.height), (Budget::Above, 1_000));
    }

    #[test]
    fn a_little_is_seen_and_nothing_is_not() {
        let plan = plan(&days(&[(1_000_000, 0), (1, 0), (0, 1), (0, 0)]), 0);
        let heights: Vec<_> = plan.bars.iter().map(|bar| bar.input.height + bar.output.height).collect();
        assert_eq!(heights, [HEIGHT, LEAST, LEAST, 0]);
    }

    #[test]
    fn without_usage_the_budget_gives_the_scale() {
        let plan_of = |budget| plan(&days(&[(0, 0)]), budget);
        assert_eq!(tick_values(&plan_of(0)), [0, 1]);
        assert_eq!(tick_values(&plan_of(2_000_000)), [0, 500_000, 1_000_000, 1_500_000, 2_000_000]);
        assert_eq!(plan_of(2_000_000).budget, Budget::At(0));
        assert_eq!(plan(&[], 0).bars, []);
    }

    #[test]
    fn dates_go_back_from_today_in_weeks() {
        let plan = plan(&days(&[(1, 1); 30]), 0);
        let dates: Vec<_> = plan.dates.iter().map(|date| (date.day, date.x, date.minor)).collect();
        assert_eq!(
            dates,
            [(1, 50, false), (8, 283, true), (15, 516, false), (22, 750, true), (29, 983, false)]
        );
    }

    #[test]
    fn short_numbers_are_exact() {
        for (tokens, text) in
            [(0, "0"), (500, "500"), (1_500, "1.5k"), (2_000_000, "2M"), (10_000_000_000, "10B")]
        {
            assert_eq!(short(tokens), text);
        }
    }
}
