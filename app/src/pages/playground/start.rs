//! What stands where nothing was asked yet: what there is to ask about, and prompts to begin with.

use leptos::prelude::*;
use tollkeeper::model::dashboard::Column;

use super::state::{State, Target};

#[component]
pub(super) fn Start(state: State) -> impl IntoView {
    let columns = Memo::new(move |_| {
        let source = state.source.get();
        state.choice.with_value(|choice| {
            choice
                .sources
                .iter()
                .find(|row| row.id == source)
                .map(|row| row.columns.clone())
                .unwrap_or_default()
        })
    });
    let prompts = move || match state.target() {
        Some(Target::Source(_)) => source_prompts(&columns.get()),
        Some(Target::Dashboard(_)) => dashboard_prompts(&columns.get()),
        None => Vec::new(),
    };
    view! {
        <div class="start">
            <h2>"Ask for a dashboard, or about one"</h2>
            <Show when=move || !columns.with(Vec::is_empty)>
                <p class="dim">"Columns of the source"</p>
                <ul class="columns">
                    {move || columns.get().into_iter().map(|column| view! {
                        <li><code>{column.name}</code>" "<span class="dim">{column.kind}</span></li>
                    }).collect_view()}
                </ul>
            </Show>
            <div class="suggestions needs-script">
                <p class="dim">"Try"</p>
                {move || prompts().into_iter().map(|prompt| {
                    let words = prompt.clone();
                    view! {
                        <button class="button" type="button" on:click=move |_| take(state, words.clone())>
                            {prompt}
                        </button>
                    }
                }).collect_view()}
            </div>
        </div>
    }
    .into_any()
}

/// Puts the words where they can be changed and sent.
fn take(state: State, prompt: String) {
    state.fault.set(None);
    state.prompt.set(prompt);
    if let Some(field) = document().get_element_by_id("prompt") {
        let _ = wasm_bindgen::JsCast::unchecked_into::<web_sys::HtmlElement>(field).focus();
    }
}

fn source_prompts(columns: &[Column]) -> Vec<String> {
    let (number, group, day) = roles(columns);
    let mut prompts = Vec::new();
    if let (Some(number), Some(group)) = (number, group) {
        prompts.push(format!("Total {number} by {group}, and the sum of all"));
    }
    if let (Some(number), Some(day)) = (number, day) {
        prompts.push(format!("How {number} develops by {day}"));
    }
    prompts.push("An overview with the numbers that matter".into());
    prompts
}

fn dashboard_prompts(columns: &[Column]) -> Vec<String> {
    let mut prompts = vec!["What does this dashboard show?".to_owned()];
    if let (Some(number), Some(group), _) = roles(columns) {
        prompts.push(format!("Add a bar chart of {number} by {group}"));
    }
    prompts.push("What in the source isn't shown yet?".into());
    prompts
}

/// By type and name: a column of numbers, one to group by, one of days.
fn roles<'a>(columns: &'a [Column]) -> (Option<&'a str>, Option<&'a str>, Option<&'a str>) {
    let is_number = |column: &&Column| {
        ["number", "int", "integer", "float", "decimal", "numeric"].contains(&column.kind.as_str())
            || ["amount", "total", "revenue", "price", "count", "quantity"].contains(&column.name.as_str())
    };
    let is_day = |column: &&Column| {
        ["date", "day", "timestamp", "time"].contains(&column.kind.as_str())
            || ["day", "date", "month", "week"].contains(&column.name.as_str())
    };
    let number = columns.iter().find(is_number);
    let day = columns.iter().find(is_day);
    // The first column of text often names the row itself.
    let group = columns.iter().rfind(|column| !is_number(column) && !is_day(column));
    let name = |column: Option<&'a Column>| column.map(|column| column.name.as_str());
    (name(number), name(group), name(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[(&str, &str)]) -> Vec<Column> {
        names.iter().map(|(name, kind)| Column { name: (*name).into(), kind: (*kind).into() }).collect()
    }

    #[test]
    fn prompts_name_columns_that_are_there() {
        let sales = columns(&[("day", "text"), ("region", "text"), ("amount", "text")]);
        assert_eq!(roles(&sales), (Some("amount"), Some("region"), Some("day")));
        assert!(source_prompts(&sales)[0].contains("amount by region"));
        assert_eq!(source_prompts(&columns(&[("note", "text")])).len(), 1);
        assert_eq!(dashboard_prompts(&[]).len(), 2);
    }
}
