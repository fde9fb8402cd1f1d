//! Sources and dashboards of the file.

use serde_json::Value;
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Faults, Fields, integer};
use super::{Dashboard, Read, Source, id, name, reference};
use crate::model::dashboard::{Column, INLINE_ROWS_MAX, SourceKind, check_columns};

pub(super) fn dashboard(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<Dashboard> {
    let id = id(fields, faults);
    let workspace = reference("workspace", fields, faults);
    let source = reference("source", fields, faults);
    let name = name(fields, faults);
    let (id, at) = id?;
    Some((Dashboard { id, workspace: workspace?, source: source?, name: name? }, at))
}

pub(super) fn source(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<Source> {
    let id = id(fields, faults);
    let workspace = reference("workspace", fields, faults);
    let name = name(fields, faults);
    let kind = fields.text("kind", "one of csv, json, postgres", SourceKind::parse, faults);
    let definition = definition(fields, faults);
    let (id, at) = id?;
    let (columns, rows) = definition?;
    Some((Source { id, workspace: workspace?, name: name?, kind: kind?.0, columns, rows }, at))
}

type Definition = (Vec<Column>, Option<Vec<Vec<Value>>>);

fn definition(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<Definition> {
    let value =
        fields.required("definition", "a table such as { columns = [\"day\", \"amount\"] }", faults)?;
    let definition = Fields::of("definition", value, &["columns", "rows"], faults)?;
    let accepted = "a list of names or of { name = \"…\", type = \"…\" }";
    let given = definition.required("columns", accepted, faults)?;
    let elements: Vec<_> = definition.array("columns", accepted, faults).collect();
    let read: Vec<_> = elements.iter().map(|element| column(element, accepted, faults)).collect();
    let columns: Vec<Column> = read.into_iter().collect::<Option<_>>()?;
    if let Err(fault) = check_columns(&columns) {
        faults.add(given.span().start, format!("in the definition of this source, {fault}"));
        return None;
    }
    let rows = rows(&definition, columns.len(), faults).ok()?;
    Some((columns, rows))
}

fn column(value: &Spanned<DeValue<'_>>, accepted: &str, faults: &mut Faults<'_>) -> Option<Column> {
    match value.get_ref() {
        DeValue::String(name) => Some(Column { name: name.to_string(), kind: "text".into() }),
        DeValue::Table(_) => {
            let fields = Fields::of("column", value, &["name", "type"], faults)?;
            let own = |text: &str| Some(text.to_owned());
            let (name, _) = fields.text("name", "a text", own, faults)?;
            let kind = fields.optional_text("type", "a text", own, faults).ok()?;
            Some(Column { name, kind: kind.map_or_else(|| "text".into(), |(kind, _)| kind) })
        }
        _ => {
            faults.add(value.span().start, format!("columns has to be {accepted}"));
            None
        }
    }
}

/// `Err` after a fault.
fn rows(
    definition: &Fields<'_, '_>,
    width: usize,
    faults: &mut Faults<'_>,
) -> Result<Option<Vec<Vec<Value>>>, ()> {
    let Some(given) = definition.optional("rows") else {
        return Ok(None);
    };
    let accepted = "a list of rows, each a list with a value for every column";
    let mut rows = Vec::new();
    let mut whole = given.get_ref().is_array();
    for (n, element) in definition.array("rows", accepted, faults).enumerate() {
        let at = element.span().start;
        if n == INLINE_ROWS_MAX {
            faults.add(
                at,
                format!("a definition may have {INLINE_ROWS_MAX} rows at most; keep more in a file or table"),
            );
            return Err(());
        }
        let cells = element.get_ref().as_array().map(|cells| cells.iter().collect::<Vec<_>>());
        match cells {
            Some(cells) if cells.len() == width => {
                let read: Vec<_> = cells.into_iter().map(|cell| self::cell(cell, faults)).collect();
                match read.into_iter().collect::<Option<Vec<Value>>>() {
                    Some(row) => rows.push(row),
                    None => whole = false,
                }
            }
            Some(cells) => {
                faults.add(
                    at,
                    format!("this row has {} values; it needs {width}, one for every column", cells.len()),
                );
                whole = false;
            }
            None => {
                faults.add(at, format!("rows has to be {accepted}"));
                whole = false;
            }
        }
    }
    if whole { Ok(Some(rows)) } else { Err(()) }
}

/// A cell as JSON. A date becomes its text: JSON has none.
fn cell(value: &Spanned<DeValue<'_>>, faults: &mut Faults<'_>) -> Option<Value> {
    let json = match value.get_ref() {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Integer(number) => integer(number).map(Value::from),
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
        }
        DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
        DeValue::Datetime(at) => Some(Value::String(at.to_string())),
        DeValue::Array(_) | DeValue::Table(_) => None,
    };
    if json.is_none() {
        let accepted = "a value of a row has to be a text, a finite number of 64 bits, true, false or a date";
        faults.add(value.span().start, accepted.into());
    }
    json
}
