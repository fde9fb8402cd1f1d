//! What the demo model makes of a source: what each column is good for, and sums over the rows it was shown.

use serde_json::Value;

use crate::model::fmt::thousands;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Numbers to add up.
    Measure,
    /// A day, a month.
    Time,
    /// Something to group by.
    Category,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Col {
    pub(super) name: String,
    pub(super) role: Role,
}

/// The columns that a spec's schema names: the `enum` of a query's column.
pub(super) fn columns_of_schema(schema: &Value) -> Vec<Col> {
    let names =
        &schema["properties"]["widgets"]["items"]["properties"]["query"]["properties"]["column"]["enum"];
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| Col { name: name.to_owned(), role: role_of(name, "") }).collect()
}

/// The role that a column's type gives it, else its name.
pub(super) fn role_of(name: &str, kind: &str) -> Role {
    const MEASURES: [&str; 34] = [
        "amount", "amounts", "total", "price", "cost", "costs", "revenue", "sales", "quantity", "qty",
        "count", "value", "number", "score", "hours", "minutes", "seconds", "duration", "weight", "size",
        "margin", "profit", "tax", "rate", "percent", "units", "stock", "balance", "budget", "spend",
        "visits", "clicks", "age", "tokens",
    ];
    const TIMES: [&str; 12] = [
        "day",
        "date",
        "month",
        "week",
        "year",
        "quarter",
        "time",
        "hour",
        "timestamp",
        "at",
        "created",
        "updated",
    ];
    let name = name.to_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let kind = kind.to_lowercase();
    let typed = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
    if words.last() == Some(&"id") || typed(&["bool"]) {
        Role::Category
    } else if typed(&["date", "time"]) {
        Role::Time
    } else if typed(&["num", "int", "float", "double", "dec", "real"]) {
        Role::Measure
    } else if words.iter().any(|word| TIMES.contains(word)) {
        Role::Time
    } else if words.iter().any(|word| MEASURES.contains(word)) {
        Role::Measure
    } else {
        Role::Category
    }
}

/// What `read_source` answered.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) columns: Vec<Col>,
    rows: Vec<Vec<Value>>,
    total_rows: u64,
}

impl Table {
    pub(super) fn read(result: &Value) -> Self {
        let rows: Vec<Vec<Value>> = result["rows"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row.as_array().cloned())
            .collect();
        let columns =
            result["columns"].as_array().into_iter().flatten().enumerate().filter_map(|(at, column)| {
                let name = column["name"].as_str()?.to_owned();
                let mut role = role_of(&name, column["type"].as_str().unwrap_or_default());
                let numbers = rows.iter().all(|row| row.get(at).and_then(number).is_some());
                if role == Role::Category
                    && !rows.is_empty()
                    && numbers
                    && !name.to_lowercase().ends_with("id")
                {
                    role = Role::Measure;
                }
                Some(Col { name, role })
            });
        let columns = columns.collect();
        let total_rows = result["total_rows"].as_u64().unwrap_or(rows.len() as u64);
        Self { columns, rows, total_rows }
    }

    /// A sentence on what the rows say, by the columns that the wish names where it names some.
    pub(super) fn summary(&self, wish: &str) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if self.rows.is_empty() {
            return format!("The source has the columns {}, but no rows that I can read.", names.join(", "));
        }
        let seen = self.rows.len() as u64;
        let among = if seen < self.total_rows {
            format!("the first {} of {} rows", thousands(seen), thousands(self.total_rows))
        } else {
            format!("{} {}", thousands(seen), if seen == 1 { "row" } else { "rows" })
        };
        let Some(measure) = pick(&self.columns, Role::Measure, wish) else {
            return format!("I read {among} with the columns {}.", names.join(", "));
        };
        let sum: f64 = self.values(measure).sum();
        let name = &self.columns[measure].name;
        let group =
            pick(&self.columns, Role::Category, wish).or_else(|| pick(&self.columns, Role::Time, wish));
        match group.and_then(|group| self.leader(group, measure)) {
            Some((leader, most)) => {
                format!("In {among}, {name} adds up to {}; {leader} leads with {}.", shown(sum), shown(most))
            }
            None => format!("In {among}, {name} adds up to {}.", shown(sum)),
        }
    }

    fn values(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        self.rows.iter().filter_map(move |row| row.get(column).and_then(number))
    }

    /// The group with the largest sum; the first of equals.
    fn leader(&self, group: usize, measure: usize) -> Option<(String, f64)> {
        let mut sums: Vec<(String, f64)> = Vec::new();
        for row in &self.rows {
            let (Some(key), Some(value)) = (row.get(group), row.get(measure).and_then(number)) else {
                continue;
            };
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            match sums.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => *sum += value,
                None => sums.push((key, value)),
            }
        }
        sums.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// The column of a role that the wish names, else the first of that role.
pub(super) fn pick(columns: &[Col], role: Role, wish: &str) -> Option<usize> {
    let of_role =
        || columns.iter().enumerate().filter(move |(_, column)| column.role == role).map(|(at, _)| at);
    of_role().find(|at| names(wish, &columns[*at].name)).or_else(|| of_role().next())
}

/// Whether a wish names a column, as it is written or in words.
pub(super) fn names(wish: &str, column: &str) -> bool {
    let (wish, column) = (wish.to_lowercase(), column.to_lowercase());
    wish.contains(&column) || wish.contains(&column.replace(['_', '-'], " "))
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number: &f64| number.is_finite())
}

/// With thousands separators and at most two decimals.
fn shown(number: f64) -> String {
    let text = format!("{:.2}", number.abs());
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "00"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    let sign = if number < 0.0 { "-" } else { "" };
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{decimals}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for (number, text) in
            [(0.0, "0"), (1234.5, "1,234.5"), (-1_000_000.25, "-1,000,000.25"), (0.999, "1")]
        {
            assert_eq!(shown(number), text);
        }
    }

    #[test]
    fn columns_are_told_apart_by_type_then_by_name() {
        assert_eq!(role_of("day", "text"), Role::Time);
        assert_eq!(role_of("amount", "text"), Role::Measure);
        assert_eq!(role_of("unit_price", ""), Role::Measure);
        assert_eq!(role_of("region", "text"), Role::Category);
        assert_eq!(role_of("heads", "integer"), Role::Measure);
        assert_eq!(role_of("customer_id", "integer"), Role::Category);
        assert_eq!(role_of("format", "text"), Role::Category);
    }
}
