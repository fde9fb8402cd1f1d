//! Which hash each user of the file is to have.

use std::collections::HashMap;
use std::num::NonZero;

use super::ApplyError;
use super::current::Current;
use crate::directory::file::{File, Login};
use crate::directory::password;

/// The hash by e-mail address. A stored hash that the file's password fits stays as it is: a new salt
/// at each apply would be a change at each apply.
pub(super) async fn settle(file: &File, current: &Current) -> Result<HashMap<String, String>, ApplyError> {
    let mut hashes = HashMap::new();
    let mut work = Vec::new();
    for user in &file.users {
        match &user.login {
            Login::Hash(hash) => {
                hashes.insert(user.email.clone(), hash.clone());
            }
            Login::Password(password) => {
                let stored = current.users.get(&user.email).and_then(|user| user.hash.clone());
                work.push((user.email.clone(), password.clone(), stored));
            }
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = work.len().div_ceil(threads).max(1);
    let parts: Vec<_> = work
        .chunks(share)
        .map(|part| {
            let part = part.to_vec();
            tokio::task::spawn_blocking(move || {
                part.into_iter()
                    .map(|(email, password, stored)| {
                        let hash = match stored {
                            Some(stored) if password::fits(password.reveal(), &stored) => stored,
                            _ => password::hash(password.reveal())?,
                        };
                        Ok((email, hash))
                    })
                    .collect::<Result<Vec<_>, String>>()
            })
        })
        .collect();
    for part in parts {
        let done = part
            .await
            .map_err(|_| ApplyError::Refused("the passwords could not be hashed; try again".into()))?;
        hashes.extend(done.map_err(ApplyError::Refused)?);
    }
    Ok(hashes)
}
