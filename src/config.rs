//! The environment, parsed once: every fault is found and told at once, each naming its variable.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::BudgetMode;
use crate::model::limit::{BUDGET_MAX, Defaults, RATE_MAX, parse_limit};
use crate::model::{Limit, ids};
use crate::store::DatabaseUrl;

const CAP_PREFIX: &str = "PROVIDER_DAILY_REQUEST_CAP_";

#[derive(Debug, Clone)]
pub struct Config {
    pub addr: SocketAddr,
    pub production: bool,
    pub database: DatabaseUrl,
    pub defaults: Defaults,
    pub budget_mode: BudgetMode,
    /// The one configured model, when no pool is applied.
    pub single_model: Option<SingleModel>,
    /// By platform as the variable's name has it; 0 disables, and no entry leaves it to the platform's default.
    pub daily_request_caps: HashMap<String, u64>,
    pub first_admin: Option<FirstAdmin>,
    /// None: a file beside the database.
    pub secret_key: Option<String>,
    pub trusted_proxies: Vec<Network>,
    pub first_byte_timeout: Duration,
    pub idle_timeout: Duration,
}

/// `LLM_PLATFORM`, `LLM_BASE_URL`, `LLM_API_KEY` and `LLM_MODEL`.
#[derive(Clone, PartialEq, Eq)]
pub struct SingleModel {
    pub platform: String,
    pub base_url: String,
    pub api_key: String,
    pub model: String,
}

impl std::fmt::Debug for SingleModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SingleModel({}/{} at {})", self.platform, self.model, self.base_url)
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct FirstAdmin {
    pub email: String,
    pub password: String,
}

impl std::fmt::Debug for FirstAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FirstAdmin({})", self.email)
    }
}

/// An address, or a range of them: `10.0.0.1`, `10.0.0.0/8`, `::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let bits = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        (prefix <= bits).then_some(Self { address, prefix })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(it)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                net.to_bits() & mask == it.to_bits() & mask
            }
            (IpAddr::V6(net), IpAddr::V6(it)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                net.to_bits() & mask == it.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl Config {
    /// # Errors
    /// A line for every fault: the variable, what is wrong with its value, and what is accepted.
    pub fn from_env(vars: &HashMap<String, String>) -> Result<Self, Vec<String>> {
        let mut env = Env { vars, faults: Vec::new() };
        let config = env.read();
        if env.faults.is_empty() { Ok(config) } else { Err(env.faults) }
    }

    /// The variables whose 0 switches a limit off, for the warning in production.
    pub fn disabled_limits(&self) -> Vec<&'static str> {
        let limits =
            [("LLM_RATE_PER_MINUTE", self.defaults.rate), ("LLM_DAILY_TOKEN_BUDGET", self.defaults.budget)];
        limits.into_iter().filter(|(_, limit)| *limit == Limit::Disabled).map(|(name, _)| name).collect()
    }

    /// Where the key that encrypts provider keys is kept when no variable holds it.
    pub fn secret_key_file(&self) -> PathBuf {
        match &self.database {
            DatabaseUrl::Sqlite(path) => path.with_extension("key"),
            // There is no file to put it beside; replicas on other machines need the variable.
            DatabaseUrl::Postgres(_) => PathBuf::from("data/tollkeeper.key"),
        }
    }
}

struct Env<'a> {
    vars: &'a HashMap<String, String>,
    faults: Vec<String>,
}

impl Env<'_> {
    fn read(&mut self) -> Config {
        Config {
            addr: self.parsed("TOLLKEEPER_ADDR", "127.0.0.1:3000", |text| {
                text.parse().map_err(|_| "an address and a port, like 127.0.0.1:3000".to_owned())
            }),
            production: self.parsed("TOLLKEEPER_ENV", "development", |text| match text {
                "development" => Ok(false),
                "production" => Ok(true),
                _ => Err("development or production".into()),
            }),
            database: self.parsed("DATABASE_URL", "sqlite://data/tollkeeper.db", DatabaseUrl::parse),
            defaults: Defaults {
                rate: self.parsed("LLM_RATE_PER_MINUTE", "20", |text| parse_limit(text, RATE_MAX)),
                budget: self
                    .parsed("LLM_DAILY_TOKEN_BUDGET", "2000000", |text| parse_limit(text, BUDGET_MAX)),
            },
            budget_mode: self.parsed("LLM_BUDGET_MODE", "gate", |text| match text {
                "gate" => Ok(BudgetMode::Gate),
                "reserve" => Ok(BudgetMode::Reserve),
                _ => Err("gate or reserve".into()),
            }),
            single_model: self.single_model(),
            daily_request_caps: self.caps(),
            first_admin: self.first_admin(),
            secret_key: self.secret_key(),
            trusted_proxies: self.parsed("TOLLKEEPER_TRUSTED_PROXIES", "", |text| {
                text.split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .map(Network::parse)
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| {
                        "addresses or networks with commas between them, like 10.0.0.1, 10.1.0.0/16".into()
                    })
            }),
            first_byte_timeout: self.seconds("LLM_FIRST_BYTE_TIMEOUT_SECONDS"),
            idle_timeout: self.seconds("LLM_IDLE_TIMEOUT_SECONDS"),
        }
    }

    /// The variable's value; an empty one counts as not set.
    fn get(&self, name: &str) -> Option<String> {
        self.vars.get(name).filter(|value| !value.is_empty()).cloned()
    }

    fn fault(&mut self, name: &str, value: &str, accepted: &str) {
        let shown: String = value.chars().filter(|c| !c.is_control()).take(80).collect();
        self.faults.push(format!("{name}: \"{shown}\" is not accepted; it takes {accepted}"));
    }

    fn parsed<T>(&mut self, name: &str, default: &str, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let value = self.get(name).unwrap_or_else(|| default.to_owned());
        match parse(&value) {
            Ok(parsed) => parsed,
            Err(accepted) => {
                self.fault(name, &value, &accepted);
                parse(default).unwrap_or_else(|_| unreachable!("the default of {name} is accepted"))
            }
        }
    }

    fn seconds(&mut self, name: &str) -> Duration {
        self.parsed(name, "60", |text| match text.parse::<u64>() {
            Ok(n @ 1..=3_600) => Ok(Duration::from_secs(n)),
            _ => Err("whole seconds from 1 to 3600".into()),
        })
    }

    fn single_model(&mut self) -> Option<SingleModel> {
        let (base_url, model) = match (self.get("LLM_BASE_URL"), self.get("LLM_MODEL")) {
            (None, None) => return None,
            (Some(base_url), Some(model)) => (base_url, model),
            (Some(_), None) => {
                self.faults
                    .push("LLM_MODEL: not set, although LLM_BASE_URL is; it takes the model's id".into());
                return None;
            }
            (None, Some(_)) => {
                self.faults.push(
                    "LLM_BASE_URL: not set, although LLM_MODEL is; it takes an address ending in /v1".into(),
                );
                return None;
            }
        };
        if !(base_url.starts_with("http://") || base_url.starts_with("https://")) {
            self.fault("LLM_BASE_URL", &base_url, "an http:// or https:// address ending in /v1");
        }
        if !ids::is_model_id(&model) {
            self.fault("LLM_MODEL", &model, "a model's id: up to 200 printable characters, no blanks");
        }
        let platform = self.get("LLM_PLATFORM").unwrap_or_else(|| "default".into());
        if !ids::is_id(&platform) {
            self.fault("LLM_PLATFORM", &platform, "letters, digits, '.', '_' and '-'");
        }
        Some(SingleModel {
            platform,
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key: self.get("LLM_API_KEY").unwrap_or_default(),
            model,
        })
    }

    fn caps(&mut self) -> HashMap<String, u64> {
        let mut caps = HashMap::new();
        let mut names: Vec<&String> = self.vars.keys().filter(|name| name.starts_with(CAP_PREFIX)).collect();
        names.sort();
        for name in names {
            let Some(value) = self.get(name) else { continue };
            let platform = name[CAP_PREFIX.len()..].to_owned();
            match parse_limit(&value, RATE_MAX) {
                Ok(cap) => drop(caps.insert(platform, cap.number())),
                Err(accepted) => self.fault(name, &value, &accepted),
            }
        }
        caps
    }

    fn first_admin(&mut self) -> Option<FirstAdmin> {
        let (email, password) = (self.get("TOLLKEEPER_ADMIN_EMAIL"), self.get("TOLLKEEPER_ADMIN_PASSWORD"));
        let (name, accepted) = match (email, password) {
            (None, None) => return None,
            (Some(email), Some(password)) => {
                let Some(normal) = ids::normal_email(&email) else {
                    self.fault("TOLLKEEPER_ADMIN_EMAIL", &email, "an e-mail address");
                    return None;
                };
                if !(12..=1024).contains(&password.chars().count()) {
                    self.faults.push(
                        "TOLLKEEPER_ADMIN_PASSWORD: too short or too long; it takes 12 to 1024 characters"
                            .into(),
                    );
                }
                return Some(FirstAdmin { email: normal, password });
            }
            (Some(_), None) => ("TOLLKEEPER_ADMIN_PASSWORD", "TOLLKEEPER_ADMIN_EMAIL is"),
            (None, Some(_)) => ("TOLLKEEPER_ADMIN_EMAIL", "TOLLKEEPER_ADMIN_PASSWORD is"),
        };
        self.faults.push(format!("{name}: not set, although {accepted}; set both or neither"));
        None
    }

    fn secret_key(&mut self) -> Option<String> {
        use base64::Engine as _;
        let key = self.get("TOLLKEEPER_SECRET_KEY")?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(key.trim());
        if bytes.is_ok_and(|bytes| bytes.len() == 32) {
            return Some(key.trim().to_owned());
        }
        // The value may be a key with a slip in it: it is not repeated.
        self.faults.push("TOLLKEEPER_SECRET_KEY: is not accepted; it takes 32 bytes in base64".into());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        Config::from_env(&vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn defaults_are_the_contracts() {
        let config = read(&[]).unwrap();
        assert_eq!(config.addr.to_string(), "127.0.0.1:3000");
        assert_eq!(config.defaults, Defaults { rate: Limit::Of(20), budget: Limit::Of(2_000_000) });
        assert_eq!(config.daily_request_caps, HashMap::new());
        assert_eq!(config.secret_key_file(), PathBuf::from("data/tollkeeper.key"));
        assert!(config.disabled_limits().is_empty());
    }

    #[test]
    fn all_faults_are_told_at_once_each_with_its_variable() {
        let bad = [
            ("TOLLKEEPER_ADDR", "nowhere"),
            ("TOLLKEEPER_ENV", "prod"),
            ("DATABASE_URL", "mysql://localhost/x"),
            ("LLM_RATE_PER_MINUTE", "1.5"),
            ("LLM_DAILY_TOKEN_BUDGET", "9007199254740992"),
            ("LLM_BUDGET_MODE", "sometimes"),
            ("PROVIDER_DAILY_REQUEST_CAP_ALPHA", "lots"),
            ("TOLLKEEPER_SECRET_KEY", "short"),
            ("TOLLKEEPER_TRUSTED_PROXIES", "not-an-address"),
            ("LLM_IDLE_TIMEOUT_SECONDS", "0"),
            ("LLM_BASE_URL", "http://x/v1"),
            ("TOLLKEEPER_ADMIN_EMAIL", "a@example.com"),
        ];
        let faults = read(&bad).unwrap_err();
        assert_eq!(faults.len(), bad.len(), "{faults:#?}");
        for (name, _) in bad {
            let named = match name {
                "LLM_BASE_URL" => "LLM_MODEL",
                "TOLLKEEPER_ADMIN_EMAIL" => "TOLLKEEPER_ADMIN_PASSWORD",
                name => name,
            };
            assert!(
                faults.iter().any(|fault| fault.starts_with(&format!("{named}: "))),
                "{name}: {faults:#?}"
            );
        }
    }

    #[test]
    fn caps_are_by_platform_and_zero_is_kept() {
        let config = read(&[
            ("PROVIDER_DAILY_REQUEST_CAP_OPENROUTER", "0"),
            ("PROVIDER_DAILY_REQUEST_CAP_MY_PLATFORM", "7"),
        ]);
        let caps = HashMap::from([("OPENROUTER".into(), 0), ("MY_PLATFORM".into(), 7)]);
        assert_eq!(config.unwrap().daily_request_caps, caps);
    }

    #[test]
    fn networks_contain_their_addresses() {
        let net = Network::parse("10.1.0.0/16").unwrap();
        assert!(net.contains("10.1.2.3".parse().unwrap()) && !net.contains("10.2.0.1".parse().unwrap()));
        assert!(Network::parse("::1").unwrap().contains("::1".parse().unwrap()));
        assert!(Network::parse("0.0.0.0/0").unwrap().contains("::ffff:9.9.9.9".parse().unwrap()));
        for bad in ["x", "10.0.0.0/33", "10.0.0.0/-1", ""] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
