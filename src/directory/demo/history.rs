//! A month of usage that looks lived in: working days and weekends, a slow rise, a noisy day now and
//! then. The same at every run but for the days' names.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::model::{Route, Timestamp};
use crate::store::{Tx, to_i64};

use super::Ids;

const DAYS: i64 = 30;
const MODEL: &str = "demo-1";
/// The budget of the workspace that uses it up.
pub(super) const SMALL_BUDGET: u64 = 400_000;

/// How a workspace uses models.
struct Habit {
    workspace: &'static str,
    /// Requests on a working day, and what of that is left on a weekend, in percent.
    requests: u64,
    weekend: u64,
    /// The budget that its days run into.
    budget: Option<u64>,
    /// The most refusals a day for the rate.
    impatience: u64,
    /// Who calls, with their share in percent.
    people: &'static [(&'static str, u64)],
}

const HABITS: [Habit; 3] = [
    Habit {
        workspace: "meadow",
        requests: 320,
        weekend: 22,
        budget: None,
        impatience: 6,
        people: &[("eve@demo.local", 54), ("ada@demo.local", 31), ("admin@demo.local", 15)],
    },
    Habit {
        workspace: "harbour",
        requests: 760,
        weekend: 64,
        budget: None,
        impatience: 2,
        people: &[("hal@demo.local", 68), ("eve@demo.local", 32)],
    },
    Habit {
        workspace: "lantern",
        requests: 190,
        weekend: 12,
        budget: Some(SMALL_BUDGET),
        impatience: 14,
        people: &[("lou@demo.local", 100)],
    },
];

/// A route's share of the requests in percent, and the tokens of a usual request.
const ROUTES: [(Route, u64, u64, u64); 4] = [
    (Route::Generate, 45, 1_400, 650),
    (Route::SourceDraft, 8, 620, 340),
    (Route::Chat, 32, 3_200, 880),
    (Route::Openai, 15, 940, 510),
];

struct Part {
    route: Route,
    requests: u64,
    input: u64,
    output: u64,
}

pub(super) async fn add(tx: &mut Tx, now: Timestamp, people: &Ids) -> Result<(), sqlx::Error> {
    let mut random = StdRng::seed_from_u64(0x7011_4EE9);
    for habit in &HABITS {
        for back in (0..DAYS).rev() {
            add_day(tx, now, back, habit, people, &mut random).await?;
        }
    }
    Ok(())
}

async fn add_day(
    tx: &mut Tx,
    now: Timestamp,
    back: i64,
    habit: &Habit,
    people: &Ids,
    random: &mut StdRng,
) -> Result<(), sqlx::Error> {
    let day = now.day().plus(-back);
    // 1970-01-01 was a Thursday.
    let weekend = (day.0 + 3).rem_euclid(7) >= 5;
    let rise = 70 + 30 * u64::try_from(DAYS - back).unwrap_or(0) / 30;
    let mut requests = habit.requests * rise / 100 * random.random_range(80..=118) / 100;
    if weekend {
        requests = requests * habit.weekend / 100;
    }
    if back == 0 {
        // Even just after midnight there is something to see.
        let passed = now.ms_since(day.start()) * 100 / 86_400_000;
        requests = requests * passed.max(30) / 100;
    }
    let mut parts = split(requests.max(8), random);
    let refused_budget = habit.budget.map_or(0, |budget| run_into(budget, back == 0, &mut parts, random));
    let refused_rate = if weekend { 0 } else { random.random_range(0..=habit.impatience) };

    let day = day.ymd();
    for part in &parts {
        // Clients of the OpenAI route hang up now and then: what a stream didn't report is estimated.
        let estimated = if part.route == Route::Openai { part.output / 40 } else { 0 };
        sqlx::query(
            "INSERT INTO llm_usage (workspace_id, day, route, model, input_tokens, output_tokens, requests,
               estimated_output_tokens)
             VALUES ($1, date($2), $3, $4, $5, $6, $7, $8)",
        )
        .bind(habit.workspace)
        .bind(&day)
        .bind(part.route.as_str())
        .bind(MODEL)
        .bind(to_i64(part.input))
        .bind(to_i64(part.output))
        .bind(to_i64(part.requests))
        .bind(to_i64(estimated))
        .execute(&mut **tx)
        .await?;
    }
    add_shares(tx, &day, habit, people, &parts).await?;
    for (kind, refused) in [("rate", refused_rate), ("budget", refused_budget)] {
        if refused > 0 {
            sqlx::query(
                "INSERT INTO llm_refusals (workspace_id, day, kind, refused) VALUES ($1, date($2), $3, $4)",
            )
            .bind(habit.workspace)
            .bind(&day)
            .bind(kind)
            .bind(to_i64(refused))
            .execute(&mut **tx)
            .await?;
        }
    }
    Ok(())
}

fn split(requests: u64, random: &mut StdRng) -> Vec<Part> {
    ROUTES
        .into_iter()
        .filter_map(|(route, share, input, output)| {
            let requests = (requests * share).div_ceil(100);
            let input = requests * input * random.random_range(85..=115) / 100;
            let output = requests * output * random.random_range(85..=115) / 100;
            (requests > 0).then_some(Part { route, requests, input, output })
        })
        .collect()
}

/// Fits a day to a budget: today is nearly spent, other days stop a little past it. Answers how many
/// requests were refused for it.
fn run_into(budget: u64, today: bool, parts: &mut [Part], random: &mut StdRng) -> u64 {
    let total: u64 = parts.iter().map(|part| part.input + part.output).sum();
    if !today && total <= budget {
        return 0;
    }
    let target = if today { budget * 94 / 100 } else { budget + random.random_range(0..=budget / 100) };
    for part in parts {
        part.requests = (part.requests * target / total).max(1);
        part.input = part.input * target / total;
        part.output = part.output * target / total;
    }
    if today { 0 } else { random.random_range(3..=17) }
}

/// What each person used of the day; the first takes what doesn't divide.
async fn add_shares(
    tx: &mut Tx,
    day: &str,
    habit: &Habit,
    people: &Ids,
    parts: &[Part],
) -> Result<(), sqlx::Error> {
    let sums = [
        parts.iter().map(|part| part.input).sum::<u64>(),
        parts.iter().map(|part| part.output).sum(),
        parts.iter().map(|part| part.requests).sum(),
    ];
    let share = |percent: u64| sums.map(|sum| sum * percent / 100);
    let others = habit.people.iter().skip(1).map(|(_, percent)| share(*percent));
    let rest = others.fold(sums, |rest, used| std::array::from_fn(|n| rest[n] - used[n]));
    for (n, (email, percent)) in habit.people.iter().enumerate() {
        let Some((_, id)) = people.iter().find(|(known, _)| known == email) else { continue };
        let [input, output, requests] = if n == 0 { rest } else { share(*percent) };
        sqlx::query(
            "INSERT INTO llm_usage_by_user (workspace_id, day, user_id, input_tokens, output_tokens, requests)
             VALUES ($1, date($2), $3, $4, $5, $6)",
        )
        .bind(habit.workspace)
        .bind(day)
        .bind(id.as_str().to_owned())
        .bind(to_i64(input))
        .bind(to_i64(output))
        .bind(to_i64(requests))
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}
