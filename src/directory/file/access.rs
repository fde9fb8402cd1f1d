//! Users of the file: who may sign in, and where they are members.

use super::reader::{Faults, Fields};
use super::{Login, Read, Secret, Seen, User, reference};
use crate::identity::{check_new_password, is_argon2id_hash};
use crate::model::Role;
use crate::model::ids::normal_email;

pub(super) fn user(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Read<User> {
    let email = fields.text("email", "an e-mail address such as ada@example.com", normal_email, faults);
    let login = login(fields, faults);
    let admin = fields.flag("admin", faults);
    let memberships = memberships(fields, faults);
    let (email, at) = email?;
    Some((User { email, login: login?, admin: admin?, memberships: memberships? }, at))
}

fn login(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<Login> {
    let acceptable = |text: &str| check_new_password(text).is_ok().then(|| Secret(text.to_owned()));
    let password = fields.optional_text("password", "a text of 12 to 1,024 characters", acceptable, faults);
    let accepted = "an argon2id hash in its text form, $argon2id$v=19$m=…,t=…,p=…$…";
    let argon2id = |text: &str| is_argon2id_hash(text).then(|| text.to_owned());
    let hash = fields.optional_text("password_hash", accepted, argon2id, faults);
    match (password.ok()?, hash.ok()?) {
        (Some((password, _)), None) => Some(Login::Password(password)),
        (None, Some((hash, _))) => Some(Login::Hash(hash)),
        (Some((_, one)), Some((_, other))) => {
            faults.add(one.max(other), "give a password or a password_hash, not both".into());
            None
        }
        (None, None) => {
            fields.required("password", "given, or password_hash in its place", faults);
            None
        }
    }
}

fn memberships(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<Vec<(super::At<String>, Role)>> {
    let accepted = "a list of { workspace = \"ID\", role = \"ROLE\" }";
    let mut seen = Seen::default();
    let mut all = Some(Vec::new());
    for element in fields.array("memberships", accepted, faults) {
        let read = Fields::of("membership", element, &["workspace", "role"], faults).and_then(|membership| {
            let workspace = reference("workspace", &membership, faults);
            let role = role(&membership, faults);
            Some((workspace?, role?, membership.at()))
        });
        match (read, &mut all) {
            (Some((workspace, role, at)), Some(all)) => {
                seen.check("membership in", &workspace.value, at, faults);
                all.push((workspace, role));
            }
            _ => all = None,
        }
    }
    all
}

/// Names the role that isn't one: it is no secret, and a typing error is seen sooner that way.
fn role(fields: &Fields<'_, '_>, faults: &mut Faults<'_>) -> Option<Role> {
    let roles = Role::ALL.map(Role::as_str).join(", ");
    let accepted = match fields.optional("role").and_then(|value| value.get_ref().as_str()) {
        Some(given) => {
            let given: String = given.chars().take(60).collect();
            format!("one of {roles}, not \"{}\"", given.escape_debug())
        }
        None => format!("one of {roles}"),
    };
    Some(fields.text("role", &accepted, |text| text.parse().ok(), faults)?.0)
}
