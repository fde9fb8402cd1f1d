//! Platforms of the file, with their keys and models.

use super::reader::{Faults, Fields};
use super::{Env, Model, Platform, Read, Secret, Seen, id};
use crate::model::ids::{MODEL_ID_MAX, NAME_MAX, is_id, is_model_id, is_name};
use crate::model::limit::{BUDGET_MAX, RATE_MAX};
use crate::providers::records::{self, SECRET_MAX, base_url};

pub(super) fn platform(fields: &Fields<'_, '_>, env: Env<'_>, faults: &mut Faults<'_>) -> Read<Platform> {
    let id = id(fields, faults);
    let accepted =
        "an http or https URL such as https://openrouter.ai/api/v1, without a password, query or fragment";
    let base_url = fields.text("base_url", accepted, base_url, faults);

    let mut seen = Seen::default();
    let mut keys = Some(Vec::new());
    for element in fields.array("key", "written as [[platform.key]], once for each key", faults) {
        let read = Fields::of("key", element, &["label", "secret", "secret_env"], faults)
            .and_then(|fields| key(&fields, env, faults));
        if let Some(((label, _), at)) = &read {
            seen.check("key", label, *at, faults);
        }
        keys = keys.zip(read).map(|(mut keys, (key, _))| {
            keys.push(key);
            keys
        });
    }
    let mut seen = Seen::default();
    let mut models = Some(Vec::new());
    for element in fields.array("model", "written as [[platform.model]], once for each model", faults) {
        let accepted = ["id", "alias", "rpm", "rpd", "tpm", "tpd", "priority"];
        let read = Fields::of("model", element, &accepted, faults).and_then(|fields| model(&fields, faults));
        if let Some((model, at)) = &read {
            seen.check("model", &model.id, *at, faults);
        }
        models = models.zip(read).map(|(mut models, (model, _))| {
            models.push(model);
            models
        });
    }
    let (id, at) = id?;
    Some((Platform { id, base_url: base_url?.0, keys: keys?, models: models? }, at))
}

fn key(fields: &Fields<'_, '_>, env: Env<'_>, faults: &mut Faults<'_>) -> Read<(String, Secret)> {
    let accepted = format!("a text of 1 to {NAME_MAX} characters that tells the platform's keys apart");
    let label = fields.text("label", &accepted, |text| is_name(text).then(|| text.to_owned()), faults);
    let secret = secret(fields, env, faults);
    let (label, at) = label?;
    Some(((label, secret?), at))
}

fn secret(fields: &Fields<'_, '_>, env: Env<'_>, faults: &mut Faults<'_>) -> Option<Secret> {
    let accepted = format!("1 to {SECRET_MAX} printable ASCII characters without blanks");
    let given = fields.optional_text("secret", &accepted, sendable, faults);
    let is_variable = |text: &str| {
        let fits = !text.is_empty()
            && text.len() <= 200
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        fits.then(|| text.to_owned())
    };
    let variable =
        fields.optional_text("secret_env", "the name of an environment variable", is_variable, faults);
    match (given.ok()?, variable.ok()?) {
        (Some((secret, _)), None) => Some(secret),
        (None, Some((variable, at))) => {
            let held = env(&variable).filter(|text| !text.trim().is_empty());
            let secret = held.as_deref().and_then(sendable);
            match (&held, &secret) {
                (None, _) => {
                    let said = format!(
                        "the environment variable {variable} is not set; set it to the provider's key"
                    );
                    faults.add(at, said);
                }
                (Some(_), None) => {
                    faults.add(at, format!("the environment variable {variable} has to hold {accepted}"));
                }
                _ => {}
            }
            secret
        }
        (Some((_, one)), Some((_, other))) => {
            faults.add(one.max(other), "give a secret or a secret_env, not both".into());
            None
        }
        (None, None) => {
            fields.required(
                "secret",
                "given, or secret_env, which names an environment variable, in its place",
                faults,
            );
            None
        }
    }
}

fn sendable(text: &str) -> Option<Secret> {
    records::sendable(text).map(|text| Secret(text.to_owned()))
}

fn model(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<Model> {
    let accepted =
        format!("the provider's id of the model: 1 to {MODEL_ID_MAX} printable characters without blanks");
    let id = fields.text("id", &accepted, |text| is_model_id(text).then(|| text.to_owned()), faults);
    let accepted = "letters, digits and . _ -, 128 at most, or left out: then the model is called by its id";
    let alias = fields.optional_text("alias", accepted, |text| is_id(text).then(|| text.to_owned()), faults);
    let whole = |max: u64| i64::try_from(max).unwrap_or(i64::MAX);
    let limits = ["rpm", "rpd", "tpm", "tpd"].map(|key| {
        let accepted = format!("a whole number from 1 to {BUDGET_MAX}, or left out where it is unlimited");
        fields.number(key, 1..=whole(BUDGET_MAX), &accepted, faults)
    });
    let accepted = format!("a whole number from 0 (tried first) to {RATE_MAX}");
    let priority = fields.number("priority", 0..=whole(RATE_MAX), &accepted, faults);
    let (id, at) = id?;
    let alias = alias.ok()?.map_or_else(|| id.clone(), |(alias, _)| alias);
    let [rpm, rpd, tpm, tpd] = limits;
    let limits = [rpm.ok()?, rpd.ok()?, tpm.ok()?, tpd.ok()?];
    Some((Model { id, alias, limits, priority: priority.ok()?.unwrap_or(1) }, at))
}
