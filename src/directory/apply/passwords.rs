//! Which hash each user of the file is to have.

use std::collections::HashMap;

use futures::future::try_join_all;

use super::ApplyError;
use super::current::Current;
use crate::directory::file::{File, Login, User};
use crate::identity::Passwords;
use crate::model::Error;

/// The hash by e-mail address. A stored hash that the file's password fits stays as it is: a new salt
/// at each apply would be a change at each apply.
pub(super) async fn settle(file: &File, current: &Current) -> Result<HashMap<String, String>, ApplyError> {
    let passwords = Passwords::default();
    let settled = file.users.iter().map(|user| {
        let stored = current.users.get(&user.email).and_then(|user| user.hash.clone());
        one(&passwords, user, stored)
    });
    let hashes = try_join_all(settled).await.map_err(|error| ApplyError::Refused(error.to_string()))?;
    Ok(file.users.iter().map(|user| user.email.clone()).zip(hashes).collect())
}

async fn one(passwords: &Passwords, user: &User, stored: Option<String>) -> Result<String, Error> {
    let password = match &user.login {
        Login::Hash(hash) => return Ok(hash.clone()),
        Login::Password(password) => password.reveal().to_owned(),
    };
    if let Some(stored) = stored
        && passwords.verify(password.clone(), Some(stored.clone())).await?
    {
        return Ok(stored);
    }
    passwords.hash(password).await
}
