//! The list's state, as the page's address has it. What is wrong in an address counts as left out.

use leptos_router::location::Url;
use leptos_router::params::ParamsMap;
use tollkeeper::model::reports::{WorkspaceFilter, WorkspaceSort, WorkspacesQuery};

pub(super) const PAGE: &str = "/settings/workspaces";

pub(super) const SORTS: [WorkspaceSort; 5] = [
    WorkspaceSort::Share,
    WorkspaceSort::Name,
    WorkspaceSort::Tokens,
    WorkspaceSort::Requests,
    WorkspaceSort::Refused,
];

pub(super) const FILTERS: [WorkspaceFilter; 4] =
    [WorkspaceFilter::All, WorkspaceFilter::Near, WorkspaceFilter::Overridden, WorkspaceFilter::Refusing];

pub(super) fn sort_word(sort: WorkspaceSort) -> &'static str {
    match sort {
        WorkspaceSort::Share => "share",
        WorkspaceSort::Name => "name",
        WorkspaceSort::Tokens => "tokens",
        WorkspaceSort::Requests => "requests",
        WorkspaceSort::Refused => "refused",
    }
}

pub(super) fn filter_word(filter: WorkspaceFilter) -> &'static str {
    match filter {
        WorkspaceFilter::All => "all",
        WorkspaceFilter::Near => "near",
        WorkspaceFilter::Overridden => "overridden",
        WorkspaceFilter::Refusing => "refusing",
    }
}

pub(super) fn of_address(params: &ParamsMap) -> WorkspacesQuery {
    let given = |name: &str| params.get(name).unwrap_or_default();
    let (sort, filter) = (given("sort"), given("filter"));
    WorkspacesQuery {
        search: given("search"),
        sort: SORTS.into_iter().find(|one| sort_word(*one) == sort).unwrap_or_default(),
        filter: FILTERS.into_iter().find(|one| filter_word(*one) == filter).unwrap_or_default(),
        page: given("page").parse().unwrap_or(1).max(1),
    }
}

/// The page's address in this state; what is as usual is left out.
pub(super) fn address(query: &WorkspacesQuery) -> String {
    let mut pairs = Vec::new();
    let search = query.search.trim();
    if !search.is_empty() {
        pairs.push(format!("search={}", Url::escape(search)));
    }
    if query.sort != WorkspaceSort::default() {
        pairs.push(format!("sort={}", sort_word(query.sort)));
    }
    if query.filter != WorkspaceFilter::default() {
        pairs.push(format!("filter={}", filter_word(query.filter)));
    }
    if query.page > 1 {
        pairs.push(format!("page={}", query.page));
    }
    if pairs.is_empty() { PAGE.to_owned() } else { format!("{PAGE}?{}", pairs.join("&")) }
}

/// Where the list in this state is told live.
pub(super) fn live_address(query: &WorkspacesQuery) -> String {
    let (search, sort, filter) =
        (Url::escape(query.search.trim()), sort_word(query.sort), filter_word(query.filter));
    format!("/api/live/workspaces?search={search}&sort={sort}&filter={filter}&page={}", query.page)
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back() {
        let query = WorkspacesQuery {
            search: "a & b=c ü%".into(),
            sort: WorkspaceSort::Tokens,
            filter: WorkspaceFilter::Near,
            page: 3,
        };
        assert_eq!(
            address(&query),
            "/settings/workspaces?search=a%20%26%20b%3Dc%20%C3%BC%25&sort=tokens&filter=near&page=3"
        );
        let mut params = ParamsMap::new();
        for (name, value) in [("search", "a & b=c ü%"), ("sort", "tokens"), ("filter", "near"), ("page", "3")]
        {
            params.insert(name, value.to_owned());
        }
        assert_eq!(of_address(&params), query);
    }

    #[test]
    fn what_is_wrong_counts_as_left_out() {
        let mut params = ParamsMap::new();
        for (name, value) in [("sort", "DROP"), ("filter", ""), ("page", "-1")] {
            params.insert(name, value.to_owned());
        }
        let usual = WorkspacesQuery { page: 1, ..Default::default() };
        assert_eq!(of_address(&params), usual);
        assert_eq!(address(&usual), PAGE);
    }
}
